#include "aot/split_joint.h"

#include "weft/base/error.h"

namespace weft::aot {
namespace {

constexpr std::string_view kSide = "partition";

std::string_view side_of(const Node& node) {
  const NodeMeta* meta = node.meta_or_null();
  const Value* side = meta ? meta->extra.find(std::string(kSide)) : nullptr;
  return side ? side->to_string_view() : std::string_view();
}

Graph backward_graph(const GraphModule& joint, const JointParts& parts, const SavedValues& saved) {
  std::vector<Node*> inputs = saved.symbols();
  inputs.insert(inputs.end(), saved.tensors().begin(), saved.tensors().end());
  inputs.insert(inputs.end(), parts.tangents.begin(), parts.tangents.end());
  return extract_graph(joint.graph(), inputs, parts.gradients,
                       [](const Node& node) { return side_of(node) == "forward"; });
}

Graph forward_graph(const GraphModule& joint, const JointParts& parts, const SavedValues& saved) {
  ValueList outputs = parts.forward_outputs;
  for (const auto* list : {&saved.tensors(), &saved.symbols()})
    for (Node* node : *list) outputs.push_back(value_of(*node));
  return extract_graph(joint.graph(), parts.primals, outputs,
                       [](const Node& node) { return side_of(node) == "backward"; });
}

// Drops the saved values that the graph of the backward does not use; what it uses.
std::unordered_set<std::string> drop_unused_inputs(Graph& backward) {
  std::unordered_set<std::string> used;
  for (Node* placeholder : backward.placeholders())
    if (!placeholder->users().empty() || is_tangent(*placeholder)) used.insert(placeholder->name());
    else backward.erase(*placeholder);
  return used;
}

}  // namespace

void mark_side(Node& node, bool is_backward) {
  node.meta().extra.set(std::string(kSide), is_backward ? "backward" : "forward");
}

void mark_written(Node& node) { node.meta().extra.set("written", true); }
bool is_marked_written(const Node& node) {
  const NodeMeta* meta = node.meta_or_null();
  return meta && meta->extra.contains("written");
}

bool is_marked_backward(const Node& node) { return side_of(node) == "backward"; }

bool is_tangent(const Node& node) {
  const std::string_view input = node.name();
  return node.kind() == NodeKind::kPlaceholder && input.starts_with("tangents");
}

bool is_symbolic_number_node(const Node& node) {
  const NodeMeta* meta = node.meta_or_null();
  if (!meta) return false;
  const Value::Kind kind = meta->value.kind();
  return kind == Value::Kind::kSymInt || kind == Value::Kind::kSymFloat || kind == Value::Kind::kSymBool;
}

JointParts parts_of(const GraphModule& joint, size_t num_forward_outputs) {
  JointParts parts;
  for (Node* input : joint.graph().placeholders())
    (is_tangent(*input) ? parts.tangents : parts.primals).push_back(input);
  const Node* output = joint.graph().output_node();
  require(output && output->returned().is_sequence(),
          "a joint graph gives a list of outputs and gradients, but this one gives {}",
          output ? output->returned().kind_name() : "nothing");
  const ValueList& all = output->returned().elements();
  require(num_forward_outputs <= all.size(), "the joint graph has {} outputs; {} of the forward are too many",
          all.size(), num_forward_outputs);
  const auto middle = all.begin() + static_cast<ptrdiff_t>(num_forward_outputs);
  parts.forward_outputs.assign(all.begin(), middle);
  parts.gradients.assign(middle, all.end());
  return parts;
}

std::vector<bool> forward_nodes(const JointParts& parts, const NodeIndex& index, size_t size) {
  std::vector<bool> reached(size);
  std::vector<Node*> pending = parts.primals;
  for (const Value& output : parts.forward_outputs)
    for_each_node(output, [&](Node& node) { pending.push_back(&node); });
  while (!pending.empty()) {
    Node* node = pending.back();
    pending.pop_back();
    const uint32_t position = index.of(*node);
    if (reached[position]) continue;
    reached[position] = true;
    for (Node* input : node->inputs()) pending.push_back(input);
  }
  return reached;
}

Partition split_joint(const GraphModule& joint, const JointParts& parts, SavedValues saved) {
  Graph backward = backward_graph(joint, parts, saved);
  const std::unordered_set<std::string> used = drop_unused_inputs(backward);
  saved.keep_if([&](const Node& node) { return used.contains(node.name()); });
  Partition partition;
  partition.num_saved_tensors = saved.tensors().size();
  partition.num_saved_symbols = saved.symbols().size();
  partition.forward = GraphModule(joint, forward_graph(joint, parts, saved));
  partition.backward = GraphModule(joint, std::move(backward));
  return partition;
}

}  // namespace weft::aot
