// Functions of one number: exponentials, logarithms, roots, circles, signs.
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
  all.push_back({"integers", {i64({4})}});
  return all;
}
// Where negative numbers have no value.
Samples positive_samples() {
  return {{"plain", {positive({3, 4})}},
          {"zero_dim", {positive({})}},
          {"empty", {f64({0})}},
          {"complex", {c128({3})}}};
}
// The magnitude of complex numbers is real, in the very layout of the input.
TensorSpec abs_meta(const Tensor& self) {
  require(self.dtype() != kBool, "\"abs_cpu\" not implemented for 'bool'");
  if (!self.is_complex()) return pointwise_spec({&self}, self.dtype());
  return {real_type(self.dtype()), self.device(), SymInts(self.sizes()), preserved_strides(self)};
}
PointwiseCall abs_lower(const Tensor& self) { return {cpu::kAbs, self.dtype(), {0}}; }
using Abs = StructuredForms<&abs_meta, &LoweredKernel<&abs_lower>::into, true>;
const Tensor& abs_inplace(const Tensor& self) {
  require(!self.is_complex(), "In-place abs is not supported for complex tensors.");
  return Abs::inplace(self);
}
// The magnitude of complex numbers is converted to any real type; no other result is.
bool takes_abs(const Tensor& self, DType target) {
  return target == self.dtype() || (self.is_complex() && !is_complex(target));
}
const Tensor& abs_out_kernel(const Tensor& self, const Tensor& out) {
  require(takes_abs(self, out.dtype()), "Found dtype {} but expected {}", dtype_name(out.dtype()),
          dtype_name(self.dtype()));
  return Abs::out(self, out);
}

Tensor absolute_composite(const Tensor& self) { return abs(self); }
const Tensor& absolute_inplace(const Tensor& self) { return abs_(self); }
const Tensor& absolute_out_composite(const Tensor& self, const Tensor& out) { return abs_out(out, self); }

Samples truth_samples() {
  return {{"bool", {boolean({3, 4})}}, {"real", {f64({3})}}, {"integers", {i64({4})}}};
}
Samples integer_samples() { return {{"integers", {i64({4})}}, {"bool", {boolean({2, 3})}}}; }

}  // namespace

WEFT_OPERATOR(abs) = {
    .schema = "aten::abs(Tensor self) -> Tensor",
    .inplace = "aten::abs_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&abs_meta>(),
    .kernel = {.functional = function<&Abs::functional>(),
               .inplace = function<&abs_inplace>(),
               .out = function<&abs_out_kernel>(),
               .takes_out_type = [](Args args, DType,
                                    DType target) { return takes_abs(args[0].as_tensor(), target); }},
    .lower = lowering<&abs_lower>(),
    .vjp = {.saves = inputs(0), .rule = [](const Vjp& v) { return Grads{v.grad() * sgn(v.input(0))}; }},
    .batch = pointwise_batch,
    .samples = complex_samples,
};

WEFT_OPERATOR(absolute) = {
    .schema = "aten::absolute(Tensor self) -> Tensor",
    .inplace = "aten::absolute_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::absolute.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .composite = {.functional = function<&absolute_composite>(),
                  .inplace = function<&absolute_inplace>(),
                  .out = function<&absolute_out_composite>()},
    .samples = [] { return Samples{{"real", {f64({3, 4})}}, {"integers", {i64({4})}}}; },
};

WEFT_OPERATOR(exp) = {
    .schema = "aten::exp(Tensor self) -> Tensor",
    .inplace = "aten::exp_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::exp.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kExp, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kExp, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kExp, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = outputs(0),
            .rule = [](const Vjp& v) { return Grads{times_conj(v.grad(), v.output())}; }},
    .batch = pointwise_batch,
    .samples = complex_samples,
};

