#pragma once

#include "weft/autograd/grad_node.h"
#include "weft/core/view_step.h"

namespace weft::autograd {

// A view whose base was written to since has an old history: it is made anew by replaying the view.
void refresh_view_history(const Tensor& tensor);

// After an in-place call on a tensor whose values now come from `node`: the tensor, and for a view its base,
// take their new histories.
void rebase_history(const Tensor& self, const Ref<GradNode>& node);

// The views of a base that now requires a gradient require one too.
void mark_views(const Tensor& base);

// `base` takes over the tape entry of `self`: it is what `self` was before it became a view of it.
void pass_history_on(const Tensor& self, const Tensor& base);

// Refuses in-place calls whose gradient could not be right: on leaves, on views of leaves, on views made
// under no_grad or by operators with several results. `op_requires_grad`: whether the result will require a
// gradient.
void check_inplace(const Tensor& self, bool op_requires_grad);

}  // namespace weft::autograd
