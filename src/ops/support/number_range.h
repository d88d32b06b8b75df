#pragma once

#include "weft/core/tensor.h"

namespace weft {

// Whether a tensor of this type can hold the number. Real numbers lose their fraction in integers; negative
// integers of no more than the type's width wrap in unsigned ones; infinity and NaN fit real types only.
bool fits(const Scalar& number, DType dtype);

// An error in PyTorch's words unless `fits`. A symbolic number is not asked.
void require_fits(const Scalar& number, DType dtype);

// The same for the element of a tensor that has one.
void require_value_fits(const Tensor& number, DType dtype);

// The same for a number that a kernel computes with: half types compute in float32.
void require_fits_computation(const Scalar& number, DType dtype);

}  // namespace weft
