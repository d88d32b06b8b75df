#include "model_file.h"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "tensor_files.h"
#include "weft/autograd/grad_node.h"
#include "weft/base/parallel.h"
#include "weft/io/pt2.h"
#include "weft/ops/functions.h"

namespace weft::cli {
namespace {

// A library whose initialisers define operators.
void load_plugin(const std::string& path) {
  if (!dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL))
    throw UsageError(fmt::format("the plug-in '{}' cannot be loaded: {}", path, dlerror()));
}

// Writes the tensors of a file into those of the program.
void take_weights(const ExportedProgram& program, const std::string& path) {
  const NamedTensors given = read_tensors(path);
  NoGrad no_grad;
  for (const auto& [name, tensor] : program.state_dict()) {
    const Tensor* found = find(given, name);
    if (!found) throw FormatError(fmt::format("{}: there is no '{}', which the model has", path, name));
    const bool fits = std::ranges::equal(found->plain_sizes(), tensor.plain_sizes());
    if (!fits)
      throw FormatError(fmt::format("{}: '{}' is {}, but the model's is {}", path, name,
                                    describe(*found).str(), describe(tensor).str()));
    copy_(tensor, *found);
  }
}

}  // namespace

ExportedProgram load_model(const std::string& path, const Common& command) {
  if (!std::filesystem::exists(path)) throw UsageError(fmt::format("there is no file '{}'", path));
  for (const std::string& plugin : command.plugins) load_plugin(plugin);
  if (command.threads > 0) set_num_threads(command.threads);
  if (!command.program.empty()) {
    const std::vector<std::string> models = pt2_models(path);
    if (std::ranges::find(models, command.program) == models.end())
      throw UsageError(fmt::format("{}: there is no program '{}' in the archive, only {}", path,
                                   command.program, fmt::join(models, ", ")));
  }
  ExportedProgram program = load_pt2(path, {.model = command.program});
  if (!command.weights.empty()) take_weights(program, command.weights);
  return program;
}

ExportedProgram load_model(const Common& command) { return load_model(command.model, command); }

}  // namespace weft::cli
