#include "ops/support/derivatives.h"

#include "ops/support/shapes.h"
#include "weft/ops/functions.h"
#include "weft/ops/operators.h"

namespace weft {

Tensor conj_of(const Tensor& tensor) { return tensor.is_complex() ? conj(tensor) : tensor; }

Scalar conj_of(const Scalar& number) {
  if (!number.is_complex()) return number;
  Complex<double> z = number.to_complex();
  return Complex<double>(z.re, -z.im);
}

Tensor times_conj(const Tensor& grad, const Tensor& factor) { return grad * conj_of(factor); }

Tensor maybe_mul(const Tensor& grad, const Tensor& factor) { return grad.defined() ? grad * factor : grad; }

Tensor unsqueeze_reduced(const Tensor& reduced, int64_t rank, IntSpan dims) {
  // No dims are all of them, of which broadcasting makes nothing new.
  if (rank == 0 || dims.empty()) return reduced;
  if (dims.size() == 1) return unsqueeze(reduced, dims[0]);
  const uint64_t mask = dim_mask(dims, rank);
  Tensor restored = reduced;
  for (int64_t d = 0; d < rank; ++d)
    if (mask >> d & 1) restored = unsqueeze(restored, d);
  return restored;
}

Tensor restore_reduced(const Tensor& grad, SymIntSpan sizes, IntSpan dims, bool keepdim) {
  auto rank = static_cast<int64_t>(sizes.size());
  return expand(keepdim ? grad : unsqueeze_reduced(grad, rank, dims), sizes);
}

Tensor zero_beside(const Tensor& grad) {
  return scalar_tensor(0.0, grad.dtype(), Layout::kStrided, grad.device());
}

Tensor masked(const Tensor& grad, const Tensor& condition) { return where(condition, grad, Scalar(0)); }

Tensor widened(const Tensor& tensor) {
  return is_floating(tensor.dtype()) && item_size(tensor.dtype()) == 2 ? tensor.to(kFloat32) : tensor;
}

void refuse_gradients(const Vjp& v, std::string_view op, std::initializer_list<ConstantArgument> constants) {
  for (const ConstantArgument& constant : constants)
    require(!v.has(constant.argument) || !v.wants(constant.argument),
            "The function '{}' is not differentiable with respect to argument '{}'. This input cannot have "
            "requires_grad True.",
            op, constant.name);
}

}  // namespace weft
