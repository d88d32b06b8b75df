// Activations and the operators of their derivatives as arithmetic.
#include "ops/decompositions/decompositions.h"
#include "ops/decompositions/steps.h"
#include "ops/support/derivatives.h"
#include "weft/ops/functions.h"
#include "weft/ops/operators.h"

namespace weft::ops {
namespace {

// min(max(x + 3, 0), 6)
Tensor hard_ramp(const Tensor& x) { return clamp(clamp(x + 3, Scalar(0)), std::nullopt, Scalar(6)); }

Tensor gelu_slope(const Tensor& x) {
  constexpr double half_root = 0.7071067811865476, density = 0.3989422804014327;
  Tensor cdf = 0.5 * (1 + erf(x * half_root));
  Tensor pdf = density * exp(x * x * -0.5);
  return cdf + x * pdf;
}
Tensor gelu_tanh_slope(const Tensor& x) {
  constexpr double beta = 0.7978845608028654, kappa = 0.044715;
  Tensor square = x * x, cube = square * x;
  Tensor t = tanh(beta * (x + kappa * cube));
  Tensor left = 0.5 * x, right = 1 + t, of_left = 0.5 * right;
  Tensor of_tanh = 1 - t * t, of_inner = beta * (1 + 3 * kappa * square);
  return of_left + left * of_tanh * of_inner;
}

}  // namespace

Tensor tanh_backward_parts(const Tensor& grad, const Tensor& y) {
  const Steps steps(grad, y);
  Tensor wide_grad = steps.in(grad), wide = steps.in(y);
  return steps.out(wide_grad * conj_of(1 - wide * wide));
}
Tensor sigmoid_backward_parts(const Tensor& grad, const Tensor& y) {
  const Steps steps(grad, y);
  Tensor wide_grad = steps.in(grad), wide = steps.in(y);
  return steps.out(wide_grad * conj_of(wide * (1 - wide)));
}
Tensor gelu_backward_parts(const Tensor& grad, const Tensor& self, std::string_view approximate) {
  const Steps steps(grad, self);
  Tensor wide_grad = steps.in(grad), x = steps.in(self);
  return steps.out(wide_grad * (approximate == "tanh" ? gelu_tanh_slope(x) : gelu_slope(x)));
}
Tensor silu_parts(const Tensor& self) {
  const Steps steps(self);
  Tensor x = steps.in(self);
  return steps.out(x * sigmoid(x));
}
Tensor silu_backward_parts(const Tensor& grad, const Tensor& self) {
  const Steps steps(grad, self);
  Tensor wide_grad = steps.in(grad), x = steps.in(self);
  Tensor share = sigmoid(x), scaled = wide_grad * share;
  return steps.out(scaled * (1 + x * (1 - share)));
}
Tensor threshold_backward_parts(const Tensor& grad, const Tensor& self, const Scalar& threshold) {
  return where(self <= threshold, Scalar(0), grad);
}
Tensor threshold_parts(const Tensor& self, const Scalar& threshold, const Scalar& value) {
  const Steps steps(self);
  Tensor x = steps.in(self);
  return steps.out(where(x <= threshold, value, x));
}
Tensor elu_backward_parts(const Tensor& grad_, const Scalar& alpha, const Scalar& scale,
                          const Scalar& input_scale, bool is_result, const Tensor& self_or_result) {
  const Steps steps(grad_, self_or_result);
  Tensor grad = steps.in(grad_), x = steps.in(self_or_result);
  const double low = alpha.to_double() * scale.to_double();
  Tensor is_below = x <= 0, below = grad * input_scale;
  if (is_result) {
    below = below * (x + low);
  } else {
    below = below * low;
    below = below * exp(x * input_scale);
  }
  return steps.out(where(is_below, below, grad * scale));
}
Tensor softplus_parts(const Tensor& self, const Scalar& beta, const Scalar& threshold) {
  const Steps steps(self);
  const bool is_scaled = !beta.equals_number(1);
  Tensor x = steps.in(self), scaled = is_scaled ? x * beta : x, bent = log1p(exp(scaled));
  return steps.out(where(scaled > threshold, x, is_scaled ? bent / beta : bent));
}
Tensor softplus_backward_parts(const Tensor& grad_, const Tensor& self, const Scalar& beta,
                               const Scalar& threshold) {
  const Steps steps(grad_, self);
  Tensor grad = steps.in(grad_), x = steps.in(self);
  Tensor z = exp(x * beta), is_linear = x * beta > threshold, bent = grad * z;
  return steps.out(where(is_linear, grad, bent / (z + 1.0)));
}
Tensor hardsigmoid_parts(const Tensor& self) {
  const Steps steps(self);
  return steps.out(hard_ramp(steps.in(self)) / 6);
}
Tensor hardsigmoid_backward_parts(const Tensor& grad_, const Tensor& self) {
  const Steps steps(grad_, self);
  Tensor grad = steps.in(grad_), x = steps.in(self);
  Tensor is_above = x > -3.0, is_inside = bitwise_and(is_above, x < 3.0);
  return steps.out(where(is_inside, grad * (1.0 / 6.0), Scalar(0.0)));
}
Tensor hardswish_parts(const Tensor& self) {
  const Steps steps(self);
  Tensor x = steps.in(self);
  return steps.out(x * hard_ramp(x) / 6);
}
Tensor hardswish_backward_parts(const Tensor& grad_, const Tensor& self) {
  const Steps steps(grad_, self);
  Tensor grad = steps.in(grad_), x = steps.in(self);
  Tensor is_flat = x <= -3, is_bent = x < 3;
  return steps.out(where(is_flat, Scalar(0.0), where(is_bent, grad * (x / 3 + 0.5), grad)));
}
Tensor hardtanh_backward_parts(const Tensor& grad_, const Tensor& self, const Scalar& min_val,
                               const Scalar& max_val) {
  const Steps steps(grad_, self);
  Tensor grad = steps.in(grad_), x = steps.in(self);
  Tensor is_low = x <= min_val, is_outside = bitwise_or(is_low, x >= max_val);
  return steps.out(where(is_outside, Scalar(0.0), grad));
}
Tensor leaky_relu_backward_parts(const Tensor& grad_, const Tensor& self, const Scalar& slope, bool) {
  const Steps steps(grad_, self);
  Tensor grad = steps.in(grad_), x = steps.in(self);
  Tensor is_positive = x > 0;
  return steps.out(where(is_positive, grad, grad * slope));
}

}  // namespace weft::ops
