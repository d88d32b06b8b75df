#pragma once

#include "ops/support/pointwise.h"

// Pointwise operators of one tensor, or of a gradient and a tensor, with numbers as parameters of their
// scalar kernel. The numbers take the type of the tensors.

namespace weft {

using Number = const Scalar&;

// operator(self, numbers...): `Parameter` is Number for each of them. An out= tensor has the result's type.
template <const cpu::PointwiseKernel& kernel, typename... Parameter>
struct Activation {
  static TensorSpec meta(const Tensor& self, Parameter...) {
    require_supported(kernel, self.dtype());
    return pointwise_spec({&self}, self.dtype());
  }
  static void into(const Tensor& self, Parameter... numbers, const Tensor& out) {
    const cpu::ParamValue params[] = {param_of(numbers, self.dtype())..., 0};
    run_pointwise(kernel, self.dtype(), out, {&self}, {params, sizeof...(Parameter)});
  }
  static constexpr KernelSet kernels() { return structured_exact<&meta, &into, true>(); }
  static constexpr Function meta_function() { return function<&meta>(); }
};

// operator_backward(grad, self, numbers...): types are promoted, and an out= tensor takes any that fits.
template <const cpu::PointwiseKernel& kernel, typename... Parameter>
struct ActivationBackward {
  static TensorSpec meta(const Tensor& grad, const Tensor& self, Parameter...) {
    DType type = common_type(grad, self);
    require_supported(kernel, type);
    return pointwise_spec({&grad, &self}, type);
  }
  static void into(const Tensor& grad, const Tensor& self, Parameter... numbers, const Tensor& out) {
    DType type = common_type(grad, self);
    const cpu::ParamValue params[] = {param_of(numbers, type)..., 0};
    run_pointwise(kernel, type, out, {&grad, &self}, {params, sizeof...(Parameter)});
  }
  static constexpr KernelSet kernels() { return structured<&meta, &into, true>(); }
  static constexpr Function meta_function() { return function<&meta>(); }
};

}  // namespace weft
