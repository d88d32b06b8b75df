// Powers, extremes of two, clamps, and logic.
#include "ops/decompositions/decompositions.h"
#include "ops/support/family.h"
#include "ops/support/fill.h"
#include "ops/support/number_range.h"

namespace weft::ops {
namespace {

using MaybeScalar = std::optional<Scalar>;

Samples pair_samples() {
  return {{"same_shape", {f64({3, 4}), transposed(f64({3, 4}))}},
          {"broadcast", {f64({3, 1}), f64({4})}},
          {"mixed", {f32({3}), i64({3})}},
          {"empty", {f64({0}), f64({1})}}};
}
Samples integer_pair_samples() {
  return {{"integers", {i64({4}), i64({4})}}, {"bool", {boolean({2, 3}), boolean({3})}}};
}

// --- pow -------------------------------------------------------------------------------------------------

void check_integer_power(DType type, const Scalar& exponent) {
  bool negative =
      !exponent.is_floating() && !exponent.is_complex() && !exponent.is_symbolic() && exponent.to_int() < 0;
  require(type > kInt64 || !negative, "Integers to negative integer powers are not allowed.");
}
TensorSpec pow_scalar_meta(const Tensor& self, const Scalar& exponent) {
  DType type = common_type(self, exponent);
  check_integer_power(type, exponent);
  require_supported(cpu::kPow, type);
  return pointwise_spec({&self}, type);
}
// Whether the exponent is this one, as a real number or as a complex one.
bool is_number(const Scalar& exponent, double value) {
  if (!exponent.is_complex()) return exponent.equals_number(value);
  const Complex<double> z = exponent.to_complex();
  return z.re == value && z.im == 0;
}
PointwiseCall pow_scalar_lower(const Tensor& self, const Scalar& exponent) {
  const DType type = common_type(self, exponent);
  if (is_number(exponent, 2)) return {cpu::kSquare, type, {0}};
  if (is_number(exponent, 1)) return {cpu::kCopy, type, {0}};  // as the derivative of a square asks for
  if (is_complex(type)) {
    if (is_number(exponent, 0)) return filling_call(1, type);  // whatever the base is
    if (is_number(exponent, -1)) return {cpu::kReciprocal, type, {0}};
    if (is_number(exponent, 3)) return {cpu::kCube, type, {0}};
    if (is_number(exponent, -2)) return {cpu::kInverseSquare, type, {0}};
  }
  // Half precision is rounded from pow; the others differ from it at -0 and -inf.
  const bool has_roots = type > kInt64 && type != kFloat16;
  if (has_roots && is_number(exponent, 0.5)) return {cpu::kSqrt, type, {0}};
  if (has_roots && is_number(exponent, -0.5)) return {cpu::kRsqrt, type, {0}};
  if (type <= kInt64 || type == kFloat16 || type == kBFloat16) require_fits(exponent, type);
  return {cpu::kPow, type, {0, 1}};
}
TensorSpec pow_base_meta(const Scalar& self, const Tensor& exponent) {
  DType type = common_type(self, exponent);
  require_supported(cpu::kPow, type);
  return pointwise_spec({&exponent}, type);
}
PointwiseCall pow_base_lower(const Scalar& self, const Tensor& exponent) {
  return {cpu::kPow, common_type(self, exponent), {0, 1}};
}

// d(x^n)/dx = n x^(n-1), and zero for n = 0 whatever x is.
Tensor pow_self_gradient(const Tensor& grad, const Tensor& self, const Scalar& exponent) {
  if (exponent.equals_number(0)) return zeros_like(grad);
  if (exponent.is_complex())
    return grad * conj_of(exponent * pow(self, exponent.to_complex() - Complex<double>(1)));
  const double real = exponent.to_double();
  return grad * conj_of(real * pow(self, real - 1));
}
Tensor pow_self_gradient(const Tensor& grad, const Tensor& self, const Tensor& exponent) {
  Tensor flowing = grad * conj_of(exponent * pow(self, exponent - 1)), zero = zero_beside(grad);
  return where(exponent == 0.0, zero, flowing);
}
// d(x^y)/dy = x^y log x; where x is 0 and y is not negative the power is 0 and so is the slope.
Tensor pow_exponent_gradient(const Tensor& grad, const Tensor& self, const Tensor& exponent,
                             const Tensor& result) {
  Tensor is_real_power = exponent.is_complex() ? Tensor() : exponent >= 0, flat = self == 0;
  if (is_real_power.defined()) flat = logical_and(flat, is_real_power);
  Tensor steep = result * log(self);
  return grad * conj_of(where(flat, Scalar(0.0), steep));
}

// --- maximum, minimum ------------------------------------------------------------------------------------

// Equal operands share the gradient.
template <bool larger>
Grads extreme_vjp(const Vjp& v) {
  Tensor self = v.input(0), other = v.input(1);
  Tensor shared = v.grad() / 2, half = where(self == other, shared, v.grad());
  // Where a NaN is among them neither is less, and both get the gradient.
  const bool both = v.wants(0) && v.wants(1);
  auto kept = [&](const Tensor& is_less) {
    return both ? masked_fill(half, is_less, 0) : masked_fill_(half, is_less, 0);
  };
  Tensor to_other = v.wants(1) ? kept(larger ? self > other : self < other) : Tensor();
  Tensor to_self = v.wants(0) ? kept(larger ? self < other : self > other) : Tensor();
  return {to_self, to_other};
}
Tensor max_other_composite(const Tensor& self, const Tensor& other) { return maximum(self, other); }
Tensor min_other_composite(const Tensor& self, const Tensor& other) { return minimum(self, other); }

// --- clamp -----------------------------------------------------------------------------------------------

DType clamp_type(const Tensor& self, const MaybeScalar& min, const MaybeScalar& max) {
  require(min || max, "torch.clamp: At least one of 'min' or 'max' must not be None");
  require(!self.is_complex() && !(min && min->is_complex()) && !(max && max->is_complex()),
          "clamp is not supported for complex types");
  TypePromotion promotion;
  promotion.add(self);
  if (min) promotion.add(*min);
  if (max) promotion.add(*max);
  require_supported(cpu::kClamp, promotion.result());
  return promotion.result();
}
TensorSpec clamp_meta(const Tensor& self, const MaybeScalar& min, const MaybeScalar& max) {
  return pointwise_spec({&self}, clamp_type(self, min, max));
}
PointwiseCall clamp_lower(const Tensor& self, const MaybeScalar& min, const MaybeScalar& max) {
  DType type = clamp_type(self, min, max);
  PointwiseCall call(min && max ? cpu::kClamp : min ? cpu::kClampMin : cpu::kClampMax, type, {0});
  uint8_t argument = 0;
  for (const MaybeScalar* bound : {&min, &max}) {
    ++argument;
    if (!*bound) continue;
    require_fits(**bound, type);
    call.add_param(argument, **bound);
  }
  return call;
}
Tensor clamp_functional(const Tensor& self, const MaybeScalar& min, const MaybeScalar& max) {
  const PointwiseCall call = clamp_lower(self, min, max);
  Tensor out = allocate(pointwise_spec({&self}, call.compute));
  run_call(call, out, self);
  return out;
}
Tensor inside(const Tensor& self, const MaybeScalar& min, const MaybeScalar& max) {
  if (!min || !max) return min ? self >= *min : self <= *max;
  Tensor above = self >= *min, below = self <= *max;
  return logical_and_(above, below);
}

DType clamp_tensor_type(const Tensor& self, const Tensor& min, const Tensor& max) {
  require(min.defined() || max.defined(), "torch.clamp: At least one of 'min' or 'max' must not be None");
  DType type = common_type(self, min, max);
  require(!is_complex(type), "clamp is not implemented for complex tensors.");
  require(type != kBool || !min.defined() || !max.defined(), "\"clamp_cpu\" not implemented for '{}'",
          dtype_name(type));
  return type;
}
TensorSpec clamp_tensor_meta(const Tensor& self, const Tensor& min, const Tensor& max) {
  return pointwise_spec({&self, &min, &max}, clamp_tensor_type(self, min, max));
}
PointwiseCall clamp_tensor_lower(const Tensor& self, const Tensor& min, const Tensor& max) {
  DType type = clamp_tensor_type(self, min, max);
  if (min.defined() && max.defined()) return {cpu::kClampTensor, type, {0, 1, 2}};
  if (min.defined()) return {cpu::kMaximum, type, {0, 1}};
  return {cpu::kMinimum, type, {0, 2}};
}
Grads clamp_tensor_vjp(const Vjp& v) {
  Tensor self = v.input(0), min = v.has(1) ? v.input(1) : Tensor(), max = v.has(2) ? v.input(2) : Tensor();
  Tensor grad = v.grad(), to_min, to_max;
  if (min.defined() && max.defined()) {
    Tensor kept = masked(grad, logical_and(self >= min, self <= max));
    to_min = masked(grad, logical_and(self < min, min < max));
    to_max = masked(grad, logical_or(self > max, max < min));
    return {kept, to_min, to_max};
  }
  if (min.defined()) return {masked(grad, self >= min), masked(grad, self < min), Tensor()};
  return {masked(grad, self <= max), Tensor(), masked(grad, self > max)};
}

}  // namespace

WEFT_OPERATOR(pow_tensor_scalar) = {
    .schema = "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    .inplace = "aten::pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
    .out = "aten::pow.Tensor_Scalar_out(Tensor self, Scalar exponent, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&pow_scalar_meta>(),
    .kernel = lowered<&pow_scalar_meta, &pow_scalar_lower>(),
    .lower = lowering<&pow_scalar_lower>(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{pow_self_gradient(v.grad(), v.input(0), v.arg<Scalar>(1))};
                }},
    .batch = pointwise_batch,
    .samples =
        [] {
          return Samples{{"square", {f64({3, 4}), 2}},
                         {"cube", {f64({3}), 3}},
                         {"real", {positive({3}), 1.5}},
                         {"integers", {i64({4}), 3}},
                         {"zero", {f64({3}), 0}}};
        },
};

