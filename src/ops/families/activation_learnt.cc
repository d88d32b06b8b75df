// Activations made of others: mish, and prelu with a slope that is learnt.
#include "ops/decompositions/steps.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

// --- mish ------------------------------------------------------------------------------------------------

TensorSpec mish_meta(const Tensor& self) {
  require(is_floating(self.dtype()), "\"mish_cpu\" not implemented for '{}'", dtype_name(self.dtype()));
  return pointwise_spec({&self}, self.dtype());
}
Tensor mish_parts(const Tensor& self) {
  const Steps steps(self);
  Tensor x = steps.in(self);
  return steps.out(x * tanh(softplus(x)));
}
void mish_into(const Tensor& self, const Tensor& out) { copy_values(out, mish_parts(self)); }
// x tanh(s) with s = log(1 + e^x): tanh(s) + x (1 - tanh(s)^2) sigmoid(x).
Tensor mish_slope(const Tensor& x) {
  Tensor t = tanh(softplus(x));
  return t + x * (1 - t * t) * sigmoid(x);
}
Grads mish_vjp(const Vjp& v) { return {v.grad() * mish_slope(v.input(0))}; }

// --- prelu -----------------------------------------------------------------------------------------------

TensorSpec prelu_meta(const Tensor& self, const Tensor& weight) {
  require(self.dtype() == weight.dtype(), "prelu: Type promoting not supported. Got {} and {}",
          dtype_name(self.dtype()), dtype_name(weight.dtype()));
  require(is_floating(self.dtype()), "\"prelu_cpu\" not implemented for '{}'", dtype_name(self.dtype()));
  const SymInts sizes = broadcast_sizes(self.sizes(), weight.sizes());
  if (same_sizes(sizes, self.sizes())) return {self.dtype(), self.device(), sizes, preserved_strides(self)};
  return pointwise_spec({&self, &weight}, self.dtype());
}
Tensor prelu_parts(const Tensor& self, const Tensor& weight) {
  Tensor is_positive = self > 0;
  return where(is_positive, self, weight * self);
}
void prelu_into(const Tensor& self, const Tensor& weight, const Tensor& out) {
  copy_values(out, prelu_parts(self, weight));
}
std::tuple<TensorSpec, TensorSpec> prelu_backward_meta(const Tensor& grad, const Tensor& self,
                                                       const Tensor& weight) {
  prelu_meta(self, weight);
  TensorSpec spec = pointwise_spec({&grad, &self, &weight}, self.dtype());
  return {spec, spec};
}
std::tuple<Tensor, Tensor> prelu_backward_parts(const Tensor& grad, const Tensor& self,
                                                const Tensor& weight) {
  Tensor is_positive = self > 0, to_self = where(is_positive, grad, weight * grad);
  is_positive = self > 0;
  Tensor slope = self * grad;
  return {to_self, where(is_positive, Scalar(0.0), slope)};
}
void prelu_backward_into(const Tensor& grad, const Tensor& self, const Tensor& weight, const Tensor& to_self,
                         const Tensor& to_weight) {
  auto [a, b] = prelu_backward_parts(grad, self, weight);
  copy_values(to_self, a);
  copy_values(to_weight, b);
}
Grads prelu_vjp(const Vjp& v) {
  auto [to_self, to_weight] = _prelu_kernel_backward(v.grad(), v.input(0), v.input(1));
  return {to_self, to_weight};
}
Grads prelu_backward_vjp(const Vjp& v) {
  Tensor grad = v.input(0), self = v.input(1), weight = v.input(2), is_positive = self > 0;
  Tensor to_grad, to_self, to_weight;
  auto add_to = [](Tensor& sum, const Tensor& term) { sum = sum.defined() ? sum + term : term; };
  if (v.grad(0).defined()) {
    add_to(to_grad, where(is_positive, v.grad(0), v.grad(0) * weight));
    to_weight = where(is_positive, Scalar(0.0), v.grad(0) * grad);
  }
  if (v.grad(1).defined()) {
    add_to(to_grad, where(is_positive, Scalar(0.0), v.grad(1) * self));
    to_self = where(is_positive, Scalar(0.0), v.grad(1) * grad);
  }
  return {to_grad, to_self, to_weight};
}
// One slope for all, or one for each channel.
Tensor prelu_composite(const Tensor& self, const Tensor& weight_) {
  require(self.dtype() == weight_.dtype(), "prelu: Type promoting not supported. Got {} and {}",
          dtype_name(self.dtype()), dtype_name(weight_.dtype()));
  require(weight_.dim() <= 1, "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {}",
          weight_.dim());
  Tensor weight = weight_;
  if (!guard_or(weight.numel() == 1, false)) {
    require(self.dim() > 0, "Not allow zero-dim input tensor.");
    const SymInt channels = self.dim() > 1 ? self.size(1) : SymInt(1);
    require(guard_or(channels == weight.numel(), true),
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = {} and channel "
            "size = {}.",
            weight.numel().to_string(), channels.to_string());
  }
  if (self.dim() != weight.dim()) {
    SymInts shape(static_cast<size_t>(self.dim()), 1);
    if (self.dim() > 1) shape[1] = weight.numel();
    weight = reshape(weight, shape);
  }
  return _prelu_kernel(self, weight);
}

}  // namespace

WEFT_OPERATOR(mish) = {
    .schema = "aten::mish(Tensor self) -> Tensor",
    .inplace = "aten::mish_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::mish.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&mish_meta>(),
    .kernel = structured_exact<&mish_meta, &mish_into>(),
    .lower = not_lowered("it is three calls: softplus, tanh and a product"),
    .vjp = {.saves = inputs(0), .rule = mish_vjp},
    .batch = pointwise_batch,
    .decompose = function<&mish_parts>(),
    .samples =
        [] {
          return Samples{
              {"plain", {f64({3, 4})}}, {"transposed", {transposed(f64({3, 4}))}}, {"f32", {f32({5})}}};
        },
};

WEFT_OPERATOR(prelu) = {
    .schema = "aten::prelu(Tensor self, Tensor weight) -> Tensor",
    .composite = {.functional = function<&prelu_composite>()},
    .samples =
        [] { return Samples{{"one", {f64({2, 3}), f64({1})}}, {"channels", {f64({2, 3, 2}), f64({3})}}}; },
};

WEFT_OPERATOR(prelu_kernel) = {
    .schema = "aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
    .traits = Traits::kPointwise,
    .meta = function<&prelu_meta>(),
    .kernel = {.functional = structured_exact<&prelu_meta, &prelu_into>().functional},
    .lower = not_lowered("it is a comparison, a product and a choice"),
    .vjp = {.saves = inputs(0, 1), .rule = prelu_vjp},
    .batch = pointwise_batch,
    .decompose = function<&prelu_parts>(),
    .samples = [] { return Samples{{"plain", {f64({2, 3}), f64({1, 3})}}}; },
};

WEFT_OPERATOR(prelu_kernel_backward) = {
    .schema =
        "aten::_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
    .meta = function<&prelu_backward_meta>(),
    .kernel = {.functional = structured_exact<&prelu_backward_meta, &prelu_backward_into>().functional},
    .vjp = {.saves = inputs(0, 1, 2), .rule = prelu_backward_vjp},
    .batch = loop_batch,
    .decompose = function<&prelu_backward_parts>(),
    .samples = [] { return Samples{{"plain", {f64({2, 3}), f64({2, 3}), f64({1, 3})}}}; },
};

}  // namespace weft::ops
