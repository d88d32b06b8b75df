// Division with a rounding mode, and the remainders that belong to it.
#include <cmath>

#include "ops/support/dense.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

using Mode = std::optional<std::string_view>;
using True = Binary<cpu::kDiv, TypeRule::kFloat>;
using Trunc = Binary<cpu::kDivTrunc>;

// --- 16-bit floats ---------------------------------------------------------------------------------------

// As PyTorch does, quotients of 16-bit floats are rounded to 16 bits before they are rounded to integers,
// unless all elements have the same divisor.
bool has_one_element(const Tensor& t) {
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.plain_sizes()[static_cast<size_t>(d)] != 1 && t.plain_strides()[static_cast<size_t>(d)] != 0)
      return false;
  return true;
}
bool is_short(DType type) { return type == kFloat16 || type == kBFloat16; }
bool rounds_in_steps(DType type, const Tensor& other) { return is_short(type) && !has_one_element(other); }
// The one divisor is not rounded to 16 bits either.
DType division_type(DType type) { return is_short(type) ? kFloat32 : type; }

// The steps of scalar::DivFloor, each rounded to T.
template <typename T>
T floor_quotient(T dividend, T divisor) {
  auto rounded = [](float number) { return static_cast<float>(static_cast<T>(number)); };
  auto a = static_cast<float>(dividend), b = static_cast<float>(divisor);
  float quotient = rounded(a / b);
  if (b == 0) return static_cast<T>(quotient);
  float mod = std::fmod(a, b), div = rounded(rounded(a - mod) / b);
  if (mod != 0 && (b < 0) != (mod < 0)) div = rounded(div - 1);
  if (div == 0) return static_cast<T>(std::copysign(0.0F, quotient));
  float floored = std::floor(div);
  return static_cast<T>(div - floored > 0.5F ? floored + 1 : floored);
}
template <typename T>
void floor_quotients(const Tensor& self, const Tensor& other, const Tensor& out) {
  Tensor a = dense_as(self, out.sizes(), out.dtype()), b = dense_as(other, out.sizes(), out.dtype());
  write_dense(out, [&](const Tensor& dense) {
    for (int64_t i = 0; i < dense.plain_numel(); ++i)
      dense.data<T>()[i] = floor_quotient(a.data<T>()[i], b.data<T>()[i]);
  });
}

struct Floor : Binary<cpu::kDivFloor> {
  static void into(const Tensor& self, const Tensor& other, const Tensor& out) {
    DType type = compute(self, other);
    if (!rounds_in_steps(type, other))
      return run_division(cpu::kDivFloor, division_type(type), out, self, other);
    type == kFloat16 ? floor_quotients<Half>(self, other, out) : floor_quotients<BFloat16>(self, other, out);
  }
  static constexpr KernelSet kernels() { return structured<&meta, &into, true>(); }
};
void trunc_into(const Tensor& self, const Tensor& other, const Tensor& out) {
  DType type = Trunc::compute(self, other);
  if (!rounds_in_steps(type, other))
    return run_division(cpu::kDivTrunc, division_type(type), out, self, other);
  run_pointwise(cpu::kDiv, type, out, {&self, &other});
  run_pointwise(cpu::kTrunc, type, out, {&out});
}

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
  if (rounding == Rounding::kNone) return True::meta(self, other);
  return rounding == Rounding::kFloor ? Floor::meta(self, other) : Trunc::meta(self, other);
}
void div_mode_into(const Tensor& self, const Tensor& other, Mode mode, const Tensor& out) {
  Rounding rounding = rounding_of(mode);
  if (rounding == Rounding::kNone) return True::into(self, other, out);
  rounding == Rounding::kFloor ? Floor::into(self, other, out) : trunc_into(self, other, out);
}
TensorSpec div_scalar_mode_meta(const Tensor& self, const Scalar& other, Mode mode) {
  Rounding rounding = rounding_of(mode);
  if (rounding == Rounding::kNone) return BinaryScalar<cpu::kDiv, TypeRule::kFloat>::meta(self, other);
  return rounding == Rounding::kFloor ? BinaryScalar<cpu::kDivFloor>::meta(self, other)
                                      : BinaryScalar<cpu::kDivTrunc>::meta(self, other);
}
void div_scalar_mode_into(const Tensor& self, const Scalar& other, Mode mode, const Tensor& out) {
  div_mode_into(self, wrapped_number(other), mode, out);
}

