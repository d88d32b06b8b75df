#include "graph/run/asserted_values.h"

#include <algorithm>

namespace weft {

bool is_assertion(const Node& node) {
  const Operator* op = node.target().op();
  return op && op->has(Traits::kEffectful) && op->schema().returns.empty();
}

std::unordered_set<const Node*> find_asserted_values(const Graph& graph) {
  std::unordered_set<const Node*> found;
  bool has_assertions = false;
  for (const Node* node = graph.back(); node; node = node->previous()) {
    has_assertions |= is_assertion(*node);
    if (!has_assertions || !node->target().function() || node->users().empty()) continue;
    const std::vector<Node*> users = node->users().list();
    if (std::ranges::all_of(users,
                            [&](const Node* user) { return is_assertion(*user) || found.contains(user); }))
      found.insert(node);
  }
  return found;
}

}  // namespace weft
