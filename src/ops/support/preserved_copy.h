#pragma once

#include "weft/core/tensor.h"

// Copies for operators that replace a part of a tensor: with its very strides and storage offset, gaps and
// all. A tensor whose elements share memory is copied densely.

namespace weft {

TensorSpec preserved_copy_spec(const Tensor& self);
Tensor preserved_copy(const Tensor& self);

}  // namespace weft
