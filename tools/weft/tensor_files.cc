#include "tensor_files.h"

#include <algorithm>
#include <filesystem>

#include "commands.h"
#include "weft/io/numpy.h"
#include "weft/io/safetensors.h"

namespace weft::cli {
namespace {

std::string ending_of(const std::string& path) { return std::filesystem::path(path).extension().string(); }

}  // namespace

const Tensor* find(const NamedTensors& tensors, const std::string& name) {
  const auto known = std::ranges::find(tensors, name, &NamedTensors::value_type::first);
  return known == tensors.end() ? nullptr : &known->second;
}

void require_tensor_file(const std::string& path) {
  const std::string ending = ending_of(path);
  if (ending != ".safetensors" && ending != ".npz" && ending != ".npy")
    throw UsageError(
        fmt::format("'{}' is no file of tensors: their names end in .safetensors, .npz or .npy", path));
}

void require_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder))
    throw UsageError(fmt::format("'{}' cannot be written: there is no folder '{}'", path, folder.string()));
}

NamedTensors read_tensors(const std::string& path) {
  require_tensor_file(path);
  if (!std::filesystem::exists(path)) throw FormatError(fmt::format("{}: there is no such file", path));
  if (ending_of(path) == ".npy") return {{"0", load_npy(path)}};
  if (ending_of(path) == ".npz") return load_npz(path);
  const SafeTensors file = load_safetensors(path);
  return {file.begin(), file.end()};
}

void write_tensors(const NamedTensors& tensors, const std::string& path) {
  require_tensor_file(path);
  if (ending_of(path) == ".npz") return save_npz(tensors, path);
  if (ending_of(path) == ".safetensors") return save_safetensors(SafeTensors(tensors), path);
  if (tensors.size() != 1)
    throw UsageError(fmt::format("'{}' holds one array, but there are {}; write .npz or .safetensors", path,
                                 tensors.size()));
  save_npy(tensors[0].second, path);
}

}  // namespace weft::cli
