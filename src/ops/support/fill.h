#pragma once

#include "ops/lowering.h"

namespace weft {

// Sets every element; nothing for tensors without memory. No layers.
void fill_values(const Tensor& tensor, const Scalar& value);
// An error where the type of the tensor cannot hold a number that a user gave.
void require_fillable(const Tensor& tensor, const Scalar& value);
// Sets every element to a number that a user gave.
void fill_number(const Tensor& tensor, const Scalar& value);

// The call that sets every element to a constant of the operator.
PointwiseCall filling_call(int value, DType dtype);
// Runs a call that copies one number everywhere, without a tensor for the number.
void run_fill(const PointwiseCall& call, const Tensor& out, const Scalar& value);

}  // namespace weft
