// Activations of neural networks, with the operators of their derivatives.
#include "ops/decompositions/decompositions.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

Samples real_samples() {
  return {{"plain", {f64({3, 4})}},
          {"transposed", {transposed(f64({3, 4}))}},
          {"zero_dim", {f64({})}},
          {"empty", {f64({0, 2})}},
          {"f32", {f32({5})}}};
}
Samples complex_samples() {
  Samples all = real_samples();
  all.push_back({"complex", {c128({3})}});
  return all;
}
Samples pair_samples() { return {{"plain", {f64({3, 4}), f64({3, 4})}}, {"f32", {f32({5}), f32({5})}}}; }

// gelu, exact or by tanh.
bool uses_tanh(std::string_view approximate) {
  require(approximate == "none" || approximate == "tanh",
          "approximate argument must be either none or tanh, but got '{}'", approximate);
  return approximate == "tanh";
}
TensorSpec gelu_meta(const Tensor& self, std::string_view approximate) {
  uses_tanh(approximate);
  require_supported(cpu::kGelu, self.dtype());
  return pointwise_spec({&self}, self.dtype());
}
PointwiseCall gelu_lower(const Tensor& self, std::string_view approximate) {
  return {uses_tanh(approximate) ? cpu::kGeluTanh : cpu::kGelu, self.dtype(), {0}};
}
TensorSpec gelu_backward_meta(const Tensor& grad, const Tensor& self, std::string_view approximate) {
  require_supported(uses_tanh(approximate) ? cpu::kGeluTanhBackward : cpu::kGeluBackward,
                    common_type(grad, self));
  return pointwise_spec({&grad, &self}, common_type(grad, self));
}
PointwiseCall gelu_backward_lower(const Tensor& grad, const Tensor& self, std::string_view approximate) {
  return {
      uses_tanh(approximate) ? cpu::kGeluTanhBackward : cpu::kGeluBackward, common_type(grad, self), {0, 1}};
}

// d/dx of gelu's derivative, times both gradients: what double backward needs.
Tensor gelu_second(const Tensor& self, std::string_view approximate) {
  if (!uses_tanh(approximate)) return (2 - self * self) * (0.3989422804014327 * exp(-0.5 * (self * self)));
  constexpr double beta = 0.7978845608028654, kappa = 0.044715;
  Tensor square = self * self;
  Tensor inner = beta * (self + kappa * square * self), t = tanh(inner);
  Tensor slope = beta * (1 + 3 * kappa * square), bend = 6 * beta * kappa * self;
  Tensor sech = 1 - t * t;
  return sech * slope + 0.5 * self * sech * (bend - 2 * t * slope * slope);
}

TensorSpec threshold_backward_meta(const Tensor& grad, const Tensor& self, const Scalar&) {
  require_supported(cpu::kThresholdBackward, common_type(grad, self));
  // The first of the two decides the layout where they differ, and here that is the input.
  return pointwise_spec({&self, &grad}, common_type(grad, self));
}
PointwiseCall threshold_backward_lower(const Tensor& grad, const Tensor& self, const Scalar& threshold) {
  PointwiseCall call(cpu::kThresholdBackward, common_type(grad, self), {0, 1});
  call.add_param(2, threshold);
  return call;
}

}  // namespace

WEFT_OPERATOR(relu) = {
    .schema = "aten::relu(Tensor self) -> Tensor",
    .inplace = "aten::relu_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kRelu>::meta_function(),
    .kernel = Unary<cpu::kRelu>::exact_kernels(),
    .lower = Unary<cpu::kRelu>::lower_rule(),
    .vjp = {.saves = outputs(0),
            .rule = [](const Vjp& v) { return Grads{threshold_backward(v.grad(), v.output(), 0)}; }},
    .batch = pointwise_batch,
    .samples = real_samples,
};

WEFT_OPERATOR(tanh) = {
    .schema = "aten::tanh(Tensor self) -> Tensor",
    .inplace = "aten::tanh_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kTanh, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kTanh, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kTanh, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = outputs(0),
            .rule = [](const Vjp& v) { return Grads{tanh_backward(v.grad(), v.output())}; }},
    .batch = pointwise_batch,
    .samples = complex_samples,
};

WEFT_OPERATOR(sigmoid) = {
    .schema = "aten::sigmoid(Tensor self) -> Tensor",
    .inplace = "aten::sigmoid_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::sigmoid.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kSigmoid, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kSigmoid, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kSigmoid, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = outputs(0),
            .rule = [](const Vjp& v) { return Grads{sigmoid_backward(v.grad(), v.output())}; }},
    .batch = pointwise_batch,
    .samples = complex_samples,
};

WEFT_OPERATOR(silu) = {
    .schema = "aten::silu(Tensor self) -> Tensor",
    .inplace = "aten::silu_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::silu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = Unary<cpu::kSilu>::meta_function(),
    .kernel = Unary<cpu::kSilu>::exact_kernels(),
    .lower = Unary<cpu::kSilu>::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  require(!v.grad().is_complex(),
                          "silu does not support automatic differentiation for outputs with complex dtype.");
                  return Grads{silu_backward(v.grad(), v.input(0))};
                }},
    // Of complex numbers, too: the derivative is that of a holomorphic function.
    .jvp = [](const Jvp& j) { return std::vector<Tensor>{silu_backward(j.tangent(0), j.input(0))}; },
    .batch = pointwise_batch,
    .decompose = function<&silu_parts>(),
    .samples = real_samples,
};

