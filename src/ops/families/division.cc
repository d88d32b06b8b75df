// Division with a rounding mode, and the remainders that belong to it.
#include "ops/decompositions/decompositions.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

using Mode = std::optional<std::string_view>;

// --- 16-bit floats ---------------------------------------------------------------------------------------

// As PyTorch does, quotients of 16-bit floats are rounded to 16 bits before they are rounded to integers,
// unless all elements have the same divisor.
bool is_one_number(const Scalar&) { return true; }
bool is_one_number(const Tensor& t) {
  for (size_t d = 0; d < static_cast<size_t>(t.dim()); ++d)
    if (!guard_or(t.sizes()[d] == 1, false) && !guard_or(t.strides()[d] == 0, false)) return false;
  return true;
}
template <const cpu::PointwiseKernel& kernel, const cpu::PointwiseKernel& of_half,
          const cpu::PointwiseKernel& of_bfloat16>
struct Rounded {
  template <typename Other>
  static PointwiseCall lower(const Tensor& self, const Other& other) {
    DType type = common_type(self, other);
    require_supported(kernel, type);
    if (type != kFloat16 && type != kBFloat16) return {kernel, type, {0, 1}};
    // The one divisor is not rounded to 16 bits either.
    if (is_one_number(other)) return {kernel, kFloat32, {0, 1}};
    return {type == kFloat16 ? of_half : of_bfloat16, type, {0, 1}};
  }
};
using Floor = Rounded<cpu::kDivFloor, cpu::kDivFloorHalf, cpu::kDivFloorBFloat16>;
using Trunc = Rounded<cpu::kDivTrunc, cpu::kDivTruncHalf, cpu::kDivTruncBFloat16>;

// --- rounding modes --------------------------------------------------------------------------------------

enum class Rounding : uint8_t { kNone, kFloor, kTrunc };
Rounding rounding_of(const Mode& mode) {
  if (!mode) return Rounding::kNone;
  require(*mode == "floor" || *mode == "trunc",
          "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{}'", *mode);
  return *mode == "floor" ? Rounding::kFloor : Rounding::kTrunc;
}

TensorSpec div_mode_meta(const Tensor& self, const Tensor& other, Mode mode) {
  Rounding rounding = rounding_of(mode);
  if (rounding == Rounding::kNone) return Binary<cpu::kDiv, TypeRule::kFloat>::meta(self, other);
  return rounding == Rounding::kFloor ? Binary<cpu::kDivFloor>::meta(self, other)
                                      : Binary<cpu::kDivTrunc>::meta(self, other);
}
TensorSpec div_scalar_mode_meta(const Tensor& self, const Scalar& other, Mode mode) {
  Rounding rounding = rounding_of(mode);
  if (rounding == Rounding::kNone) return BinaryScalar<cpu::kDiv, TypeRule::kFloat>::meta(self, other);
  return rounding == Rounding::kFloor ? BinaryScalar<cpu::kDivFloor>::meta(self, other)
                                      : BinaryScalar<cpu::kDivTrunc>::meta(self, other);
}
template <typename Other>
PointwiseCall div_mode_lower(const Tensor& self, const Other& other, Mode mode) {
  Rounding rounding = rounding_of(mode);
  if (rounding == Rounding::kNone) return {cpu::kDiv, float_type(common_type(self, other)), {0, 1}};
  return rounding == Rounding::kFloor ? Floor::lower(self, other) : Trunc::lower(self, other);
}

// A rounded quotient is flat almost everywhere.
Tensor flat(const Tensor& grad) { return zeros_like(grad, grad.dtype(), Layout::kStrided, grad.device()); }
Grads div_mode_vjp(const Vjp& v) {
  const Tensor& grad = v.grad();
  const bool is_rounded = !v.arg(2).is_none();
  Tensor self = v.input(0), other = v.input(1), to_self, to_other;
  if (v.wants(1)) to_other = is_rounded ? flat(grad) : -grad * conj_of(self / other / other);
  if (v.wants(0)) to_self = is_rounded ? flat(grad) : grad / conj_of(other);
  return {to_self, to_other};
}
Grads div_scalar_mode_vjp(const Vjp& v) {
  if (!v.arg(2).is_none()) return {flat(v.grad())};
  return {v.grad() / conj_of(v.arg<Scalar>(1))};
}

// remainder(a, b) = a - b * floor(a / b), fmod(a, b) = a - b * trunc(a / b).
template <Rounding rounding>
Tensor quotient(const Tensor& self, const Tensor& other) {
  return div(self, other, Mode(rounding == Rounding::kFloor ? "floor" : "trunc"));
}
template <Rounding rounding>
Grads remainder_vjp(const Vjp& v) {
  Tensor to_other = v.wants(1) ? -v.grad() * quotient<rounding>(v.input(0), v.input(1)) : Tensor();
  return {v.grad(), to_other};
}
Tensor remainder_number_composite(const Scalar& self, const Tensor& other) {
  return remainder(wrapped_number(self), other);
}