WEFT_OPERATOR(expm1) = {
    .schema = "aten::expm1(Tensor self) -> Tensor",
    .inplace = "aten::expm1_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::expm1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kExpm1, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kExpm1, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kExpm1, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = outputs(0),
            .rule = [](const Vjp& v) { return Grads{times_conj(v.grad(), v.output() + 1)}; }},
    .batch = pointwise_batch,
    .samples = complex_samples,
};

WEFT_OPERATOR(log) = {
    .schema = "aten::log(Tensor self) -> Tensor",
    .inplace = "aten::log_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::log.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kLog, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kLog, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kLog, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = inputs(0), .rule = [](const Vjp& v) { return Grads{v.grad() / conj_of(v.input(0))}; }},
    .batch = pointwise_batch,
    .samples = positive_samples,
};

WEFT_OPERATOR(log1p) = {
    .schema = "aten::log1p(Tensor self) -> Tensor",
    .inplace = "aten::log1p_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::log1p.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kLog1p, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kLog1p, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kLog1p, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule = [](const Vjp& v) { return Grads{v.grad() / conj_of(v.input(0) + 1)}; }},
    .batch = pointwise_batch,
    .samples = positive_samples,
};

WEFT_OPERATOR(sqrt) = {
    .schema = "aten::sqrt(Tensor self) -> Tensor",
    .inplace = "aten::sqrt_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::sqrt.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kSqrt, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kSqrt, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kSqrt, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = outputs(0),
            .rule = [](const Vjp& v) { return Grads{v.grad() / (2 * conj_of(v.output()))}; }},
    .batch = pointwise_batch,
    .samples = positive_samples,
};

WEFT_OPERATOR(rsqrt) = {
    .schema = "aten::rsqrt(Tensor self) -> Tensor",
    .inplace = "aten::rsqrt_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::rsqrt.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kRsqrt, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kRsqrt, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kRsqrt, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = outputs(0),
            .rule = [](const Vjp& v) { return Grads{-0.5 * v.grad() * conj_of(pow(v.output(), 3))}; }},
    .batch = pointwise_batch,
    .samples = positive_samples,
};

WEFT_OPERATOR(sin) = {
    .schema = "aten::sin(Tensor self) -> Tensor",
    .inplace = "aten::sin_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::sin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kSin, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kSin, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kSin, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule = [](const Vjp& v) { return Grads{times_conj(v.grad(), cos(v.input(0)))}; }},
    .batch = pointwise_batch,
    .samples = complex_samples,
};

WEFT_OPERATOR(cos) = {
    .schema = "aten::cos(Tensor self) -> Tensor",
    .inplace = "aten::cos_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::cos.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kCos, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kCos, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kCos, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule = [](const Vjp& v) { return Grads{times_conj(v.grad(), -sin(v.input(0)))}; }},
    .batch = pointwise_batch,
    .samples = complex_samples,
};

WEFT_OPERATOR(erf) = {
    .schema = "aten::erf(Tensor self) -> Tensor",
    .inplace = "aten::erf_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::erf.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kErf, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kErf, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kErf, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) { return Grads{1.1283791670955126 * exp(-pow(v.input(0), 2)) * v.grad()}; }},
    .batch = pointwise_batch,
    .samples = real_samples,
};

WEFT_OPERATOR(floor) = {
    .schema = "aten::floor(Tensor self) -> Tensor",
    .inplace = "aten::floor_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::floor.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kFloor>::meta_function(),
    .kernel = Unary<cpu::kFloor>::exact_kernels(),
    .lower = Unary<cpu::kFloor>::lower_rule(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad())}; }},
    .batch = pointwise_batch,
    .samples = real_samples,
};

WEFT_OPERATOR(ceil) = {
    .schema = "aten::ceil(Tensor self) -> Tensor",
    .inplace = "aten::ceil_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::ceil.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kCeil>::meta_function(),
    .kernel = Unary<cpu::kCeil>::exact_kernels(),
    .lower = Unary<cpu::kCeil>::lower_rule(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad())}; }},
    .batch = pointwise_batch,
    .samples = real_samples,
};

