#pragma once

#include "ops/scalar/scalar_expr.h"

// Functors called with expressions: the leaves that stand for their arguments, and what becomes of their
// results.
namespace weft::scalar {

// The value type in which a functor computes for a compute type: 16-bit floats compute in f32.
template <DType compute>
struct ComputeExpr {
  using type = Expr<compute>;
};
template <>
struct ComputeExpr<DType::kFloat16> : ComputeExpr<DType::kFloat32> {};
template <>
struct ComputeExpr<DType::kBFloat16> : ComputeExpr<DType::kFloat32> {};
template <>
struct ComputeExpr<DType::kComplex64> {
  using type = ComplexPair<Expr<DType::kFloat32>>;
};
template <>
struct ComputeExpr<DType::kComplex128> {
  using type = ComplexPair<Expr<DType::kFloat64>>;
};

using MakeLeaf = ScalarExpr (*)(int index, Part part, DType dtype);

// A leaf of type `stored`, as a value of T.
template <typename T>
T leaf(MakeLeaf make, int index, DType stored) {
  if constexpr (IsComplex<T>) {
    constexpr DType kPart = T::Real::kDType;
    return T(typename T::Real(make(index, Part::kReal, kPart)),
             typename T::Real(make(index, Part::kImaginary, kPart)));
  } else {
    return T(make(index, Part::kWhole, stored).converted(T::kDType));
  }
}

// Appends the parts of a result, in the type that the functor's result is stored in. `compute` is the compute
// type of a result that has it.
inline void append_parts(std::vector<ScalarExpr>& parts, const MaskExpr& mask, DType) {
  parts.push_back(mask.expr);
}
template <DType dtype>
void append_parts(std::vector<ScalarExpr>& parts, const Expr<dtype>& value, DType compute) {
  const bool is_narrow = compute == DType::kFloat16 || compute == DType::kBFloat16;
  parts.push_back(is_narrow ? value.expr.converted(compute) : value.expr);
}
template <typename R>
void append_parts(std::vector<ScalarExpr>& parts, const ComplexPair<R>& value, DType) {
  parts.push_back(value.re.expr);
  parts.push_back(value.im.expr);
}

}  // namespace weft::scalar
