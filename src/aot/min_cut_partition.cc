// Which values of the forward are saved, as a minimum cut. Every node is an edge, from where its inputs
// arrive to where its value leaves, with the cost of saving it. What must not be computed again hangs on the
// source, what only the backward can compute on the sink: the cut values are those to be saved.
#include <algorithm>
#include <cmath>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "aot/min_cut.h"
#include "aot/node_costs.h"
#include "aot/split_joint.h"
#include "weft/passes/merge_nodes.h"

namespace weft::aot {
namespace {

class Cut {
 public:
  Cut(const GraphModule& joint, const JointParts& parts, const MinCutOptions& options) : options_(options) {
    for (Node& node : joint.graph()) {
      position_.emplace(&node, nodes_.size());
      nodes_.push_back(&node);
    }
    forward_ = forward_nodes(parts);
    find_backward(parts);
    find_distances();
  }

  bool has_backward() const { return !backward_.empty(); }

  SavedValues saved() {
    FlowNetwork network(2 * nodes_.size() + 2);
    const size_t source = 2 * nodes_.size(), sink = source + 1;
    ban_expensive();
    ban_far_apart();
    ban_long_chains();
    for (Node* node : nodes_) add_node(network, *node, source, sink);
    const std::vector<bool> is_behind = network.sink_side(source, sink);
    SavedValues saved;
    for (Node* node : nodes_)
      if (!is_behind[in(*node)] && is_behind[out(*node)]) saved.add(*node);
    return saved;
  }

 private:
  size_t in(const Node& node) const { return 2 * position_.at(&node); }
  size_t out(const Node& node) const { return in(node) + 1; }
  bool is_forward(const Node& node) const { return forward_.contains(&node); }

  // --- which node belongs where

  // What depends on a tangent, what the backward writes, and what is returned as a gradient.
  void find_backward(const JointParts& parts) {
    for (Node* node : nodes_) {
      bool depends = is_tangent(*node) || is_marked_backward(*node);
      for (Node* input : node->inputs()) depends |= backward_.contains(input);
      if (depends && node->kind() != NodeKind::kOutput) backward_.insert(node);
    }
    for (const Value& gradient : parts.gradients)
      for_each_node(gradient, [&](Node& node) { backward_.insert(&node); });
  }
  // How many steps of the forward a value is away from its first use in the backward.
  void find_distances() {
    constexpr int64_t kFar = 1'000'000'000;
    for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) {
      int64_t distance = (*it)->kind() == NodeKind::kOutput || is_forward(**it) ? kFar : 0;
      if (is_forward(**it))
        (*it)->users().for_each([&](Node& user) { distance = std::min(distance, distance_.at(&user) + 1); });
      distance_.emplace(*it, distance);
    }
  }

  // --- what must not be computed again

  bool is_allowed(const Node& node) const {
    return is_recomputable(node) ||
           (node.target().op() && std::ranges::find(options_.recomputable_ops, node.target().op()) !=
                                      options_.recomputable_ops.end());
  }
  static bool are_fusible(const Node& a, const Node& b) { return is_fusible(a) && is_fusible(b); }

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
    for (Node* input : node.inputs()) inputs += size_of(*input);
    return size_of(node) * 4 < inputs;  // a reduction
  }

  void ban(const Node& node) {
    if (!is_view_node(node)) banned_.insert(&node);
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
    for (Node* node : nodes_) {
      if (!is_forward(*node)) continue;
      std::vector<Node*> uses;
      node->users().for_each([&](Node& user) {
        if (is_forward(user)) uses.push_back(&user);
      });
      if (uses.empty()) continue;
      const size_t limit = first_unfusible(uses);
      for (Node* use : uses)
        if (position_.at(use) > limit && are_fusible(*node, *use)) ban(*use);
    }
  }
  size_t first_unfusible(const std::vector<Node*>& uses) const {
    struct Entry {
      size_t position;
      Node* node;
      bool is_fusible;
      bool operator>(const Entry& other) const { return position > other.position; }
    };
    size_t last = 0;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    std::unordered_set<const Node*> seen;
    for (Node* use : uses) {
      last = std::max(last, position_.at(use));
      queue.push({position_.at(use), use, true});
    }
    while (!queue.empty()) {
      const Entry entry = queue.top();
      queue.pop();
      if (!entry.is_fusible) return entry.position;
      if (!seen.insert(entry.node).second) continue;
      entry.node->users().for_each([&](Node& user) {
        if (is_forward(user) && position_.at(&user) <= last)
          queue.push({position_.at(&user), &user, are_fusible(*entry.node, user)});
      });
    }
    return last;
  }

  // A chain of fusible nodes from one end of a model to the other is cut somewhere.
  void ban_long_chains() {
    constexpr size_t kLong = 100;
    using Entry = std::pair<size_t, Node*>;
    std::unordered_set<const Node*> seen;
    for (Node* start : nodes_) {
      if (!is_forward(*start)) continue;
      const size_t begin = position_.at(start);
      std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
      queue.emplace(begin, start);
      while (!queue.empty()) {
        Node* node = queue.top().second;
        queue.pop();
        if (!seen.insert(node).second) continue;
        if (position_.at(node) > begin + kLong && queue.empty()) {
          ban(*node);
          break;
        }
        node->users().for_each([&](Node& user) {
          if (is_forward(user) && are_fusible(*node, user) && !banned_.contains(&user))
            queue.emplace(position_.at(&user), &user);
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
    const double distance = static_cast<double>(std::clamp<int64_t>(distance_.at(&node), 1, 100));
    const auto bytes = static_cast<int64_t>(static_cast<double>(size_of(node)) * std::pow(1.1, distance));
    bool is_in_memory = node.kind() == NodeKind::kPlaceholder;
    node.users().for_each([&](Node& user) { is_in_memory |= !are_fusible(node, user); });
    return std::min(is_in_memory ? bytes : 2 * bytes, FlowNetwork::kInfinite / 4);
  }

  void add_node(FlowNetwork& network, const Node& node, size_t source, size_t sink) const {
    if (node.kind() == NodeKind::kOutput) return;
    if (backward_.contains(&node)) {
      // A value of the forward that is a gradient as it is may be saved; any other is computed in the
      // backward.
      network.add_edge(is_forward(node) ? out(node) : in(node), sink, FlowNetwork::kInfinite);
      if (!is_forward(node)) return;
    }
    if (banned_.contains(&node)) network.add_edge(source, in(node), FlowNetwork::kInfinite);
    network.add_edge(in(node), out(node), cost(node));
    node.users().for_each([&](Node& user) {
      if (user.kind() != NodeKind::kOutput) network.add_edge(out(node), in(user), FlowNetwork::kInfinite);
    });
  }

  const MinCutOptions& options_;
  std::vector<Node*> nodes_;
  std::unordered_map<const Node*, size_t> position_;
  std::unordered_set<const Node*> forward_, backward_, banned_;
  std::unordered_map<const Node*, int64_t> distance_;
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

Partitioner min_cut_partitioner(MinCutOptions options) {
  return [options = std::move(options)](const GraphModule& joint, size_t num_forward_outputs) {
    return min_cut_rematerialization_partition(joint, num_forward_outputs, options);
  };
}

}  // namespace weft::aot
