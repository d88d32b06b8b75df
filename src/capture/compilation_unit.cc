#include "weft/capture/compilation_unit.h"

#include <fmt/format.h>

#include <mutex>
#include <unordered_set>

namespace weft {

struct CompilationUnit::Body {
  std::mutex mutex;
  std::unordered_set<std::string> taken;
  std::vector<std::string> types, functions;
  uint64_t next_number = 0;

  std::string define(std::string_view name, std::vector<std::string>& names) {
    std::lock_guard lock(mutex);
    std::string free = fmt::format("__torch__.{}", name);
    while (!taken.insert(free).second)
      free = fmt::format("__torch__.___torch_mangle_{}.{}", next_number++, name);
    names.push_back(free);
    return free;
  }
};

CompilationUnit::CompilationUnit() : body_(std::make_shared<Body>()) {}

const CompilationUnit& CompilationUnit::process_wide() {
  static const CompilationUnit& unit = *new CompilationUnit;  // traces may be made while the process ends
  return unit;
}

std::string CompilationUnit::define_type(std::string_view name) const {
  return body_->define(name, body_->types);
}
std::string CompilationUnit::define_function(std::string_view name) const {
  return body_->define(name, body_->functions);
}

std::vector<std::string> CompilationUnit::type_names() const {
  std::lock_guard lock(body_->mutex);
  return body_->types;
}
std::vector<std::string> CompilationUnit::function_names() const {
  std::lock_guard lock(body_->mutex);
  return body_->functions;
}

}  // namespace weft
