#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <unordered_set>

#include "weft/graph/graph.h"

namespace weft::testing {

// What of a graph Python code has no place for: placeholders after other nodes, of one name, or whose name is
// none; stars and defaults in an order that no function has; another name of the output than it gets by
// itself; arguments of nodes that call nothing; methods of nothing.
inline bool code_can_say(const Graph& graph) {
  auto is_word = [](char c) { return (std::isalnum(static_cast<unsigned char>(c)) || c == '_'); };
  std::unordered_set<std::string> parameters;
  Names names;
  bool in_front = true;
  bool has_rest = false, has_keyword_rest = false, has_default = false;
  for (const Node& node : graph) {
    std::string target = node.target().to_string();
    if (node.kind() == NodeKind::kPlaceholder) {
      const size_t stars = std::min(target.find_first_not_of('*'), target.size());
      if (has_keyword_rest || stars > 2 || (stars == 1 && has_rest)) return false;
      if (stars > 0 ? !node.args().empty() : node.args().empty() && has_default && !has_rest) return false;
      (stars == 2   ? has_keyword_rest
       : stars == 1 ? has_rest
                    : has_default) |= stars > 0 || !node.args().empty();
      target.erase(0, stars);
      const bool is_name = !target.empty() && std::all_of(target.begin(), target.end(), is_word) &&
                           !std::isdigit(static_cast<unsigned char>(target[0]));
      if (!in_front || !is_name || !parameters.insert(target).second) return false;
      if (node.args().size() > 1 || !node.kwargs().empty()) return false;
    } else if (node.kind() == NodeKind::kCallMethod) {
      if (node.args().empty()) return false;
    } else if (node.kind() == NodeKind::kGetAttr) {
      if (!node.args().empty() || !node.kwargs().empty()) return false;
    } else if (node.kind() == NodeKind::kOutput) {
      if (node.args().size() != 1 || !node.kwargs().empty() || target != "output") return false;
      if (node.name() != names.make("output")) return false;
    }
    if (node.kind() != NodeKind::kPlaceholder) in_front = false;
    names.make(node.name());
  }
  return true;
}

}  // namespace weft::testing
