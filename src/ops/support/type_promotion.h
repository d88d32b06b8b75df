#pragma once

#include "weft/core/tensor.h"

namespace weft {

// The common type of operands, as PyTorch decides it: tensors with dims outweigh 0-dim tensors, which
// outweigh C++ numbers, unless the lighter kind is of a higher category (bool < integer < real < complex).
class TypePromotion {
 public:
  TypePromotion& add(const Tensor& tensor);
  TypePromotion& add(const Scalar& number);
  TypePromotion& add(DType dtype) { return add_dimensioned(dtype); }
  DType result() const;

 private:
  TypePromotion& add_dimensioned(DType dtype);
  std::optional<DType> dimensioned_, zero_dim_, wrapped_;
};

// Tensors of one type have it in common, whatever their dims.
inline DType common_type(const Tensor& a, const Tensor& b) {
  constexpr uint32_t weak = tensor_flag::kWrappedNumber;
  if (a.defined() && b.defined() && a.dtype() == b.dtype() && !((a.flags() | b.flags()) & weak)) [[likely]]
    return a.dtype();
  return TypePromotion().add(a).add(b).result();
}
template <typename... Operand>
DType common_type(const Operand&... operands) {
  TypePromotion promotion;
  (promotion.add(operands), ...);
  return promotion.result();
}

// The type in which an operator that needs real numbers computes: integers and bool become the default type.
inline DType float_type(DType dtype) { return dtype <= DType::kInt64 ? DType::kFloat32 : dtype; }

// The type in which sums of floating-point numbers are computed: 16-bit ones in f32.
inline DType wide_type(DType dtype) { return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }

// Whether a value of `from` may be written in place into a tensor of `to`: a category never falls.
bool can_cast(DType from, DType to);

}  // namespace weft