WEFT_OPERATOR(pow_tensor_tensor) = {
    .schema = "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    .inplace = "aten::pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)",
    .out = "aten::pow.Tensor_Tensor_out(Tensor self, Tensor exponent, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Binary<cpu::kPow>::meta_function(),
    .kernel = Binary<cpu::kPow>::kernels(),
    .lower = Binary<cpu::kPow>::lower_rule(),
    .vjp = {.saves = inputs(0, 1) | outputs(0),
            .rule =
                [](const Vjp& v) {
                  Tensor self = v.input(0), exponent = v.input(1);
                  Tensor to_exponent =
                      v.wants(1) ? pow_exponent_gradient(v.grad(), self, exponent, v.output()) : Tensor();
                  return Grads{v.wants(0) ? pow_self_gradient(v.grad(), self, exponent) : Tensor(),
                               to_exponent};
                }},
    .batch = pointwise_batch,
    .samples =
        [] {
          return Samples{{"positive", {positive({3, 4}), f64({3, 4})}},
                         {"broadcast", {positive({3, 1}), f64({4})}},
                         {"integers", {i64({4}), i64({4}, 0, 4)}}};
        },
};

WEFT_OPERATOR(pow_scalar) = {
    .schema = "aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    .out = "aten::pow.Scalar_out(Scalar self, Tensor exponent, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&pow_base_meta>(),
    .kernel = lowered<&pow_base_meta, &pow_base_lower>(),
    .lower = lowering<&pow_base_lower>(),
    .vjp = {.saves = inputs(1) | outputs(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{pow_exponent_gradient(v.grad(), wrapped_number(v.arg<Scalar>(0)), v.input(1),
                                                     v.output())};
                }},
    .batch = pointwise_batch,
    .samples = [] { return Samples{{"real", {2.5, f64({3, 4})}}, {"integers", {2, i64({4}, 0, 5)}}}; },
};

WEFT_OPERATOR(maximum) = {
    .schema = "aten::maximum(Tensor self, Tensor other) -> Tensor",
    .out = "aten::maximum.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kCommutative,
    .meta = Binary<cpu::kMaximum>::meta_function(),
    .kernel = Binary<cpu::kMaximum>::kernels(),
    .lower = Binary<cpu::kMaximum>::lower_rule(),
    .vjp = {.saves = inputs(0, 1), .rule = extreme_vjp<true>},
    .batch = pointwise_batch,
    .samples = pair_samples,
};

WEFT_OPERATOR(minimum) = {
    .schema = "aten::minimum(Tensor self, Tensor other) -> Tensor",
    .out = "aten::minimum.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kCommutative,
    .meta = Binary<cpu::kMinimum>::meta_function(),
    .kernel = Binary<cpu::kMinimum>::kernels(),
    .lower = Binary<cpu::kMinimum>::lower_rule(),
    .vjp = {.saves = inputs(0, 1), .rule = extreme_vjp<false>},
    .batch = pointwise_batch,
    .samples = pair_samples,
};

WEFT_OPERATOR(max_other) = {
    .schema = "aten::max.other(Tensor self, Tensor other) -> Tensor",
    .out = "aten::max.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .composite = composite<&max_other_composite>(),
    .samples = pair_samples,
};

WEFT_OPERATOR(min_other) = {
    .schema = "aten::min.other(Tensor self, Tensor other) -> Tensor",
    .out = "aten::min.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .composite = composite<&min_other_composite>(),
    .samples = pair_samples,
};

WEFT_OPERATOR(clamp) = {
    .schema = "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    .inplace = "aten::clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)",
    .out =
        "aten::clamp.out(Tensor self, Scalar? min=None, Scalar? max=None, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&clamp_meta>(),
    .kernel = with_functional<&clamp_functional>(lowered_exact<&clamp_meta, &clamp_lower>()),
    .lower = lowering<&clamp_lower>(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  Tensor zero = zero_beside(v.grad());
                  Tensor kept = inside(v.input(0), v.arg<MaybeScalar>(1), v.arg<MaybeScalar>(2));
                  return Grads{where(kept, v.grad(), zero)};
                }},
    .batch = pointwise_batch,
    .samples =
        [] {
          return Samples{{"both", {f64({3, 4}), -0.5, 0.5}},
                         {"min", {f64({3, 4}), 0}},
                         {"max", {f64({3}), Value(), 0.3}},
                         {"integers", {i64({5}), -1, 2}}};
        },
};

