#include "weft/graph/manipulation.h"

namespace weft {

size_t replace_target_nodes_with(const GraphModule& module, NodeKind old_kind, const Target& old_target,
                                 NodeKind new_kind, const Target& new_target) {
  size_t count = 0;
  Graph made;
  std::unordered_map<const Node*, Node*> twins;
  for (const Node& node : module.graph()) {
    auto map = [&](Node& input) { return value_of(*twins.at(&input)); };
    if (node.kind() != old_kind || node.target() != old_target) {
      twins.emplace(&node, &made.node_copy(node, map));
      continue;
    }
    ++count;
    ValueList args;
    for (const Value& arg : node.args()) args.push_back(map_nodes(arg, map));
    Kwargs kwargs;
    for (const auto& [name, value] : node.kwargs()) kwargs.emplace_back(name, map_nodes(value, map));
    twins.emplace(&node, &made.create(new_kind, new_target, std::move(args), std::move(kwargs), node.name()));
  }
  made.set_random_advance(module.graph().random_advance());
  module.set_graph(std::move(made));
  return count;
}

}  // namespace weft
