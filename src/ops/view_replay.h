#pragma once

#include "weft/core/view_step.h"
#include "weft/dispatch/operator.h"

namespace weft {

// The view that `step` and those before it describe, taken of `base`; `base` itself for no step.
Tensor replay_view(const Ref<ViewStep>& step, const Tensor& base);

// Whether two layouts of the same sizes give every element the same offset.
bool same_strides(SymIntSpan a, SymIntSpan b, SymIntSpan sizes);
// The values of `tensor` in memory of these strides; itself where there are gaps or overlaps to reproduce.
Tensor laid_out_as(const Tensor& tensor, const SymInts& strides);
// Whether some step depends on the strides of its argument.
bool reads_strides(const Ref<ViewStep>& step);
// `base` so that the steps work on it as they did on a base of these strides.
Tensor laid_out_for(const Ref<ViewStep>& step, const Tensor& base, const SymInts& strides);

// The same steps from another base, or without one: for whoever must not keep it alive.
Ref<ViewStep> with_base(const Ref<ViewStep>& step, const Tensor& base);
inline Ref<ViewStep> without_base(const Ref<ViewStep>& step) { return with_base(step, Tensor()); }

// `base` with what the view shows of it replaced by `part`: by the inverses of the view operators, nothing is
// written to.
Tensor put_back_view(const Ref<ViewStep>& step, const Tensor& base, Tensor part);

}  // namespace weft
