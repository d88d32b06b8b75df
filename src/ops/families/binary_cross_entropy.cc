// The loss of probabilities against probabilities.
#include "ops/decompositions/steps.h"
#include "ops/support/checks.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

enum Reduce : int64_t { kNone = 0, kMean = 1, kSum = 2 };

TensorSpec bce_meta(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction) {
  const char* op = "binary_cross_entropy";
  require(is_floating(self.dtype()), "\"{}\" not implemented for '{}'", op, dtype_name(self.dtype()));
  require(may_be_same_sizes(self.sizes(), target.sizes()),
          "Using a target size ({}) that is different to the input size ({}) is deprecated. Please ensure "
          "they have the "
          "same size.",
          describe_sizes(target.sizes()), describe_sizes(self.sizes()));
  check_dtype(op, "target", target, self.dtype());
  if (weight.defined()) {
    check_dtype(op, "weight", weight, self.dtype());
    check_expandable(op, "weight", weight, self.sizes());
  }
  if (reduction != kNone) return contiguous_spec({}, self.dtype(), self.device());
  return contiguous_spec(self.sizes(), self.dtype(), self.device());
}
// Logarithms end at -100, so that a loss is a number.
Tensor bce_parts(const Tensor& self_, const Tensor& target_, const Tensor& weight, int64_t reduction) {
  const Steps steps(self_);
  Tensor self = steps.in(self_), target = steps.in(target_);
  auto least = [&] { return full({}, -100, self.dtype(), Layout::kStrided, self.device()); };
  Tensor missing = target - 1, no = log1p(-self), of_no = missing * maximum(no, least());
  Tensor yes = log(self), of_yes = target * maximum(yes, least()), losses = of_no - of_yes;
  if (weight.defined()) losses = losses * steps.in(weight);
  if (reduction == kMean) losses = mean(losses);
  if (reduction == kSum) losses = sum(losses);
  return steps.out(losses);
}
void bce_into(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
              const Tensor& out) {
  Tensor is_inside = logical_and(self >= 0, self <= 1);
  require(is_inside.all().item().to_bool(), "all elements of input should be between 0 and 1");
  copy_values(out, bce_parts(self, target, weight, reduction));
}

TensorSpec bce_backward_meta(const Tensor& grad, const Tensor& self, const Tensor& target,
                             const Tensor& weight, int64_t reduction) {
  const char* op = "binary_cross_entropy_backward";
  bce_meta(self, target, weight, reduction);
  check_dtype(op, "grad_output", grad, self.dtype());
  check_expandable(op, "grad_output", grad, self.sizes());
  return contiguous_spec(self.sizes(), self.dtype(), self.device());
}
Tensor bce_backward_parts(const Tensor& grad_, const Tensor& self_, const Tensor& target_,
                          const Tensor& weight, int64_t reduction) {
  const Steps steps(self_);
  Tensor grad = steps.in(grad_), self = steps.in(self_), target = steps.in(target_);
  Tensor slope = grad * (self - target), spread = clamp(self * (1 - self), Scalar(1e-12));
  Tensor result = slope / spread;
  if (weight.defined()) result = result * steps.in(weight);
  if (reduction == kMean) result = result / Scalar(self.numel());
  return steps.out(result);
}
void bce_backward_into(const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                       int64_t reduction, const Tensor& out) {
  copy_values(out, bce_backward_parts(grad, self, target, weight, reduction));
}

Tensor maybe(const Vjp& v, int argument) { return v.has(argument) ? v.input(argument) : Tensor(); }
Grads bce_vjp(const Vjp& v) {
  Tensor self = v.input(0), target = v.input(1), weight = maybe(v, 2);
  const auto reduction = v.arg<int64_t>(3);
  Tensor to_self, to_target;
  if (v.wants(0))
    to_self = binary_cross_entropy_backward(v.grad(), self, target, weight, Reduction(reduction));
  if (v.wants(1)) {
    to_target = clamp(log1p(-self) - log(self), Scalar(-100.0), Scalar(100.0)) * v.grad();
    if (weight.defined()) to_target = to_target * weight;
    if (reduction == kMean) to_target = to_target / Scalar(self.numel());
  }
  require(!v.has(2) || !v.wants(2),
          "The function 'binary_cross_entropy' is not differentiable with respect to argument 'weight'. This "
          "input "
          "cannot have requires_grad True.");
  return {to_self, to_target, Tensor()};
}
// The quotient (x - t) / (x (1 - x)) once more.
Grads bce_backward_vjp(const Vjp& v) {
  Tensor grad = v.input(0), self = v.input(1), target = v.input(2), weight = maybe(v, 3);
  const auto reduction = v.arg<int64_t>(4);
  require(!v.has(3) || !v.wants(3),
          "The function 'binary_cross_entropy_backward' is not differentiable with respect to argument "
          "'weight'. This "
          "input cannot have requires_grad True.");
  Tensor to_grad = binary_cross_entropy_backward(v.grad(), self, target, weight, Reduction(reduction));
  Tensor factor = v.grad() * grad;
  if (weight.defined()) factor = factor * weight;
  if (reduction == kMean) factor = factor / Scalar(self.numel());
  Tensor spread = clamp(self * (1 - self), Scalar(1e-12));
  Tensor to_self = factor * (self * self - 2 * self * target + target) / (spread * spread);
  return {to_grad, to_self, -factor / spread, Tensor()};
}

Tensor shares(SymIntSpan sizes) { return make(sizes, kFloat64, 0.05, 0.95); }

}  // namespace

WEFT_OPERATOR(binary_cross_entropy) = {
    .schema =
        "aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> "
        "Tensor",
    .out =
        "aten::binary_cross_entropy.out(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, *, "
        "Tensor(a!) out) -> Tensor(a!)",
    .meta = function<&bce_meta>(),
    .kernel = structured_exact<&bce_meta, &bce_into>(),
    .vjp = {.saves = inputs(0, 1, 2), .rule = bce_vjp},
    .batch = loop_batch,
    .decompose = function<&bce_parts>(),
    .samples =
        [] {
          return Samples{{"mean", {shares({3, 2}), shares({3, 2})}},
                         {"each", {shares({4}), shares({4}), Value(), 0}},
                         {"weighted", {shares({3, 2}), shares({3, 2}), positive({2}), 2}}};
        },
};

WEFT_OPERATOR(binary_cross_entropy_backward) = {
    .schema =
        "aten::binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? "
        "weight=None, int reduction=1) -> Tensor",
    .out =
        "aten::binary_cross_entropy_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, "
        "Tensor? weight=None, int reduction=1, *, Tensor(a!) grad_input) -> Tensor(a!)",
    .meta = function<&bce_backward_meta>(),
    .kernel = structured_exact<&bce_backward_meta, &bce_backward_into>(),
    .vjp = {.saves = inputs(0, 1, 2, 3), .rule = bce_backward_vjp},
    .batch = loop_batch,
    .decompose = function<&bce_backward_parts>(),
    .samples =
        [] {
          return Samples{{"mean", {f64({}), shares({3, 2}), shares({3, 2})}},
                         {"each", {f64({4}), shares({4}), shares({4}), Value(), 0}}};
        },
};

}  // namespace weft::ops
