// Activations with an exponential piece, with the operators of their derivatives.
#include "ops/decompositions/decompositions.h"
#include "ops/support/activation.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

// --- elu -------------------------------------------------------------------------------------------------

using Elu = Activation<cpu::kElu, Number, Number, Number>;
using OfInput = ActivationBackward<cpu::kEluBackward, Number, Number, Number>;

TensorSpec elu_backward_meta(const Tensor& grad, Number alpha, Number scale, Number input_scale,
                             bool is_result, const Tensor& self_or_result) {
  require(!is_result || alpha.to_double() >= 0,
          "In-place elu backward calculation is triggered with a negative slope which is not supported. This "
          "is caused by calling in-place forward function with a negative slope, please call out-of-place "
          "version instead.");
  return OfInput::meta(grad, self_or_result, alpha, scale, input_scale);
}
PointwiseCall elu_backward_lower(const Tensor& grad, Number alpha, Number scale, Number input_scale,
                                 bool is_result, const Tensor& self_or_result) {
  PointwiseCall call(is_result ? cpu::kEluBackwardOfResult : cpu::kEluBackward,
                     common_type(grad, self_or_result), {0, 5});
  add_params(call, 1, alpha, scale, input_scale);
  return call;
}
// Below zero the slope is an exponential of the input, and linear in the result.
Grads elu_backward_vjp(const Vjp& v) {
  Scalar alpha = v.arg<Scalar>(1), scale = v.arg<Scalar>(2), input_scale = v.arg<Scalar>(3);
  bool is_result = v.arg<bool>(4);
  Tensor x = v.input(5), product = v.grad() * v.input(0) * input_scale;
  Tensor bent = is_result ? product : elu_backward(product, alpha, scale, input_scale, false, x);
  return {elu_backward(v.grad(), alpha, scale, input_scale, is_result, x), bent * (x < 0)};
}

using Softplus = Activation<cpu::kSoftplus, Number, Number>;
using SoftplusBackward = ActivationBackward<cpu::kSoftplusBackward, Number, Number>;

}  // namespace

WEFT_OPERATOR(elu) = {
    .schema = "aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    .inplace =
        "aten::elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)",
    .out =
        "aten::elu.out(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1, *, Tensor(a!) out) "
        "-> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Elu::meta_function(),
    .kernel = Elu::kernels(),
    .lower = Elu::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{elu_backward(v.grad(), v.arg<Scalar>(1), v.arg<Scalar>(2), v.arg<Scalar>(3),
                                            false, v.input(0))};
                }},
    .batch = pointwise_batch,
    .samples =
        [] {
          return Samples{{"plain", {f64({3, 4})}},
                         {"scaled", {f64({3, 4}), 1.5, 0.75, 2}},
                         {"transposed", {transposed(f64({3, 4}))}},
                         {"f32", {f32({5})}}};
        },
};

WEFT_OPERATOR(elu_backward) = {
    .schema =
        "aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool "
        "is_result, Tensor self_or_result) -> Tensor",
    .out =
        "aten::elu_backward.grad_input(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, "
        "bool is_result, Tensor self_or_result, *, Tensor(a!) grad_input) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&elu_backward_meta>(),
    .kernel = lowered<&elu_backward_meta, &elu_backward_lower>(),
    .lower = lowering<&elu_backward_lower>(),
    .vjp = {.saves = inputs(0, 5), .rule = elu_backward_vjp},
    .batch = pointwise_batch,
    .decompose = function<&elu_backward_parts>(),
    .samples =
        [] {
          return Samples{{"of_input", {f64({3, 4}), 1.5, 0.75, 2, false, f64({3, 4})}},
                         {"of_result", {f64({3, 4}), 3, 0.75, 2, true, f64({3, 4})}},
                         {"f32", {f32({5}), 1, 1, 1, false, f32({5})}}};
        },
};

WEFT_OPERATOR(softplus) = {
    .schema = "aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    .out =
        "aten::softplus.out(Tensor self, Scalar beta=1, Scalar threshold=20, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = Softplus::meta_function(),
    .kernel = Softplus::kernels(),
    .lower = Softplus::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{softplus_backward(v.grad(), v.input(0), v.arg<Scalar>(1), v.arg<Scalar>(2))};
                }},
    .batch = pointwise_batch,
    .decompose = function<&softplus_parts>(),
    .samples =
        [] {
          return Samples{{"plain", {f64({3, 4})}},
                         {"threshold", {f64({3, 4}), 3, 2.5}},
                         {"transposed", {transposed(f64({3, 4}))}},
                         {"f32", {f32({5})}}};
        },
};

WEFT_OPERATOR(softplus_backward) = {
    .schema =
        "aten::softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
    .out =
        "aten::softplus_backward.grad_input(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold, "
        "*, Tensor(a!) grad_input) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = SoftplusBackward::meta_function(),
    .kernel = SoftplusBackward::kernels(),
    .lower = SoftplusBackward::lower_rule(),
    .vjp = {.saves = inputs(0, 1),
            .rule =
                [](const Vjp& v) {
                  Scalar beta = v.arg<Scalar>(2), threshold = v.arg<Scalar>(3);
                  Tensor scaled = v.input(1) * beta, product = v.grad() * v.input(0) * beta;
                  return Grads{softplus_backward(v.grad(), v.input(1), beta, threshold),
                               sigmoid_backward(product, sigmoid(scaled)) * (scaled < threshold)};
                }},
    .batch = pointwise_batch,
    .decompose = function<&softplus_backward_parts>(),
    .samples =
        [] {
          return Samples{{"plain", {f64({3, 4}), f64({3, 4}), 1, 20}},
                         {"threshold", {f64({3, 4}), f64({3, 4}), 3, 2.5}},
                         {"f32", {f32({5}), f32({5}), 1, 20}}};
        },
};

}  // namespace weft::ops
