#include "aot/split_joint.h"

namespace weft::aot {
namespace {

bool has_tensor(const Node& node) {
  const NodeMeta* meta = node.meta_or_null();
  return meta && meta->value.is_tensor();
}

}  // namespace

Partition default_partition(const GraphModule& joint, size_t num_forward_outputs) {
  const JointParts parts = parts_of(joint, num_forward_outputs);
  const NodeIndex index(joint.graph());
  const std::vector<bool> forward = forward_nodes(parts, index, joint.graph().size());
  SavedValues saved;
  for (Node& node : joint.graph()) {
    if (!forward[index.of(node)] || node.kind() == NodeKind::kGetAttr) continue;
    if (is_symbolic_number_node(node)) {
      saved.add(node);
    } else if (!has_tensor(node) && node.kind() == NodeKind::kCallFunction) {
      // A call with several results is never saved as a whole.
      node.users().for_each([&](Node& item) { saved.add(item); });
    } else {
      std::vector<Node*> uses;
      node.users().for_each([&](Node& user) {
        if (!forward[index.of(user)]) uses.push_back(&user);
      });
      const bool only_sizes = has_tensor(node) && std::ranges::all_of(uses, [](const Node* user) {
                                return is_symbolic_number_node(*user);
                              });
      if (!only_sizes) saved.add(node);
      else
        for (Node* size : uses) saved.add(*size);
    }
  }
  return split_joint(joint, parts, std::move(saved));
}

}  // namespace weft::aot
