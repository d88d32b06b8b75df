#include <fmt/format.h>

#include <unordered_map>

#include "weft/aot/partition.h"
#include "weft/base/error.h"

namespace weft::aot {

Graph extract_graph(const Graph& graph, const std::vector<Node*>& inputs, const ValueList& outputs,
                    std::function<bool(const Node&)> is_left_out) {
  Graph part;
  std::unordered_map<const Node*, Node*> copies;
  for (Node* input : inputs) {
    Node& placeholder = part.placeholder(input->name());
    if (const NodeMeta* meta = input->meta_or_null()) placeholder.meta().value = meta->value;
    copies.emplace(input, &placeholder);
  }
  auto copy_of = [&](Node& node) {
    const auto found = copies.find(&node);
    require(found != copies.end(), "the part of a graph needs %{}, which its inputs do not give",
            node.name());
    return value_of(*found->second);
  };
  auto is_computable = [&](const Node& node) {
    for (Node* input : node.inputs())
      if (!copies.contains(input)) return false;
    return !is_left_out || !is_left_out(node);
  };
  for (Node& node : graph) {
    const bool is_step = node.kind() != NodeKind::kPlaceholder && node.kind() != NodeKind::kOutput;
    if (!is_step || copies.contains(&node) || !is_computable(node)) continue;
    copies.emplace(&node, &part.node_copy(node, copy_of));
  }
  ValueList returned;
  for (const Value& output : outputs) returned.push_back(map_nodes(output, copy_of));
  part.output(Value::list(std::move(returned)));
  part.eliminate_dead_code(/*random_is_impure=*/false);
  return part;
}

}  // namespace weft::aot