// A rounded quotient is flat almost everywhere.
Grads div_mode_vjp(const Vjp& v) {
  const Tensor& grad = v.grad();
  if (!v.arg(2).is_none())
    return {v.wants(0) ? zeros_like(grad) : Tensor(), v.wants(1) ? zeros_like(grad) : Tensor()};
  Tensor self = v.input(0), other = v.input(1);
  Tensor to_self = v.wants(0) ? grad / conj_of(other) : Tensor();
  Tensor to_other = v.wants(1) ? -grad * conj_of(self / other / other) : Tensor();
  return {to_self, to_other};
}
Grads div_scalar_mode_vjp(const Vjp& v) {
  if (!v.arg(2).is_none()) return {zeros_like(v.grad())};
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
    .traits = Traits::kPointwise,
    .meta = function<&div_mode_meta>(),
    .kernel = structured<&div_mode_meta, &div_mode_into, true>(),
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
    .traits = Traits::kPointwise,
    .meta = function<&div_scalar_mode_meta>(),
    .kernel = structured_exact<&div_scalar_mode_meta, &div_scalar_mode_into, true>(),
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
    .meta = Floor::meta_function(),
    .kernel = Floor::kernels(),
    .scalar = &cpu::kDivFloor,
    .batch = pointwise_batch,
    .samples = pair_samples,
};

WEFT_OPERATOR(floor_divide_scalar) = {
    .schema = "aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::floor_divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::floor_divide.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = BinaryScalar<cpu::kDivFloor>::meta_function(),
    .kernel = BinaryScalar<cpu::kDivFloor>::exact_kernels(),
    .scalar = &cpu::kDivFloor,
    .batch = pointwise_batch,
    .samples = number_samples,
};

WEFT_OPERATOR(remainder_tensor) = {
    .schema = "aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::remainder_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::remainder.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = Binary<cpu::kRemainder>::meta_function(),
    .kernel = Binary<cpu::kRemainder>::kernels(),
    .scalar = &cpu::kRemainder,
    .vjp = {.saves = inputs(0, 1), .rule = remainder_vjp<Rounding::kFloor>},
    .batch = pointwise_batch,
    .samples = pair_samples,
};

WEFT_OPERATOR(remainder_scalar) = {
    .schema = "aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::remainder_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::remainder.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = BinaryScalar<cpu::kRemainder>::meta_function(),
    .kernel = BinaryScalar<cpu::kRemainder>::kernels(),
    .scalar = &cpu::kRemainder,
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
    .traits = Traits::kPointwise,
    .meta = Binary<cpu::kFmod>::meta_function(),
    .kernel = Binary<cpu::kFmod>::kernels(),
    .scalar = &cpu::kFmod,
    .vjp = {.saves = inputs(0, 1), .rule = remainder_vjp<Rounding::kTrunc>},
    .batch = pointwise_batch,
    .samples = pair_samples,
};

WEFT_OPERATOR(fmod_scalar) = {
    .schema = "aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::fmod_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::fmod.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = BinaryScalar<cpu::kFmod>::meta_function(),
    .kernel = BinaryScalar<cpu::kFmod>::kernels(),
    .scalar = &cpu::kFmod,
    .vjp = {.rule = [](const Vjp& v) { return Grads{v.grad()}; }},
    .batch = pointwise_batch,
    .samples = number_samples,
};

}  // namespace weft::ops
