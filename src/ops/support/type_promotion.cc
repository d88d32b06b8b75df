#include "ops/support/type_promotion.h"

namespace weft {
namespace {

using Maybe = std::optional<DType>;

Maybe promoted(Maybe a, Maybe b) {
  if (!a) return b;
  if (!b) return a;
  return promote(*a, *b);
}

Maybe combine(Maybe higher, Maybe lower) {
  if (!higher) return lower;
  if (!lower || is_complex(*higher)) return higher;
  if (is_floating(*higher)) return is_complex(*lower) ? complex_type(*higher) : *higher;
  if (*higher == DType::kBool || is_floating(*lower) || is_complex(*lower)) return promote(*higher, *lower);
  return higher;
}

// The type that a C++ number has among tensors: its category in the default width.
DType number_type(DType dtype) {
  if (is_complex(dtype)) return DType::kComplex64;
  if (is_floating(dtype)) return DType::kFloat32;
  return dtype;
}

}  // namespace

TypePromotion& TypePromotion::add_dimensioned(DType dtype) {
  dimensioned_ = promoted(dimensioned_, dtype);
  return *this;
}

TypePromotion& TypePromotion::add(const Tensor& tensor) {
  if (!tensor.defined()) return *this;
  if (tensor.flags() & tensor_flag::kWrappedNumber)
    wrapped_ = promoted(wrapped_, number_type(tensor.dtype()));
  else if (tensor.dim() == 0) zero_dim_ = promoted(zero_dim_, tensor.dtype());
  else dimensioned_ = promoted(dimensioned_, tensor.dtype());
  return *this;
}

TypePromotion& TypePromotion::add(const Scalar& number) {
  wrapped_ = promoted(wrapped_, number_type(number.dtype()));
  return *this;
}

DType TypePromotion::result() const {
  return combine(dimensioned_, combine(zero_dim_, wrapped_)).value_or(DType::kFloat32);
}

bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && to <= DType::kInt64) return false;
  return from == DType::kBool || to != DType::kBool;
}

}  // namespace weft
