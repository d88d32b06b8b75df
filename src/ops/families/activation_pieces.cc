// Activations made of straight pieces, with the operators of their derivatives.
#include "ops/decompositions/decompositions.h"
#include "ops/support/activation.h"
#include "ops/support/family.h"
#include "ops/support/number_range.h"

namespace weft::ops {
namespace {

// --- hardtanh --------------------------------------------------------------------------------------------

// A clamp whose bounds never change the type: those of an integer tensor are truncated to integers.
struct Bounds {
  Scalar low, high;
};
Bounds bounds_of(const Tensor& self, const Scalar& min_val, const Scalar& max_val) {
  require(self.dtype() != kBool, "Bool inputs not supported for hardtanh");
  require(!self.is_complex(), "clamp is not supported for complex types");
  if (!is_integral(self.dtype())) return {min_val, max_val};
  Bounds bounds{min_val.to_int(), max_val.to_int()};
  require(self.dtype() != kUInt8 || (bounds.low.to_int() >= 0 && bounds.high.to_int() >= 0),
          "cannot do hardtanh on an unsigned type with negative limits, but got [{}, {}]",
          min_val.to_string(), max_val.to_string());
  return bounds;
}
TensorSpec hardtanh_meta(const Tensor& self, Number min_val, Number max_val) {
  bounds_of(self, min_val, max_val);
  return {self.dtype(), self.device(), SymInts(self.sizes()), preserved_strides(self)};
}
PointwiseCall hardtanh_lower(const Tensor& self, Number min_val, Number max_val) {
  Bounds bounds = bounds_of(self, min_val, max_val);
  require_fits(bounds.low, self.dtype());
  require_fits(bounds.high, self.dtype());
  PointwiseCall call(cpu::kClamp, self.dtype(), {0});
  call.add_param(1, bounds.low);
  call.add_param(2, bounds.high);
  return call;
}
Tensor relu6_composite(const Tensor& self) { return hardtanh(self, 0, 6); }
const Tensor& relu6_inplace(const Tensor& self) { return hardtanh_(self, 0, 6); }

// --- leaky_relu ------------------------------------------------------------------------------------------

using LeakyReluBackward = ActivationBackward<cpu::kLeakyReluBackward, Number>;
// A result tells the sign of what it was made from unless the slope flips it.
void check_slope(Number slope, bool self_is_result) {
  require(
      !self_is_result || slope.to_double() >= 0,
      "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported. "
      "This is caused by calling in-place forward function with a negative slope, please call "
      "out-of-place version instead.");
}
TensorSpec leaky_relu_backward_meta(const Tensor& grad, const Tensor& self, Number slope, bool is_result) {
  check_slope(slope, is_result);
  TensorSpec spec = LeakyReluBackward::meta(grad, self, slope);
  // The first of the two decides the layout where they differ, and here that is the input.
  spec.strides = pointwise_strides({&self, &grad}, spec.sizes);
  return spec;
}
PointwiseCall leaky_relu_backward_lower(const Tensor& grad, const Tensor& self, Number slope, bool) {
  return LeakyReluBackward::lower(grad, self, slope);
}

using Threshold = Activation<cpu::kThreshold, Number, Number>;
using Hardsigmoid = Activation<cpu::kHardsigmoid>;
using Hardswish = Activation<cpu::kHardswish>;
using LeakyRelu = Activation<cpu::kLeakyRelu, Number>;
using HardtanhBackward = ActivationBackward<cpu::kHardtanhBackward, Number, Number>;

Samples wide_samples() {
  return {{"plain", {make({3, 4}, kFloat64, -5, 5)}},
          {"transposed", {transposed(make({3, 4}, kFloat64, -5, 5))}},
          {"zero_dim", {f64({})}},
          {"empty", {f64({0, 2})}},
          {"f32", {f32({5})}}};
}
Samples wide_pair_samples() {
  return {{"plain", {f64({3, 4}), make({3, 4}, kFloat64, -5, 5)}}, {"f32", {f32({5}), f32({5})}}};
}

}  // namespace

WEFT_OPERATOR(threshold) = {
    .schema = "aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    .inplace = "aten::threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)",
    .out =
        "aten::threshold.out(Tensor self, Scalar threshold, Scalar value, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = Threshold::meta_function(),
    .kernel = lowered<&Threshold::meta, &Threshold::lower>(),
    .lower = Threshold::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{threshold_backward(v.grad(), v.input(0), v.arg<Scalar>(1))};
                }},
    .batch = pointwise_batch,
    .decompose = function<&threshold_parts>(),
    .samples =
        [] {
          return Samples{{"plain", {f64({3, 4}), 0.5, -7}},
                         {"transposed", {transposed(f64({3, 4})), 0, 1.5}},
                         {"integers", {i64({5}), 1, -3}}};
        },
};

