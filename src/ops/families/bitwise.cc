// Bits of integers and truth values: and, or, exclusive or, shifts.
#include "ops/support/family.h"
#include "ops/support/pointwise.h"
#include "weft/ops/functions.h"

namespace weft::ops {
namespace {

Samples bit_samples() {
  return {{"integers", {i64({4}), i64({4})}},
          {"broadcast", {i64({3, 1}), i64({4})}},
          {"bool", {boolean({2, 3}), boolean({2, 3})}},
          {"mixed", {boolean({3}), i64({3})}}};
}
Samples shift_samples() {
  return {{"integers", {i64({4}), i64({4}, 0, 6)}}, {"broadcast", {i64({3, 1}), i64({4}, 0, 6)}}};
}

}  // namespace

// --- and ---------------------------------------------------------------------------------------------

namespace {
Tensor bitwise_and_number(const Tensor& self, const Scalar& other) {
  return bitwise_and(self, wrapped_number(other));
}
Tensor number_bitwise_and(const Scalar& self, const Tensor& other) {
  return bitwise_and(wrapped_number(self), other);
}
}  // namespace

WEFT_OPERATOR(bitwise_and_tensor) = {
    .schema = "aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::bitwise_and_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::bitwise_and.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kCommutative | Traits::kNotDifferentiable,
    .meta = Binary<cpu::kBitwiseAnd>::meta_function(),
    .kernel = Binary<cpu::kBitwiseAnd>::kernels(),
    .lower = Binary<cpu::kBitwiseAnd>::lower_rule(),
    .batch = pointwise_batch,
    .samples = bit_samples,
};

WEFT_OPERATOR(bitwise_and_scalar) = {
    .schema = "aten::bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::bitwise_and_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::bitwise_and.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .composite = composite<&bitwise_and_number>(),
    .samples = [] { return Samples{{"integers", {i64({4}), 3}}}; },
};

WEFT_OPERATOR(bitwise_and_scalar_tensor) = {
    .schema = "aten::bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    .out = "aten::bitwise_and.Scalar_Tensor_out(Scalar self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .composite = composite_exact<&number_bitwise_and>(),
    .samples = [] { return Samples{{"integers", {3, i64({4})}}}; },
};

// --- or ----------------------------------------------------------------------------------------------

namespace {
Tensor bitwise_or_number(const Tensor& self, const Scalar& other) {
  return bitwise_or(self, wrapped_number(other));
}
Tensor number_bitwise_or(const Scalar& self, const Tensor& other) {
  return bitwise_or(wrapped_number(self), other);
}
}  // namespace

WEFT_OPERATOR(bitwise_or_tensor) = {
    .schema = "aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::bitwise_or_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::bitwise_or.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kCommutative | Traits::kNotDifferentiable,
    .meta = Binary<cpu::kBitwiseOr>::meta_function(),
    .kernel = Binary<cpu::kBitwiseOr>::kernels(),
    .lower = Binary<cpu::kBitwiseOr>::lower_rule(),
    .batch = pointwise_batch,
    .samples = bit_samples,
};

WEFT_OPERATOR(bitwise_or_scalar) = {
    .schema = "aten::bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::bitwise_or_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::bitwise_or.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .composite = composite<&bitwise_or_number>(),
    .samples = [] { return Samples{{"integers", {i64({4}), 3}}}; },
};

WEFT_OPERATOR(bitwise_or_scalar_tensor) = {
    .schema = "aten::bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    .out = "aten::bitwise_or.Scalar_Tensor_out(Scalar self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .composite = composite_exact<&number_bitwise_or>(),
    .samples = [] { return Samples{{"integers", {3, i64({4})}}}; },
};

// --- xor ---------------------------------------------------------------------------------------------

namespace {
Tensor bitwise_xor_number(const Tensor& self, const Scalar& other) {
  return bitwise_xor(self, wrapped_number(other));
}
Tensor number_bitwise_xor(const Scalar& self, const Tensor& other) {
  return bitwise_xor(wrapped_number(self), other);
}
}  // namespace

WEFT_OPERATOR(bitwise_xor_tensor) = {
    .schema = "aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::bitwise_xor_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::bitwise_xor.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kCommutative | Traits::kNotDifferentiable,
    .meta = Binary<cpu::kBitwiseXor>::meta_function(),
    .kernel = Binary<cpu::kBitwiseXor>::kernels(),
    .lower = Binary<cpu::kBitwiseXor>::lower_rule(),
    .batch = pointwise_batch,
    .samples = bit_samples,
};

WEFT_OPERATOR(bitwise_xor_scalar) = {
    .schema = "aten::bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::bitwise_xor_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::bitwise_xor.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .composite = composite<&bitwise_xor_number>(),
    .samples = [] { return Samples{{"integers", {i64({4}), 3}}}; },
};

WEFT_OPERATOR(bitwise_xor_scalar_tensor) = {
    .schema = "aten::bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    .out = "aten::bitwise_xor.Scalar_Tensor_out(Scalar self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .composite = composite_exact<&number_bitwise_xor>(),
    .samples = [] { return Samples{{"integers", {3, i64({4})}}}; },
};

// --- left shift --------------------------------------------------------------------------------------

namespace {
Tensor left_shift_by_number(const Tensor& self, const Scalar& other) {
  return bitwise_left_shift(self, wrapped_number(other));
}
Tensor number_left_shift(const Scalar& self, const Tensor& other) {
  return bitwise_left_shift(wrapped_number(self), other);
}
}  // namespace

WEFT_OPERATOR(bitwise_left_shift_tensor) = {
    .schema = "aten::bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::bitwise_left_shift_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::bitwise_left_shift.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = Binary<cpu::kShiftLeft>::meta_function(),
    .kernel = Binary<cpu::kShiftLeft>::kernels(),
    .lower = Binary<cpu::kShiftLeft>::lower_rule(),
    .batch = pointwise_batch,
    .samples = shift_samples,
};

WEFT_OPERATOR(bitwise_left_shift_scalar) = {
    .schema = "aten::bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::bitwise_left_shift_.Tensor_Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out =
        "aten::bitwise_left_shift.Tensor_Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kPointwise,
    .composite = composite<&left_shift_by_number>(),
    .samples = [] { return Samples{{"integers", {i64({4}), 3}}}; },
};

WEFT_OPERATOR(bitwise_left_shift_scalar_tensor) = {
    .schema = "aten::bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    .out =
        "aten::bitwise_left_shift.Scalar_Tensor_out(Scalar self, Tensor other, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kPointwise,
    .composite = composite_exact<&number_left_shift>(),
    .samples = [] { return Samples{{"integers", {3, i64({4}, 0, 6)}}}; },
};

// --- right shift -------------------------------------------------------------------------------------

namespace {
Tensor right_shift_by_number(const Tensor& self, const Scalar& other) {
  return bitwise_right_shift(self, wrapped_number(other));
}
Tensor number_right_shift(const Scalar& self, const Tensor& other) {
  return bitwise_right_shift(wrapped_number(self), other);
}
}  // namespace

WEFT_OPERATOR(bitwise_right_shift_tensor) = {
    .schema = "aten::bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::bitwise_right_shift_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::bitwise_right_shift.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = Binary<cpu::kShiftRight>::meta_function(),
    .kernel = Binary<cpu::kShiftRight>::kernels(),
    .lower = Binary<cpu::kShiftRight>::lower_rule(),
    .batch = pointwise_batch,
    .samples = shift_samples,
};

WEFT_OPERATOR(bitwise_right_shift_scalar) = {
    .schema = "aten::bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::bitwise_right_shift_.Tensor_Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out =
        "aten::bitwise_right_shift.Tensor_Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kPointwise,
    .composite = composite<&right_shift_by_number>(),
    .samples = [] { return Samples{{"integers", {i64({4}), 3}}}; },
};

WEFT_OPERATOR(bitwise_right_shift_scalar_tensor) = {
    .schema = "aten::bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    .out =
        "aten::bitwise_right_shift.Scalar_Tensor_out(Scalar self, Tensor other, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kPointwise,
    .composite = composite_exact<&number_right_shift>(),
    .samples = [] { return Samples{{"integers", {3, i64({4}, 0, 6)}}}; },
};

// --- under the names of the operators of Python ---------------------------------------------------------

namespace {
Tensor dunder_and(const Tensor& self, const Tensor& other) { return bitwise_and(self, other); }
Tensor dunder_and_number(const Tensor& self, const Scalar& other) { return bitwise_and(self, other); }
Tensor dunder_or(const Tensor& self, const Tensor& other) { return bitwise_or(self, other); }
Tensor dunder_or_number(const Tensor& self, const Scalar& other) { return bitwise_or(self, other); }
Tensor dunder_xor(const Tensor& self, const Tensor& other) { return bitwise_xor(self, other); }
Tensor dunder_xor_number(const Tensor& self, const Scalar& other) { return bitwise_xor(self, other); }
}  // namespace

WEFT_OPERATOR(dunder_and_tensor) = {
    .schema = "aten::__and__.Tensor(Tensor self, Tensor other) -> Tensor",
    .traits = Traits::kPointwise,
    .composite = {.functional = function<&dunder_and>()},
    .samples = bit_samples,
};

WEFT_OPERATOR(dunder_and_scalar) = {
    .schema = "aten::__and__.Scalar(Tensor self, Scalar other) -> Tensor",
    .traits = Traits::kPointwise,
    .composite = {.functional = function<&dunder_and_number>()},
    .samples = [] { return Samples{{"integers", {i64({4}), 3}}}; },
};

WEFT_OPERATOR(dunder_or_tensor) = {
    .schema = "aten::__or__.Tensor(Tensor self, Tensor other) -> Tensor",
    .traits = Traits::kPointwise,
    .composite = {.functional = function<&dunder_or>()},
    .samples = bit_samples,
};

WEFT_OPERATOR(dunder_or_scalar) = {
    .schema = "aten::__or__.Scalar(Tensor self, Scalar other) -> Tensor",
    .traits = Traits::kPointwise,
    .composite = {.functional = function<&dunder_or_number>()},
    .samples = [] { return Samples{{"integers", {i64({4}), 3}}}; },
};

WEFT_OPERATOR(dunder_xor_tensor) = {
    .schema = "aten::__xor__.Tensor(Tensor self, Tensor other) -> Tensor",
    .traits = Traits::kPointwise,
    .composite = {.functional = function<&dunder_xor>()},
    .samples = bit_samples,
};

WEFT_OPERATOR(dunder_xor_scalar) = {
    .schema = "aten::__xor__.Scalar(Tensor self, Scalar other) -> Tensor",
    .traits = Traits::kPointwise,
    .composite = {.functional = function<&dunder_xor_number>()},
    .samples = [] { return Samples{{"integers", {i64({4}), 3}}}; },
};

}  // namespace weft::ops
