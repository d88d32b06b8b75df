#pragma once

#include "weft/core/tensor.h"

namespace weft {

// out = where(mask, value, self), for a `value` of one element. An `out` that is `self` may have elements
// that share memory: only those that the mask chooses are written.
void fill_chosen(const Tensor& self, const Tensor& mask, const Tensor& value, const Tensor& out);

}  // namespace weft
