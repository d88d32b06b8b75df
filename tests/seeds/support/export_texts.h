// Texts of exported programs, as the rows compare them: without space around them.
#pragma once

#include <string>

#include "weft/graph/graph_module.h"

namespace weft::testing {

inline std::string stripped(const std::string& text) {
  const size_t first = text.find_first_not_of(" \n"), last = text.find_last_not_of(" \n");
  return first == text.npos ? "" : text.substr(first, last - first + 1);
}
inline std::string code_text(const GraphModule& module) { return stripped(module.code()); }
inline std::string graph_text(const GraphModule& module) { return stripped(module.graph().to_string()); }

}  // namespace weft::testing
