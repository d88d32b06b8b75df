#include <fmt/format.h>

#include "graph/node_index.h"
#include "weft/aot/partition.h"
#include "weft/base/error.h"

namespace weft::aot {
namespace {

// What the outputs follow from, and what has effects, back to the inputs.
std::vector<bool> needed_nodes(const Graph& graph, const NodeIndex& index, const std::vector<Node*>& inputs,
                               const ValueList& outputs) {
  std::vector<bool> needed(graph.size()), is_input(graph.size());
  for (Node* input : inputs) is_input[index.of(*input)] = true;
  for (const Value& output : outputs)
    for_each_node(output, [&](Node& node) { needed[index.of(node)] = true; });
  size_t position = graph.size();
  for (Node* node = graph.back(); node; node = node->previous()) {
    --position;
    if (is_input[position] || node->kind() == NodeKind::kOutput) continue;
    if (node->is_impure(/*random_is_impure=*/false) && node->kind() != NodeKind::kPlaceholder)
      needed[position] = true;
    if (!needed[position]) continue;
    for (Node* input : node->inputs()) needed[index.of(*input)] = true;
  }
  return needed;
}

}  // namespace

Graph extract_graph(const Graph& graph, const std::vector<Node*>& inputs, const ValueList& outputs,
                    std::function<bool(const Node&)> is_left_out) {
  Graph part;
  const NodeIndex index(graph);
  std::vector<Node*> copies(graph.size());
  for (Node* input : inputs) {
    Node& placeholder = part.placeholder(input->name());
    if (const NodeMeta* meta = input->meta_or_null()) placeholder.meta().value = meta->value;
    copies[index.of(*input)] = &placeholder;
  }
  auto copy_of = [&](Node& node) {
    Node* copy = copies[index.of(node)];
    require(copy != nullptr, "the part of a graph needs %{}, which its inputs do not give", node.name());
    return value_of(*copy);
  };
  auto is_computable = [&](const Node& node) {
    for (Node* input : node.inputs())
      if (!copies[index.of(*input)]) return false;
    return !is_left_out || !is_left_out(node);
  };
  const std::vector<bool> needed = needed_nodes(graph, index, inputs, outputs);
  size_t position = 0;
  for (Node& node : graph) {
    const size_t at = position++;
    const bool is_step = node.kind() != NodeKind::kPlaceholder && node.kind() != NodeKind::kOutput;
    if (!is_step || copies[at] || !needed[at] || !is_computable(node)) continue;
    copies[at] = &part.node_copy(node, copy_of);
  }
  ValueList returned;
  for (const Value& output : outputs) returned.push_back(map_nodes(output, copy_of));
  part.output(Value::list(std::move(returned)));
  part.eliminate_dead_code(/*random_is_impure=*/false);
  return part;
}

}  // namespace weft::aot
