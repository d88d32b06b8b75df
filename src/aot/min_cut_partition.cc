// Which values of the forward are saved, as a minimum cut. Every node is an edge, from where its inputs
// arrive to where its value leaves, with the cost of saving it. What must not be computed again hangs on the
// source, what only the backward can compute on the sink: the cut values are those to be saved.
#include <algorithm>
#include <cmath>
#include <queue>
#include <string>
#include <unordered_set>

#include "aot/min_cut.h"
#include "aot/node_costs.h"
#include "aot/split_joint.h"
#include "weft/passes/merge_nodes.h"

namespace weft::aot {
namespace {

class Cut {
 public:
  Cut(const GraphModule& joint, const JointParts& parts, const MinCutOptions& options)
      : options_(options), index_(joint.graph()) {
    for (Node& node : joint.graph()) nodes_.push_back(&node);
    forward_ = forward_nodes(parts, index_, nodes_.size());
    for (Node* node : nodes_) {
      fusible_.push_back(is_fusible(*node));
      bytes_.push_back(size_of(*node));
    }
    banned_.resize(nodes_.size());
    find_backward(parts);
    find_distances();
  }

  int64_t weight_of(const std::unordered_set<std::string>& names) const {
    int64_t weight = 0;
    for (const Node* node : nodes_)
      if (names.contains(std::string(node->name()))) weight += cost(*node);
    return weight;
  }

  bool has_backward() const { return std::ranges::find(backward_, true) != backward_.end(); }

  SavedValues saved() {
    FlowNetwork network(2 * nodes_.size() + 2);
    const size_t source = 2 * nodes_.size(), sink = source + 1;
    ban_expensive();
    ban_far_apart();
    ban_long_chains();
    for (Node* node : nodes_) add_node(network, *node, source, sink);
    const std::vector<bool> is_behind = network.sink_side(source, sink);
    SavedValues saved;
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (!is_behind[2 * i] && is_behind[2 * i + 1]) saved.add(*nodes_[i]);
    return saved;
  }

 private:
  size_t position(const Node& node) const { return index_.of(node); }
  bool is_forward(const Node& node) const { return forward_[position(node)]; }

  // --- which node belongs where

  // What depends on a tangent, what the backward writes, and what is returned as a gradient.
  void find_backward(const JointParts& parts) {
    backward_.resize(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = *nodes_[i];
      bool depends = is_tangent(node) || is_marked_backward(node);
      for (Node* input : node.inputs()) depends |= backward_[position(*input)];
      backward_[i] = depends && node.kind() != NodeKind::kOutput;
    }
    for (const Value& gradient : parts.gradients)
      for_each_node(gradient, [&](Node& node) { backward_[position(node)] = true; });
  }
  // How many steps of the forward a value is away from its first use in the backward.
  void find_distances() {
    constexpr int64_t kFar = 1'000'000'000;
    distance_.resize(nodes_.size());
    for (size_t i = nodes_.size(); i-- > 0;) {
      int64_t distance = nodes_[i]->kind() == NodeKind::kOutput || forward_[i] ? kFar : 0;
      if (forward_[i])
        nodes_[i]->users().for_each(
            [&](Node& user) { distance = std::min(distance, distance_[position(user)] + 1); });
      distance_[i] = distance;
    }
  }

  // --- what must not be computed again

  bool is_allowed(const Node& node) const {
    const Operator* op = node.target().op();
    if (!options_.recomputable_ops || !op) return is_recomputable(node);
    return !has_effects(*op) &&
           std::ranges::find(*options_.recomputable_ops, op) != options_.recomputable_ops->end();
  }
  bool are_fusible(const Node& a, const Node& b) const {
    return fusible_[position(a)] && fusible_[position(b)];
  }

  // Some use of it in the backward needs it in memory.
  bool is_materialized_in_backward(const Node& node) const {
    if (is_view_node(node)) return false;
    std::vector<const Node*> pending{&node};
    std::unordered_set<const Node*> seen;
    while (!pending.empty()) {
      const Node* current = pending.back();
      pending.pop_back();
      if (!seen.insert(current).second) continue;
      bool found = false;
      current->users().for_each([&](Node& user) {
        found |= !is_forward(user) && user.kind() != NodeKind::kOutput && !are_fusible(*current, user);
        if (is_view_node(user)) pending.push_back(&user);
      });
      if (found) return true;
    }
    return false;
  }

  bool is_expensive(const Node& node) const {
    if (node.kind() != NodeKind::kCallFunction || !node.target().op()) return false;
    if (!is_allowed(node) || is_materialized_in_backward(node)) return true;
    int64_t inputs = 0;
    for (Node* input : node.inputs()) inputs += bytes_[position(*input)];
    return bytes_[position(node)] * 4 < inputs;  // a reduction
  }

  void ban(const Node& node) {
    if (!is_view_node(node)) banned_[position(node)] = true;
  }
  void ban_expensive() {
    for (Node* node : nodes_)
      if (node->kind() == NodeKind::kPlaceholder ? !is_tangent(*node)
                                                 : is_forward(*node) && is_expensive(*node))
        ban(*node);
  }

