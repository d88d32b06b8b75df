#pragma once

#include "weft/ops/functions.h"

// The operators of C++ on tensors and numbers. As in Python, `%` takes the sign of the divisor, and & | ^ ~
// work on the bits of integers and on truth values.

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
WEFT_BINARY(%, remainder)
WEFT_BINARY(&, bitwise_and)
WEFT_BINARY(|, bitwise_or)
WEFT_BINARY(^, bitwise_xor)
WEFT_BINARY(<<, bitwise_left_shift)
WEFT_BINARY(>>, bitwise_right_shift)
#undef WEFT_BINARY

inline Tensor operator+(const Scalar& a, const Tensor& b) { return add(b, a); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return mul(b, a); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a); }
inline Tensor operator/(const Scalar& a, const Tensor& b) { return mul(reciprocal(b), a); }
inline Tensor operator%(const Scalar& a, const Tensor& b) { return remainder(a, b); }
inline Tensor operator&(const Scalar& a, const Tensor& b) { return bitwise_and(b, a); }
inline Tensor operator|(const Scalar& a, const Tensor& b) { return bitwise_or(b, a); }
inline Tensor operator^(const Scalar& a, const Tensor& b) { return bitwise_xor(b, a); }
inline Tensor operator-(const Tensor& a) { return neg(a); }
inline Tensor operator~(const Tensor& a) { return bitwise_not(a); }

#define WEFT_ASSIGN(symbol, name)                                                                 \
  inline const Tensor& operator symbol(const Tensor & a, const Tensor & b) { return name(a, b); } \
  inline const Tensor& operator symbol(const Tensor & a, const Scalar & b) { return name(a, b); }
WEFT_ASSIGN(+=, add_)
WEFT_ASSIGN(-=, sub_)
WEFT_ASSIGN(*=, mul_)
WEFT_ASSIGN(/=, div_)
#undef WEFT_ASSIGN

}  // namespace weft