WEFT_OPERATOR(tanh_backward) = {
    .schema = "aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
    .out =
        "aten::tanh_backward.grad_input(Tensor grad_output, Tensor output, *, Tensor(a!) grad_input) -> "
        "Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = Binary<cpu::kTanhBackward>::meta_function(),
    .kernel = Binary<cpu::kTanhBackward>::kernels(),
    .lower = Binary<cpu::kTanhBackward>::lower_rule(),
    .vjp = {.saves = inputs(0, 1),
            .rule =
                [](const Vjp& v) {
                  Tensor grad = v.input(0), y = v.input(1);
                  return Grads{tanh_backward(v.grad(), conj_of(y)),
                               conj_of(v.grad()) * grad * (-2 * conj_of(y))};
                }},
    .batch = pointwise_batch,
    .decompose = function<&tanh_backward_parts>(),
    .samples = pair_samples,
};

WEFT_OPERATOR(sigmoid_backward) = {
    .schema = "aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    .out =
        "aten::sigmoid_backward.grad_input(Tensor grad_output, Tensor output, *, Tensor(a!) grad_input) -> "
        "Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = Binary<cpu::kSigmoidBackward>::meta_function(),
    .kernel = Binary<cpu::kSigmoidBackward>::kernels(),
    .lower = Binary<cpu::kSigmoidBackward>::lower_rule(),
    .vjp = {.saves = inputs(0, 1),
            .rule =
                [](const Vjp& v) {
                  Tensor grad = v.input(0), y = v.input(1);
                  return Grads{sigmoid_backward(v.grad(), conj_of(y)),
                               conj_of(v.grad()) * grad * conj_of(1 - 2 * y)};
                }},
    .batch = pointwise_batch,
    .decompose = function<&sigmoid_backward_parts>(),
    .samples = pair_samples,
};

WEFT_OPERATOR(silu_backward) = {
    .schema = "aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor",
    .out =
        "aten::silu_backward.grad_input(Tensor grad_output, Tensor self, *, Tensor(a!) grad_input) -> "
        "Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = Binary<cpu::kSiluBackward>::meta_function(),
    .kernel = Binary<cpu::kSiluBackward>::kernels(),
    .lower = Binary<cpu::kSiluBackward>::lower_rule(),
    .vjp = {.saves = inputs(0, 1),
            .rule =
                [](const Vjp& v) {
                  Tensor grad = conj_of(v.input(0)), x = conj_of(v.input(1)), s = sigmoid(x);
                  Tensor second = s * (1 - s) * (2 + x * (1 - 2 * s));
                  return Grads{silu_backward(v.grad(), x), v.grad() * grad * second};
                }},
    .batch = pointwise_batch,
    .decompose = function<&silu_backward_parts>(),
    .samples = pair_samples,
};

WEFT_OPERATOR(threshold_backward) = {
    .schema = "aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    .out =
        "aten::threshold_backward.grad_input(Tensor grad_output, Tensor self, Scalar threshold, *, "
        "Tensor(a!) grad_input) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&threshold_backward_meta>(),
    .kernel = lowered<&threshold_backward_meta, &threshold_backward_lower>(),
    .lower = lowering<&threshold_backward_lower>(),
    .vjp = {.saves = inputs(1),
            .rule =
                [](const Vjp& v) {
                  return Grads{threshold_backward(v.grad(), v.input(1), v.arg<Scalar>(2)),
                               zeros_like(v.grad())};
                }},
    .batch = pointwise_batch,
    .decompose = function<&threshold_backward_parts>(),
    .samples =
        [] { return Samples{{"plain", {f64({3, 4}), f64({3, 4}), 0}}, {"f32", {f32({5}), f32({5}), 0.5}}}; },
};

WEFT_OPERATOR(gelu) = {
    .schema = "aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
    .inplace = "aten::gelu_(Tensor(a!) self, *, str approximate=\"none\") -> Tensor(a!)",
    .out = "aten::gelu.out(Tensor self, *, str approximate=\"none\", Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&gelu_meta>(),
    .kernel = lowered_exact<&gelu_meta, &gelu_lower>(),
    .lower = lowering<&gelu_lower>(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{gelu_backward(v.grad(), v.input(0), v.arg<std::string_view>(1))};
                }},
    .batch = pointwise_batch,
    .samples =
        [] {
          return Samples{{"exact", {f64({3, 4})}}, {"tanh", {f64({3, 4}), "tanh"}}, {"f32", {f32({5})}}};
        },
};

WEFT_OPERATOR(gelu_backward) = {
    .schema = "aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\") -> Tensor",
    .out =
        "aten::gelu_backward.grad_input(Tensor grad_output, Tensor self, *, str approximate=\"none\", "
        "Tensor(a!) grad_input) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&gelu_backward_meta>(),
    .kernel = lowered<&gelu_backward_meta, &gelu_backward_lower>(),
    .lower = lowering<&gelu_backward_lower>(),
    .vjp = {.saves = inputs(0, 1),
            .rule =
                [](const Vjp& v) {
                  auto approximate = v.arg<std::string_view>(2);
                  Tensor second =
                      v.wants(1) ? v.grad() * v.input(0) * gelu_second(v.input(1), approximate) : Tensor();
                  return Grads{gelu_backward(v.grad(), v.input(1), approximate), second};
                }},
    .batch = pointwise_batch,
    .decompose = function<&gelu_backward_parts>(),
    .samples =
        [] {
          return Samples{{"exact", {f64({3, 4}), f64({3, 4})}}, {"tanh", {f64({3, 4}), f64({3, 4}), "tanh"}}};
        },
};

}  // namespace weft::ops