  // Two uses of a value with an unfusible node in between would not be computed in one loop: the later one is
  // not computed again.
  void ban_far_apart() {
    const std::vector<size_t> unfusible = first_unfusible();
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!forward_[i]) continue;
      size_t limit = nodes_.size();
      nodes_[i]->users().for_each([&](Node& use) {
        if (is_forward(use)) limit = std::min(limit, unfusible[position(use)]);
      });
      nodes_[i]->users().for_each([&](Node& use) {
        if (is_forward(use) && position(use) > limit && fusible_[i] && fusible_[position(use)]) ban(use);
      });
    }
  }
  // For each node of the forward, where fusible steps from it first come to an unfusible one.
  std::vector<size_t> first_unfusible() const {
    std::vector<size_t> first(nodes_.size(), nodes_.size());
    for (size_t i = nodes_.size(); i-- > 0;)
      nodes_[i]->users().for_each([&](Node& user) {
        if (!is_forward(user)) return;
        const size_t at = position(user);
        first[i] = std::min(first[i], fusible_[i] && fusible_[at] ? first[at] : at);
      });
    return first;
  }

  // A chain of fusible nodes from one end of a model to the other is cut somewhere.
  void ban_long_chains() {
    constexpr size_t kLong = 100;
    std::vector<bool> seen(nodes_.size());
    for (size_t begin = 0; begin < nodes_.size(); ++begin) {
      if (!forward_[begin]) continue;
      std::priority_queue<size_t, std::vector<size_t>, std::greater<>> queue;
      queue.push(begin);
      while (!queue.empty()) {
        const size_t at = queue.top();
        queue.pop();
        if (seen[at]) continue;
        seen[at] = true;
        if (at > begin + kLong && queue.empty()) {
          ban(*nodes_[at]);
          break;
        }
        nodes_[at]->users().for_each([&](Node& user) {
          const size_t next = position(user);
          if (forward_[next] && fusible_[at] && fusible_[next] && !banned_[next]) queue.push(next);
        });
      }
    }
  }

  // --- the network

  int64_t cost(const Node& node) const {
    const NodeMeta* meta = node.meta_or_null();
    if (is_symbolic_number_node(node))
      return meta->value.kind() == Value::Kind::kSymInt ? 1 : FlowNetwork::kInfinite;
    if (!meta || !meta->value.is_tensor()) return FlowNetwork::kInfinite;
    if (is_marked_written(node)) return FlowNetwork::kInfinite / 4;
    const size_t at = position(node);
    const double distance = static_cast<double>(std::clamp<int64_t>(distance_[at], 1, 100));
    const auto bytes = static_cast<int64_t>(static_cast<double>(bytes_[at]) * std::pow(1.1, distance));
    bool is_in_memory = node.kind() == NodeKind::kPlaceholder;
    node.users().for_each([&](Node& user) { is_in_memory |= !are_fusible(node, user); });
    return std::min(is_in_memory ? bytes : 2 * bytes, FlowNetwork::kInfinite / 4);
  }

  void add_node(FlowNetwork& network, const Node& node, size_t source, size_t sink) const {
    if (node.kind() == NodeKind::kOutput) return;
    const size_t in = 2 * position(node), out = in + 1;
    if (backward_[position(node)]) {
      // A value of the forward that is a gradient as it is may be saved; any other is computed in the
      // backward.
      network.add_edge(is_forward(node) ? out : in, sink, FlowNetwork::kInfinite);
      if (!is_forward(node)) return;
    }
    if (banned_[position(node)]) network.add_edge(source, in, FlowNetwork::kInfinite);
    network.add_edge(in, out, cost(node));
    node.users().for_each([&](Node& user) {
      if (user.kind() != NodeKind::kOutput) network.add_edge(out, 2 * position(user), FlowNetwork::kInfinite);
    });
  }

  const MinCutOptions& options_;
  const NodeIndex index_;
  std::vector<Node*> nodes_;
  // By position.
  std::vector<bool> forward_, backward_, banned_, fusible_;
  std::vector<int64_t> distance_, bytes_;
};

}  // namespace

Partition min_cut_rematerialization_partition(const GraphModule& joint, size_t num_forward_outputs,
                                              const MinCutOptions& options) {
  GraphModule merged(joint, joint.graph().copy());
  merge_common_subexpressions(merged, [](const Node&) { return false; });
  const JointParts parts = parts_of(merged, num_forward_outputs);
  Cut cut(merged, parts, options);
  if (!cut.has_backward()) return default_partition(joint, num_forward_outputs);
  return split_joint(merged, parts, cut.saved());
}

int64_t saved_weight(const GraphModule& joint, size_t num_forward_outputs, const Partition& partition) {
  const MinCutOptions options;
  const ValueList& outputs = partition.forward.graph().output_node()->returned().elements();
  std::unordered_set<std::string> saved;
  for (size_t i = num_forward_outputs; i < outputs.size(); ++i) saved.emplace(node_in(outputs[i])->name());
  return Cut(joint, parts_of(joint, num_forward_outputs), options).weight_of(saved);
}

Partitioner min_cut_partitioner(MinCutOptions options) {
  return [options = std::move(options)](const GraphModule& joint, size_t num_forward_outputs) {
    return min_cut_rematerialization_partition(joint, num_forward_outputs, options);
  };
}

}  // namespace weft::aot
