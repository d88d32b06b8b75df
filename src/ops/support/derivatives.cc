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

Tensor restore_reduced(const Tensor& grad, SymIntSpan sizes, IntSpan dims, bool keepdim) {
  auto rank = static_cast<int64_t>(sizes.size());
  Tensor restored = grad;
  if (!keepdim && rank > 0) {
    uint64_t mask = dim_mask(dims, rank);
    for (int64_t d = 0; d < rank; ++d)
      if (mask >> d & 1) restored = unsqueeze(restored, d);
  }
  return expand(restored, sizes);
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