// Apart from zero, and quotients apart from integers, where derivatives do not exist.
Samples pair_samples() {
  return {{"same_shape", {f64({3, 4}), positive({3, 4})}},
          {"broadcast", {f64({3, 1}), positive({4})}},
          {"integers", {i64({4}), i64({4}, 1, 5)}},
          {"empty", {f64({0}), f64({1})}}};
}
Samples number_samples() {
  return {{"real", {f64({3, 4}), 0.7}}, {"integers", {i64({5}), 3}}, {"negative", {f64({4}), -0.3}}};
}
Samples with_modes(const Samples& plain) {
  Samples all;
  for (const char* mode : {"floor", "trunc", ""})
    for (const Sample& sample : plain) {
      Sample one{sample.name + (*mode ? std::string("_") + mode : ""), sample.args};
      one.args.push_back(*mode ? Value(mode) : Value());
      all.push_back(std::move(one));
    }
  return all;
}

}  // namespace

WEFT_OPERATOR(div_tensor_mode) = {
    .schema = "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    .inplace = "aten::div_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? rounding_mode) -> Tensor(a!)",
    .out =
        "aten::div.out_mode(Tensor self, Tensor other, *, str? rounding_mode, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&div_mode_meta>(),
    .kernel = lowered<&div_mode_meta, &div_mode_lower<Tensor>>(),
    .lower = lowering<&div_mode_lower<Tensor>>(),
    .vjp = {.saves = inputs(0, 1), .rule = div_mode_vjp},
    .batch = pointwise_batch,
    .samples = [] { return with_modes(pair_samples()); },
};

WEFT_OPERATOR(div_scalar_mode) = {
    .schema = "aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
    .inplace = "aten::div_.Scalar_mode(Tensor(a!) self, Scalar other, *, str? rounding_mode) -> Tensor(a!)",
    .out =
        "aten::div.Scalar_mode_out(Tensor self, Scalar other, *, str? rounding_mode, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNumberOverload,
    .meta = function<&div_scalar_mode_meta>(),
    .kernel = lowered_exact<&div_scalar_mode_meta, &div_mode_lower<Scalar>>(),
    .lower = lowering<&div_mode_lower<Scalar>>(),
    .vjp = {.rule = div_scalar_mode_vjp},
    .batch = pointwise_batch,
    .samples = [] { return with_modes(number_samples()); },
};

// As in PyTorch, floor_divide has no derivative where div(..., "floor") has.
WEFT_OPERATOR(floor_divide) = {
    .schema = "aten::floor_divide(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::floor_divide.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = Binary<cpu::kDivFloor>::meta_function(),
    .kernel = lowered<&Binary<cpu::kDivFloor>::meta, &Floor::lower<Tensor>>(),
    .lower = lowering<&Floor::lower<Tensor>>(),
    .batch = pointwise_batch,
    .decompose = function<&floor_divide_parts>(),
    .samples = pair_samples,
};

WEFT_OPERATOR(floor_divide_scalar) = {
    .schema = "aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::floor_divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::floor_divide.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise | Traits::kNotDifferentiable | Traits::kNumberOverload,
    .meta = BinaryScalar<cpu::kDivFloor>::meta_function(),
    .kernel = BinaryScalar<cpu::kDivFloor>::exact_kernels(),
    .lower = BinaryScalar<cpu::kDivFloor>::lower_rule(),
    .batch = pointwise_batch,
    .decompose = function<&floor_divide_scalar_parts>(),
    .samples = number_samples,
};

WEFT_OPERATOR(remainder_tensor) = {
    .schema = "aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::remainder_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::remainder.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Binary<cpu::kRemainder>::meta_function(),
    .kernel = Binary<cpu::kRemainder>::kernels(),
    .lower = Binary<cpu::kRemainder>::lower_rule(),
    .vjp = {.saves = inputs(0, 1), .rule = remainder_vjp<Rounding::kFloor>},
    .batch = pointwise_batch,
    .samples = pair_samples,
};

WEFT_OPERATOR(remainder_scalar) = {
    .schema = "aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::remainder_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::remainder.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = BinaryScalar<cpu::kRemainder>::meta_function(),
    .kernel = BinaryScalar<cpu::kRemainder>::kernels(),
    .lower = BinaryScalar<cpu::kRemainder>::lower_rule(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{v.grad()}; }},
    .batch = pointwise_batch,
    .samples = number_samples,
};

WEFT_OPERATOR(remainder_scalar_tensor) = {
    .schema = "aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    .out = "aten::remainder.Scalar_Tensor_out(Scalar self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .composite = composite_exact<&remainder_number_composite>(),
    .samples = [] { return Samples{{"real", {2.5, positive({4})}}}; },
};

WEFT_OPERATOR(fmod_tensor) = {
    .schema = "aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::fmod_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::fmod.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Binary<cpu::kFmod>::meta_function(),
    .kernel = Binary<cpu::kFmod>::kernels(),
    .lower = Binary<cpu::kFmod>::lower_rule(),
    .vjp = {.saves = inputs(0, 1), .rule = remainder_vjp<Rounding::kTrunc>},
    .batch = pointwise_batch,
    .samples = pair_samples,
};

WEFT_OPERATOR(fmod_scalar) = {
    .schema = "aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::fmod_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::fmod.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = BinaryScalar<cpu::kFmod>::meta_function(),
    .kernel = BinaryScalar<cpu::kFmod>::kernels(),
    .lower = BinaryScalar<cpu::kFmod>::lower_rule(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{v.grad()}; }},
    .batch = pointwise_batch,
    .samples = number_samples,
};

}  // namespace weft::ops
