#include "aot/join_partition.h"

#include <unordered_map>
#include <unordered_set>

#include "weft/base/error.h"

namespace weft::aot {
namespace {

// Copies nodes of one graph to the end of another.
class Copier {
 public:
  using Roles = std::unordered_map<const Node*, JoinedRole>;
  Copier(Graph& to, Roles& roles) : to_(to), roles_(roles) {}

  void stands_for(const Node& node, Node& copy) { copies_.emplace(&node, &copy); }
  bool has(const Node& node) const { return copies_.contains(&node); }
  Value value(const Value& of) const {
    return map_nodes(of, [this](Node& node) { return copy_of(node); });
  }
  // With what it needs and was not copied yet before it.
  void copy(Node& wanted, FunctionRef<JoinedRole(const Node&)> role_of) {
    std::vector<Node*> pending{&wanted};
    while (!pending.empty()) {
      Node& node = *pending.back();
      const size_t before = pending.size();
      if (!has(node))
        for (Node* input : node.inputs())
          if (!has(*input)) pending.push_back(input);
      if (pending.size() > before) continue;
      pending.pop_back();
      if (has(node)) continue;
      Node& copy = to_.node_copy(node, [this](Node& n) { return copy_of(n); });
      copies_.emplace(&node, &copy);
      roles_.emplace(&copy, role_of(node));
    }
  }

 private:
  Value copy_of(Node& node) const {
    const auto found = copies_.find(&node);
    invariant(found != copies_.end(), "%{} is used before it was copied", node.name());
    return value_of(*found->second);
  }
  Graph& to_;
  Roles& roles_;
  std::unordered_map<const Node*, Node*> copies_;
};

bool is_step(const Node& node) {
  return node.kind() != NodeKind::kPlaceholder && node.kind() != NodeKind::kOutput;
}

std::unordered_set<std::string_view> names_of_steps(const Graph& graph) {
  std::unordered_set<std::string_view> names;
  for (Node& node : graph)
    if (is_step(node)) names.insert(node.name());
  return names;
}

}  // namespace

JoinedParts add_partition(Graph& graph, const Partition& partition, const std::vector<Node*>& primals,
                          FunctionRef<Node&(const ValueList& forward_outputs)> tangent) {
  const Graph &forward = partition.forward.graph(), &backward = partition.backward.graph();
  const std::vector<Node*> inputs = forward.placeholders();
  invariant(inputs.size() == primals.size(), "a forward of {} inputs is given {}", inputs.size(),
            primals.size());
  JoinedParts parts;
  Copier of_forward(graph, parts.roles);
  for (size_t i = 0; i < inputs.size(); ++i) {
    of_forward.stands_for(*inputs[i], *primals[i]);
    parts.roles.emplace(primals[i], JoinedRole::kInput);
  }
  for (Node& node : forward)
    if (is_step(node)) of_forward.copy(node, [](const Node&) { return JoinedRole::kForward; });
  for (const Value& output : forward.output_node()->returned().elements())
    parts.forward_outputs.push_back(of_forward.value(output));
  const size_t own = parts.forward_outputs.size() - partition.num_saved_tensors - partition.num_saved_symbols;
  // The backward takes the saved symbols first.
  std::vector<Node*> saved;
  for (size_t i = 0; i < partition.num_saved_symbols; ++i)
    saved.push_back(node_in(parts.forward_outputs[own + partition.num_saved_tensors + i]));
  for (size_t i = 0; i < partition.num_saved_tensors; ++i)
    saved.push_back(node_in(parts.forward_outputs[own + i]));
  parts.forward_outputs.resize(own);
  for (Node* node : saved) parts.roles[node] = JoinedRole::kSaved;
  Copier of_backward(graph, parts.roles);
  size_t next = 0;
  for (Node* input : backward.placeholders())
    of_backward.stands_for(*input, is_tangent(*input) ? tangent(parts.forward_outputs) : *saved.at(next++));
  const std::unordered_set<std::string_view> known = names_of_steps(forward);
  auto role_of = [&](const Node& node) {
    return known.contains(node.name()) ? JoinedRole::kRecomputed : JoinedRole::kBackward;
  };
  for (Node& node : backward)
    if (is_step(node) && role_of(node) == JoinedRole::kBackward) of_backward.copy(node, role_of);
  for (const Value& gradient : backward.output_node()->returned().elements()) {
    for_each_node(gradient, [&](Node& node) { of_backward.copy(node, role_of); });
    parts.gradients.push_back(of_backward.value(gradient));
  }
  return parts;
}

}  // namespace weft::aot
