// Comparisons: a bool tensor from two operands.
#include "ops/support/family.h"

namespace weft::ops {
namespace {

Samples tensor_samples() {
  return {{"same_shape", {f64({3, 4}), f64({3, 4})}},
          {"broadcast", {f64({3, 1}), f64({4})}},
          {"mixed", {f32({3}), i64({3})}},
          {"empty", {f64({0}), f64({1})}}};
}
Samples scalar_samples() { return {{"real", {f64({3, 4}), 0.5}}, {"integer", {i64({5}), 0}}}; }

}  // namespace

WEFT_OPERATOR(eq_tensor) = {
    .schema = "aten::eq.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::eq_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::eq.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable | Traits::kCommutative,
    .meta = Binary<cpu::kEq>::meta_function(),
    .kernel = Binary<cpu::kEq>::kernels(),
    .lower = Binary<cpu::kEq>::lower_rule(),
    .batch = comparison_batch,
    .samples = tensor_samples,
};

WEFT_OPERATOR(eq_scalar) = {
    .schema = "aten::eq.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::eq_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::eq.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = BinaryScalar<cpu::kEq>::meta_function(),
    .kernel = BinaryScalar<cpu::kEq>::kernels(),
    .lower = BinaryScalar<cpu::kEq>::lower_rule(),
    .batch = comparison_batch,
    .samples = scalar_samples,
};

WEFT_OPERATOR(ne_tensor) = {
    .schema = "aten::ne.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::ne_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::ne.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable | Traits::kCommutative,
    .meta = Binary<cpu::kNe>::meta_function(),
    .kernel = Binary<cpu::kNe>::kernels(),
    .lower = Binary<cpu::kNe>::lower_rule(),
    .batch = comparison_batch,
    .samples = tensor_samples,
};

WEFT_OPERATOR(ne_scalar) = {
    .schema = "aten::ne.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::ne_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::ne.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = BinaryScalar<cpu::kNe>::meta_function(),
    .kernel = BinaryScalar<cpu::kNe>::kernels(),
    .lower = BinaryScalar<cpu::kNe>::lower_rule(),
    .batch = comparison_batch,
    .samples = scalar_samples,
};

WEFT_OPERATOR(lt_tensor) = {
    .schema = "aten::lt.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::lt_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::lt.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = Binary<cpu::kLt>::meta_function(),
    .kernel = Binary<cpu::kLt>::kernels(),
    .lower = Binary<cpu::kLt>::lower_rule(),
    .batch = comparison_batch,
    .samples = tensor_samples,
};

WEFT_OPERATOR(lt_scalar) = {
    .schema = "aten::lt.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::lt_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::lt.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = BinaryScalar<cpu::kLt>::meta_function(),
    .kernel = BinaryScalar<cpu::kLt>::kernels(),
    .lower = BinaryScalar<cpu::kLt>::lower_rule(),
    .batch = comparison_batch,
    .samples = scalar_samples,
};

WEFT_OPERATOR(le_tensor) = {
    .schema = "aten::le.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::le_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::le.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = Binary<cpu::kLe>::meta_function(),
    .kernel = Binary<cpu::kLe>::kernels(),
    .lower = Binary<cpu::kLe>::lower_rule(),
    .batch = comparison_batch,
    .samples = tensor_samples,
};

WEFT_OPERATOR(le_scalar) = {
    .schema = "aten::le.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::le_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::le.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = BinaryScalar<cpu::kLe>::meta_function(),
    .kernel = BinaryScalar<cpu::kLe>::kernels(),
    .lower = BinaryScalar<cpu::kLe>::lower_rule(),
    .batch = comparison_batch,
    .samples = scalar_samples,
};

WEFT_OPERATOR(gt_tensor) = {
    .schema = "aten::gt.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::gt_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::gt.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = Binary<cpu::kGt>::meta_function(),
    .kernel = Binary<cpu::kGt>::kernels(),
    .lower = Binary<cpu::kGt>::lower_rule(),
    .batch = comparison_batch,
    .samples = tensor_samples,
};

WEFT_OPERATOR(gt_scalar) = {
    .schema = "aten::gt.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::gt_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::gt.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = BinaryScalar<cpu::kGt>::meta_function(),
    .kernel = BinaryScalar<cpu::kGt>::kernels(),
    .lower = BinaryScalar<cpu::kGt>::lower_rule(),
    .batch = comparison_batch,
    .samples = scalar_samples,
};

WEFT_OPERATOR(ge_tensor) = {
    .schema = "aten::ge.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::ge_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::ge.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = Binary<cpu::kGe>::meta_function(),
    .kernel = Binary<cpu::kGe>::kernels(),
    .lower = Binary<cpu::kGe>::lower_rule(),
    .batch = comparison_batch,
    .samples = tensor_samples,
};

WEFT_OPERATOR(ge_scalar) = {
    .schema = "aten::ge.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::ge_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::ge.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = BinaryScalar<cpu::kGe>::meta_function(),
    .kernel = BinaryScalar<cpu::kGe>::kernels(),
    .lower = BinaryScalar<cpu::kGe>::lower_rule(),
    .batch = comparison_batch,
    .samples = scalar_samples,
};

}  // namespace weft::ops
