#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// The names of traced types and functions, none of them twice. It holds names only, and keeps them. Copies
// are handles; threads may share one.
class CompilationUnit {
 public:
  CompilationUnit();
  // The one of all traces that are given no other.
  static const CompilationUnit& process_wide();

  // The name that a new type or function gets: "__torch__.Net", or "__torch__.___torch_mangle_0.Net" where
  // that one is taken, with the next number that was not used yet.
  std::string define_type(std::string_view name) const;
  std::string define_function(std::string_view name) const;
  // In the order of their definition.
  std::vector<std::string> type_names() const;
  std::vector<std::string> function_names() const;

 private:
  struct Body;
  std::shared_ptr<Body> body_;
};

}  // namespace weft