WEFT_OPERATOR(hardtanh) = {
    .schema = "aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    .inplace = "aten::hardtanh_(Tensor(a!) self, Scalar min_val=-1, Scalar max_val=1) -> Tensor(a!)",
    .out =
        "aten::hardtanh.out(Tensor self, Scalar min_val=-1, Scalar max_val=1, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&hardtanh_meta>(),
    .kernel = lowered_exact<&hardtanh_meta, &hardtanh_lower>(),
    .lower = lowering<&hardtanh_lower>(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{hardtanh_backward(v.grad(), v.input(0), v.arg<Scalar>(1), v.arg<Scalar>(2))};
                }},
    .batch = pointwise_batch,
    .samples =
        [] {
          return Samples{{"plain", {f64({3, 4})}},
                         {"bounds", {f64({3, 4}), -0.3, 0.8}},
                         {"transposed", {transposed(f64({3, 4}))}},
                         {"integers", {i64({5}), -2, 2.5}}};
        },
};

WEFT_OPERATOR(hardtanh_backward) = {
    .schema =
        "aten::hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
    .out =
        "aten::hardtanh_backward.grad_input(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val, "
        "*, Tensor(a!) grad_input) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = HardtanhBackward::meta_function(),
    .kernel = HardtanhBackward::kernels(),
    .lower = HardtanhBackward::lower_rule(),
    .vjp = {.saves = inputs(1),
            .rule =
                [](const Vjp& v) {
                  return Grads{hardtanh_backward(v.grad(), v.input(1), v.arg<Scalar>(2), v.arg<Scalar>(3)),
                               zeros_like(v.grad())};
                }},
    .batch = pointwise_batch,
    .decompose = function<&hardtanh_backward_parts>(),
    .samples =
        [] {
          return Samples{{"plain", {f64({3, 4}), f64({3, 4}), -1, 1}}, {"f32", {f32({5}), f32({5}), 0, 0.5}}};
        },
};

WEFT_OPERATOR(relu6) = {
    .schema = "aten::relu6(Tensor self) -> Tensor",
    .inplace = "aten::relu6_(Tensor(a!) self) -> Tensor(a!)",
    .composite = {.functional = function<&relu6_composite>(), .inplace = function<&relu6_inplace>()},
    .samples =
        [] { return Samples{{"plain", {make({3, 4}, kFloat64, -5, 9)}}, {"integers", {i64({5}, -5, 9)}}}; },
};

WEFT_OPERATOR(hardsigmoid) = {
    .schema = "aten::hardsigmoid(Tensor self) -> Tensor",
    .inplace = "aten::hardsigmoid_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::hardsigmoid.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = Hardsigmoid::meta_function(),
    .kernel = Hardsigmoid::kernels(),
    .lower = Hardsigmoid::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule = [](const Vjp& v) { return Grads{hardsigmoid_backward(v.grad(), v.input(0))}; }},
    .batch = pointwise_batch,
    .decompose = function<&hardsigmoid_parts>(),
    .samples = wide_samples,
};

