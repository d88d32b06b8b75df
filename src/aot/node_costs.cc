#include "aot/node_costs.h"

#include "graph/operator_call.h"
#include "weft/core/value_walk.h"

namespace weft::aot {
namespace {

const Operator* operator_of(const Node& node) {
  return node.kind() == NodeKind::kCallFunction ? node.target().op() : nullptr;
}

// An item of a call with several results, or arithmetic on sizes.
bool is_plain_function(const Node& node) {
  return node.kind() == NodeKind::kCallFunction && !node.target().op() && !node.is_impure();
}

int64_t elements(const Tensor& tensor) {
  int64_t count = 1;
  for (const SymInt& size : tensor.sizes()) count *= size.hint().value_or(1);
  return count;
}

}  // namespace

bool is_view_node(const Node& node) {
  const Operator* op = operator_of(node);
  return op && op->has(Traits::kView) && !op->info().is_mutable;
}

bool has_effects(const Operator& op) {
  return op.info().is_mutable || op.has(Traits::kRandom | Traits::kEffectful | Traits::kDataDependent);
}

bool is_recomputable(const Node& node) {
  if (is_plain_function(node)) return true;
  const Operator* op = operator_of(node);
  if (!op || has_effects(*op) || op->def().higher_order) return false;
  return op->has(Traits::kPointwise | Traits::kReduction | Traits::kView | Traits::kFactory |
                 Traits::kMayAlias | Traits::kLifts);
}

bool is_fusible(const Node& node) {
  const Operator* op = operator_of(node);
  return is_recomputable(node) || (op && op->has(Traits::kRandom));
}

const Node& memory_of(const Node& node) {
  auto is_alias = [](const Node& n) {
    if (n.kind() != NodeKind::kCallFunction || n.inputs().empty()) return false;
    return is_plain_function(n) || is_view_node(n) ||
           (n.target().op() && n.target().op()->has(Traits::kMayAlias));
  };
  const Node* base = &node;
  while (is_alias(*base)) base = base->inputs()[0];
  return *base;
}

int64_t size_of(const Node& node) {
  const NodeMeta* meta = node.meta_or_null();
  if (!meta) return 0;
  int64_t bytes = 0;
  for_each_tensor(meta->value, [&](const Tensor& tensor) {
    if (tensor.defined()) bytes += elements(tensor) * item_size(tensor.dtype());
  });
  return bytes;
}

}  // namespace weft::aot