WEFT_OPERATOR(clamp_tensor) = {
    .schema = "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    .inplace = "aten::clamp_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)",
    .out =
        "aten::clamp.Tensor_out(Tensor self, Tensor? min=None, Tensor? max=None, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&clamp_tensor_meta>(),
    .kernel = lowered<&clamp_tensor_meta, &clamp_tensor_lower>(),
    .lower = lowering<&clamp_tensor_lower>(),
    .vjp = {.saves = inputs(0, 1, 2), .rule = clamp_tensor_vjp},
    .batch = pointwise_batch,
    .samples =
        [] {
          return Samples{{"both", {f64({3, 4}), make({4}, kFloat64, -1, -0.2), make({4}, kFloat64, 0.2, 1)}},
                         {"min", {f64({3}), f64({})}}};
        },
};

namespace {
template <bool is_min>
struct OneSided {
  static TensorSpec meta(const Tensor& self, const Scalar& bound) {
    return is_min ? clamp_meta(self, bound, {}) : clamp_meta(self, {}, bound);
  }
  static PointwiseCall lower(const Tensor& self, const Scalar& bound) {
    PointwiseCall call = is_min ? clamp_lower(self, bound, {}) : clamp_lower(self, {}, bound);
    call.param_arguments[0] = 1;
    return call;
  }
  static Grads vjp(const Vjp& v) {
    Tensor zero = zero_beside(v.grad());
    return {where(is_min ? v.input(0) >= v.arg<Scalar>(1) : v.input(0) <= v.arg<Scalar>(1), v.grad(), zero)};
  }
};
}  // namespace

