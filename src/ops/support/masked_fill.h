#pragma once

#include "ops/lowering.h"

namespace weft {

// What masked_fill(self, mask, value) computes, the value a number or a tensor of one element.
PointwiseCall masked_fill_call(const Tensor& self);
// out = where(mask, value, self), for a `value` of one element. An `out` that is `self` may have elements
// that share memory: only those that the mask chooses are written.
void fill_chosen(const Tensor& self, const Tensor& mask, const Tensor& value, const Tensor& out);

}  // namespace weft
