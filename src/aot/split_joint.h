#pragma once

#include <algorithm>
#include <unordered_set>

#include "graph/node_index.h"
#include "weft/aot/partition.h"

namespace weft::aot {

// What a joint graph consists of.
struct JointParts {
  std::vector<Node*> primals, tangents;
  ValueList forward_outputs, gradients;
};
JointParts parts_of(const GraphModule& joint, size_t num_forward_outputs);
// By position: the nodes that the forward outputs are computed by, and the inputs.
std::vector<bool> forward_nodes(const JointParts& parts, const NodeIndex& index, size_t size);

// What the forward keeps for the backward, each once, in the order it was added.
class SavedValues {
 public:
  void add(Node& node) {
    if (!known_.insert(&node).second) return;
    (is_symbolic_number_node(node) ? symbols_ : tensors_).push_back(&node);
  }
  const std::vector<Node*>& tensors() const { return tensors_; }
  const std::vector<Node*>& symbols() const { return symbols_; }
  // Those for which it is true are kept.
  template <typename F>
  void keep_if(F f) {
    for (auto* list : {&tensors_, &symbols_}) std::erase_if(*list, [&](Node* node) { return !f(*node); });
  }

 private:
  std::vector<Node*> tensors_, symbols_;
  std::unordered_set<const Node*> known_;
};

// Makes the two graphs. What the backward does not use after all is not saved.
Partition split_joint(const GraphModule& joint, const JointParts& parts, SavedValues saved);

// Marks a node that writes to an input as part of the forward or of the backward: both may have what it
// needs.
void mark_side(Node& node, bool is_backward);
bool is_marked_backward(const Node& node);
// Marks an input that is written to after the forward: it cannot be saved.
void mark_written(Node& node);
bool is_marked_written(const Node& node);

}  // namespace weft::aot
