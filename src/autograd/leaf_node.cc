#include "autograd/leaf_node.h"

#include "autograd/engine.h"
#include "ops/view_replay.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/functions.h"

namespace weft {

LeafNode::LeafNode(const Tensor& variable) : variable_(variable.impl()) {
  sequence = UINT64_MAX;  // runs as soon as its gradient is complete, so that memory is given back early
  results.push_back({variable.dtype(), variable.device(), SymInts(variable.sizes())});
}

Tensor LeafNode::variable() const {
  std::lock_guard lock(mutex_);
  return variable_ ? Tensor(Ref<TensorImpl>(variable_)) : Tensor();
}

void LeafNode::forget_variable() {
  std::lock_guard lock(mutex_);
  variable_ = nullptr;
}

namespace {

// The first gradient becomes `.grad` itself where nobody else can write to it; otherwise a copy does. It
// takes the layout of the variable when that is dense, as optimizers expect.
Tensor first_gradient(const Tensor& variable, const Tensor& grad) {
  bool same_layout = true;
  if (variable.impl()->is_non_overlapping_and_dense())
    for (int64_t d = 0; d < variable.dim(); ++d)
      same_layout &= guard_or((variable.size(d) == 1) | (variable.stride(d) == grad.stride(d)), false);
  bool sole_owner = grad.impl()->use_count() <= 1 && grad.storage()->use_count() <= 1 && !grad.impl()->box;
  if (!is_grad_enabled() && sole_owner && same_layout && !grad.is_view()) return grad;
  if (same_layout) return is_grad_enabled() ? grad.clone() : autograd::shallow_copy(grad).clone();
  if (!autograd::may_accumulate_in_place(grad, grad))
    return laid_out_as(grad, SymInts(variable.strides())).clone();
  Tensor copy =
      empty_strided(variable.sizes(), variable.strides(), grad.dtype(), std::nullopt, grad.device());
  copy.copy_(grad);
  return copy;
}

}  // namespace

std::vector<Tensor> LeafNode::apply(std::vector<Tensor> grads) {
  Tensor variable = this->variable();
  Tensor grad = std::move(grads[0]);
  grads.clear();
  if (!grad.defined() || !variable.defined()) return {};
  std::lock_guard lock(mutex_);
  Tensor& held = autograd::variable_meta(variable).grad();
  if (!held.defined()) held = first_gradient(variable, grad);
  else if (is_grad_enabled() || !autograd::may_accumulate_in_place(held, grad))
    held = held.add(grad);  // the old value may be part of a recorded graph
  else held.add_(grad);
  return {};
}

}  // namespace weft