WEFT_OPERATOR(clamp_min) = {
    .schema = "aten::clamp_min(Tensor self, Scalar min) -> Tensor",
    .inplace = "aten::clamp_min_(Tensor(a!) self, Scalar min) -> Tensor(a!)",
    .out = "aten::clamp_min.out(Tensor self, Scalar min, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&OneSided<true>::meta>(),
    .kernel = lowered_exact<&OneSided<true>::meta, &OneSided<true>::lower>(),
    .lower = lowering<&OneSided<true>::lower>(),
    .vjp = {.saves = inputs(0), .rule = OneSided<true>::vjp},
    .batch = pointwise_batch,
    .decompose = function<&clamp_min_parts>(),
    .samples = [] { return Samples{{"real", {f64({3, 4}), 0.1}}}; },
};

WEFT_OPERATOR(clamp_max) = {
    .schema = "aten::clamp_max(Tensor self, Scalar max) -> Tensor",
    .inplace = "aten::clamp_max_(Tensor(a!) self, Scalar max) -> Tensor(a!)",
    .out = "aten::clamp_max.out(Tensor self, Scalar max, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&OneSided<false>::meta>(),
    .kernel = lowered_exact<&OneSided<false>::meta, &OneSided<false>::lower>(),
    .lower = lowering<&OneSided<false>::lower>(),
    .vjp = {.saves = inputs(0), .rule = OneSided<false>::vjp},
    .batch = pointwise_batch,
    .decompose = function<&clamp_max_parts>(),
    .samples = [] { return Samples{{"real", {f64({3, 4}), 0.1}}}; },
};

WEFT_OPERATOR(logical_and) = {
    .schema = "aten::logical_and(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::logical_and_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::logical_and.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kCommutative | Traits::kNotDifferentiable,
    .meta = Binary<cpu::kLogicalAnd, TypeRule::kBool>::meta_function(),
    .kernel = Binary<cpu::kLogicalAnd, TypeRule::kBool>::kernels(),
    .lower = Binary<cpu::kLogicalAnd, TypeRule::kBool>::lower_rule(),
    .batch = comparison_batch,
    .samples = integer_pair_samples,
};

WEFT_OPERATOR(logical_or) = {
    .schema = "aten::logical_or(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::logical_or_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::logical_or.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kCommutative | Traits::kNotDifferentiable,
    .meta = Binary<cpu::kLogicalOr, TypeRule::kBool>::meta_function(),
    .kernel = Binary<cpu::kLogicalOr, TypeRule::kBool>::kernels(),
    .lower = Binary<cpu::kLogicalOr, TypeRule::kBool>::lower_rule(),
    .batch = comparison_batch,
    .samples = integer_pair_samples,
};

}  // namespace weft::ops
