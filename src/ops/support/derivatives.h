#pragma once

#include "weft/dispatch/op_def.h"

// What derivative formulas share. All of it is made of operators, so that formulas can be captured, batched
// and differentiated again.

namespace weft {

// The complex conjugate; the tensor itself when it is real.
Tensor conj_of(const Tensor& tensor);
Scalar conj_of(const Scalar& number);
// `grad` times the conjugate of `factor`: the vjp of a multiplication by it.
Tensor times_conj(const Tensor& grad, const Tensor& factor);
// Undefined stays undefined: a missing gradient is zero.
Tensor maybe_mul(const Tensor& grad, const Tensor& factor);

// What a reduction without `keepdim` gave, with its dims back as dims of one element.
Tensor unsqueeze_reduced(const Tensor& reduced, int64_t rank, IntSpan dims);
// A broadcastable gradient back to the dims of a reduction that did not keep them.
Tensor restore_reduced(const Tensor& grad, SymIntSpan sizes, IntSpan dims, bool keepdim);

// 16-bit floats as f32, for formulas of many steps; others as they are.
Tensor widened(const Tensor& tensor);

// A 0-dim zero of the type and device of `grad`.
Tensor zero_beside(const Tensor& grad);
// The gradient only where `condition` holds.
Tensor masked(const Tensor& grad, const Tensor& condition);

// An error where the gradient of a tensor is wanted that the formula takes for a constant: statistics, class
// weights.
struct ConstantArgument {
  int argument;
  std::string_view name;
};
void refuse_gradients(const Vjp& v, std::string_view op, std::initializer_list<ConstantArgument> constants);

}  // namespace weft