WEFT_OPERATOR(sign) = {
    .schema = "aten::sign(Tensor self) -> Tensor",
    .inplace = "aten::sign_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::sign.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kSign>::meta_function(),
    .kernel = Unary<cpu::kSign>::exact_kernels(),
    .lower = Unary<cpu::kSign>::lower_rule(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad())}; }},
    .batch = pointwise_batch,
    .samples = real_samples,
};

WEFT_OPERATOR(logical_not) = {
    .schema = "aten::logical_not(Tensor self) -> Tensor",
    .inplace = "aten::logical_not_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::logical_not.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = Unary<cpu::kLogicalNot, TypeRule::kBool>::meta_function(),
    .kernel = Unary<cpu::kLogicalNot, TypeRule::kBool>::kernels(),
    .lower = Unary<cpu::kLogicalNot, TypeRule::kBool>::lower_rule(),
    .batch = pointwise_batch,
    .samples = truth_samples,
};

WEFT_OPERATOR(bitwise_not) = {
    .schema = "aten::bitwise_not(Tensor self) -> Tensor",
    .inplace = "aten::bitwise_not_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::bitwise_not.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = Unary<cpu::kBitwiseNot>::meta_function(),
    .kernel = Unary<cpu::kBitwiseNot>::exact_kernels(),
    .lower = Unary<cpu::kBitwiseNot>::lower_rule(),
    .batch = pointwise_batch,
    .samples = integer_samples,
};

// sgn(z) = z / |z|; for real numbers the sign.
namespace {
TensorSpec sgn_meta(const Tensor& self) { return pointwise_spec({&self}, self.dtype()); }
PointwiseCall sgn_lower(const Tensor& self) { return {cpu::kSgn, self.dtype(), {0}}; }

// Of the function of a complex argument, what is left of the gradient across the direction of z.
Grads sgn_vjp(const Vjp& v) {
  Tensor self = v.input(0);
  if (!self.is_complex()) return {zeros_like(v.grad())};
  Tensor magnitude = abs(self), direction = v.output();
  Tensor across = (v.grad() / magnitude - real(v.grad() / direction / magnitude) * direction);
  return {where(magnitude == 0, Scalar(0), across)};
}
}  // namespace

WEFT_OPERATOR(sgn) = {
    .schema = "aten::sgn(Tensor self) -> Tensor",
    .inplace = "aten::sgn_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::sgn.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&sgn_meta>(),
    .kernel = lowered_exact<&sgn_meta, &sgn_lower>(),
    .lower = lowering<&sgn_lower>(),
    .vjp = {.saves = inputs(0) | outputs(0), .rule = sgn_vjp},
    .batch = pointwise_batch,
    .decompose = function<&sgn_parts>(),
    .samples = complex_samples,
};

WEFT_OPERATOR(isnan) = {
    .schema = "aten::isnan(Tensor self) -> Tensor",
    .out = "aten::isnan.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = Unary<cpu::kIsNan, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kIsNan, TypeRule::kFloat>::exact_kernels(),
    .lower = Unary<cpu::kIsNan, TypeRule::kFloat>::lower_rule(),
    .batch = pointwise_batch,
    .samples = real_samples,
};

namespace {
Tensor square_composite(const Tensor& self) { return pow(self, 2); }
const Tensor& square_inplace(const Tensor& self) { return pow_(self, 2); }
constexpr KernelSet square_forms() {
  KernelSet forms = composite<&square_composite>();
  forms.inplace = function<&square_inplace>();
  return forms;
}
}  // namespace

WEFT_OPERATOR(square) = {
    .schema = "aten::square(Tensor self) -> Tensor",
    .inplace = "aten::square_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::square.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .composite = square_forms(),
    .samples = complex_samples,
};

}  // namespace weft::ops
