#include "base/source_file.h"

#include <filesystem>

namespace weft::detail {
namespace {

namespace fs = std::filesystem;

// The name without the steps upward that it begins with.
fs::path below_the_root(const fs::path& file) {
  fs::path rest;
  for (const fs::path& part : file)
    if (!rest.empty() || (part != ".." && part != ".")) rest /= part;
  return rest;
}

}  // namespace

std::ifstream open_source(const std::string& file, const std::string& folder) {
  std::ifstream source(file);
  const fs::path name(file);
  if (source || name.is_absolute() || name.empty()) return source;
  const fs::path rest = below_the_root(name);
  std::error_code unreadable;
  fs::path above = fs::read_symlink("/proc/self/exe", unreadable).parent_path();
  for (; !source.is_open() && above.has_relative_path(); above = above.parent_path()) source.open(above / rest);
  if (!source.is_open() && !folder.empty()) source.open(fs::path(folder) / name);
  return source;
}

}  // namespace weft::detail
