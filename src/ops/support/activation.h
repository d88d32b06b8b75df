#pragma once

#include "ops/support/pointwise.h"

// Pointwise operators of one tensor, or of a gradient and a tensor, with numbers as parameters of their
// scalar kernel. The numbers take the type of the tensors.

namespace weft {

using Number = const Scalar&;

// Parameters that are the arguments from `first` on.
template <typename... Parameter>
void add_params(PointwiseCall& call, uint8_t first, const Parameter&... numbers) {
  (call.add_param(first++, numbers), ...);
}

// operator(self, numbers...): `Parameter` is Number for each of them. An out= tensor has the result's type.
template <const cpu::PointwiseKernel& kernel, typename... Parameter>
struct Activation {
  static TensorSpec meta(const Tensor& self, Parameter...) {
    require_supported(kernel, self.dtype());
    return pointwise_spec({&self}, self.dtype());
  }
  static PointwiseCall lower(const Tensor& self, Parameter... numbers) {
    PointwiseCall call(kernel, self.dtype(), {0});
    add_params(call, 1, numbers...);
    return call;
  }
  static constexpr KernelSet kernels() { return lowered_exact<&meta, &lower>(); }
  static constexpr Function meta_function() { return function<&meta>(); }
  static constexpr LowerRule lower_rule() { return lowering<&lower>(); }
};

// operator_backward(grad, self, numbers...): types are promoted, and an out= tensor takes any that fits.
template <const cpu::PointwiseKernel& kernel, typename... Parameter>
struct ActivationBackward {
  static TensorSpec meta(const Tensor& grad, const Tensor& self, Parameter...) {
    DType type = common_type(grad, self);
    require_supported(kernel, type);
    return pointwise_spec({&grad, &self}, type);
  }
  static PointwiseCall lower(const Tensor& grad, const Tensor& self, Parameter... numbers) {
    PointwiseCall call(kernel, common_type(grad, self), {0, 1});
    add_params(call, 2, numbers...);
    return call;
  }
  static constexpr KernelSet kernels() { return lowered<&meta, &lower>(); }
  static constexpr Function meta_function() { return function<&meta>(); }
  static constexpr LowerRule lower_rule() { return lowering<&lower>(); }
};

}  // namespace weft
