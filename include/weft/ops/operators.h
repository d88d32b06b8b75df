#pragma once

#include "weft/ops/functions.h"

// The arithmetic and comparison operators of C++ on tensors and numbers.

namespace weft {

#define WEFT_BINARY(symbol, name)                                                        \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return name(a, b); } \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) { return name(a, b); }
WEFT_BINARY(+, add)
WEFT_BINARY(-, sub)
WEFT_BINARY(*, mul)
WEFT_BINARY(/, div)
WEFT_BINARY(==, eq)
WEFT_BINARY(!=, ne)
WEFT_BINARY(<, lt)
WEFT_BINARY(<=, le)
WEFT_BINARY(>, gt)
WEFT_BINARY(>=, ge)
#undef WEFT_BINARY

inline Tensor operator+(const Scalar& a, const Tensor& b) { return add(b, a); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return mul(b, a); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a); }
inline Tensor operator/(const Scalar& a, const Tensor& b) { return mul(reciprocal(b), a); }
inline Tensor operator-(const Tensor& a) { return neg(a); }

#define WEFT_ASSIGN(symbol, name)                                                                 \
  inline const Tensor& operator symbol(const Tensor & a, const Tensor & b) { return name(a, b); } \
  inline const Tensor& operator symbol(const Tensor & a, const Scalar & b) { return name(a, b); }
WEFT_ASSIGN(+=, add_)
WEFT_ASSIGN(-=, sub_)
WEFT_ASSIGN(*=, mul_)
WEFT_ASSIGN(/=, div_)
#undef WEFT_ASSIGN

}  // namespace weft
