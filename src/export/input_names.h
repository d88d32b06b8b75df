#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "weft/core/pytree.h"

namespace weft {

// Names of a program's placeholders: "p_fc_weight" for a parameter, "x_foo_0" for x["foo"][0]. What the user
// named comes first; another input of that name gets a number.
class InputNames {
 public:
  // The arguments, by their names, and the leaves of each.
  InputNames(const std::vector<std::string>& arguments, const ValueList& values);
  const std::vector<std::string>& of_leaves() const { return leaves_; }
  // "p_", "b_" or "c_", and the name in the module.
  std::string of_state(std::string_view prefix, std::string_view name);

 private:
  std::string unused(std::string name);

  std::vector<std::string> leaves_;
  std::unordered_set<std::string> used_;
};

}  // namespace weft