WEFT_OPERATOR(hardsigmoid_backward) = {
    .schema = "aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
    .out =
        "aten::hardsigmoid_backward.grad_input(Tensor grad_output, Tensor self, *, Tensor(a!) grad_input) -> "
        "Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = Binary<cpu::kHardsigmoidBackward>::meta_function(),
    .kernel = Binary<cpu::kHardsigmoidBackward>::kernels(),
    .lower = Binary<cpu::kHardsigmoidBackward>::lower_rule(),
    .vjp = {.saves = inputs(1),
            .rule =
                [](const Vjp& v) {
                  return Grads{hardsigmoid_backward(v.grad(), v.input(1)), zeros_like(v.grad())};
                }},
    .batch = pointwise_batch,
    .decompose = function<&hardsigmoid_backward_parts>(),
    .samples = wide_pair_samples,
};

WEFT_OPERATOR(hardswish) = {
    .schema = "aten::hardswish(Tensor self) -> Tensor",
    .inplace = "aten::hardswish_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::hardswish.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = Hardswish::meta_function(),
    .kernel = Hardswish::kernels(),
    .lower = Hardswish::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule = [](const Vjp& v) { return Grads{hardswish_backward(v.grad(), v.input(0))}; }},
    .batch = pointwise_batch,
    .decompose = function<&hardswish_parts>(),
    .samples = wide_samples,
};

WEFT_OPERATOR(hardswish_backward) = {
    .schema = "aten::hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
    .out = "aten::hardswish_backward.out(Tensor grad_output, Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = Binary<cpu::kHardswishBackward>::meta_function(),
    .kernel = Binary<cpu::kHardswishBackward>::exact_kernels(),
    .lower = Binary<cpu::kHardswishBackward>::lower_rule(),
    .vjp = {.saves = inputs(0, 1),
            .rule =
                [](const Vjp& v) {
                  Tensor x = v.input(1);
                  return Grads{hardswish_backward(v.grad(), x),
                               masked(v.grad() * v.input(0) / 3, logical_and(x > -3, x < 3))};
                }},
    .batch = pointwise_batch,
    .decompose = function<&hardswish_backward_parts>(),
    .samples = wide_pair_samples,
};

WEFT_OPERATOR(leaky_relu) = {
    .schema = "aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    .inplace = "aten::leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)",
    .out = "aten::leaky_relu.out(Tensor self, Scalar negative_slope=0.01, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = LeakyRelu::meta_function(),
    .kernel = LeakyRelu::kernels(),
    .lower = LeakyRelu::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{leaky_relu_backward(v.grad(), v.input(0), v.arg<Scalar>(1), false)};
                }},
    .batch = pointwise_batch,
    .samples =
        [] {
          return Samples{{"plain", {f64({3, 4})}},
                         {"slope", {f64({3, 4}), -0.5}},
                         {"transposed", {transposed(f64({3, 4})), 0.2}},
                         {"f32", {f32({5}), 2}}};
        },
};

WEFT_OPERATOR(leaky_relu_backward) = {
    .schema =
        "aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool "
        "self_is_result) -> Tensor",
    .out =
        "aten::leaky_relu_backward.grad_input(Tensor grad_output, Tensor self, Scalar negative_slope, bool "
        "self_is_result, *, Tensor(a!) grad_input) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&leaky_relu_backward_meta>(),
    .kernel = lowered<&leaky_relu_backward_meta, &leaky_relu_backward_lower>(),
    .lower = lowering<&leaky_relu_backward_lower>(),
    .vjp = {.saves = inputs(1),
            .rule =
                [](const Vjp& v) {
                  return Grads{leaky_relu_backward(v.grad(), v.input(1), v.arg<Scalar>(2), v.arg<bool>(3)),
                               zeros_like(v.grad())};
                }},
    .batch = pointwise_batch,
    .decompose = function<&leaky_relu_backward_parts>(),
    .samples =
        [] {
          return Samples{{"plain", {f64({3, 4}), f64({3, 4}), 0.1, false}},
                         {"of_result", {f64({5}), f64({5}), 0.5, true}}};
        },
};

}  // namespace weft::ops
