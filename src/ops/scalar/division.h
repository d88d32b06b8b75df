#pragma once

#include "ops/scalar/complex_pair.h"

// Division with a rounding mode, remainders and powers. Integer division by zero is an error of the lane.
namespace weft::scalar {

struct Remainder {  // the sign of the divisor, as Python's %
  template <typename T>
  auto operator()(T a, T b) const {
    if constexpr (IsInteger<T>) {
      return Checked<T>{floor_mod(a, b), b == T(0)};
    } else {
      T mod = fmod(a, b);
      return where((mod != T(0)) & ((b < T(0)) != (mod < T(0))), mod + b, mod);
    }
  }
};
struct Fmod {  // the sign of the dividend, as C's %
  template <typename T>
  auto operator()(T a, T b) const {
    if constexpr (IsInteger<T>) return Checked<T>{trunc_mod(a, b), b == T(0)};
    else return fmod(a, b);
  }
};
struct DivTrunc {
  template <typename T>
  auto operator()(T a, T b) const {
    if constexpr (IsInteger<T>) return Checked<T>{trunc_div(a, b), b == T(0)};
    else return trunc(a / b);
  }
};
struct DivFloor {
  template <typename T>
  auto operator()(T a, T b) const {
    if constexpr (IsInteger<T>) {
      return Checked<T>{floor_div(a, b), b == T(0)};
    } else {
      // Python's way: from the exact remainder, because floor(a / b) may round up over an integer.
      T mod = fmod(a, b);
      T div = (a - mod) / b;
      div = where((mod != T(0)) & ((b < T(0)) != (mod < T(0))), div - T(1), div);
      T floored = floor(div);
      floored = where(div - floored > T(0.5), floored + T(1), floored);
      T quotient = a / b;
      T result = where(div == T(0), copysign(T(0), quotient), floored);
      return where(b == T(0), quotient, result);
    }
  }
};
// Quotients of 16-bit floats, each step of which is rounded to 16 bits: `Rounding::round` does that.
template <typename Rounding>
struct DivTruncInSteps {
  template <typename T>
  T operator()(T a, T b) const {
    return trunc(Rounding::round(a / b));
  }
};
template <typename Rounding>
struct DivFloorInSteps {
  template <typename T>
  T operator()(T a, T b) const {
    T quotient = Rounding::round(a / b), mod = fmod(a, b);
    T div = Rounding::round(Rounding::round(a - mod) / b);
    div = where((mod != T(0)) & ((b < T(0)) != (mod < T(0))), Rounding::round(div - T(1)), div);
    T floored = floor(div);
    floored = where(div - floored > T(0.5), floored + T(1), floored);
    return where(b == T(0), quotient, where(div == T(0), copysign(T(0), quotient), floored));
  }
};
struct HalfRounding {
  template <typename T>
  static T round(T x) {
    return rounded_to_half(x);
  }
};
struct BFloat16Rounding {
  template <typename T>
  static T round(T x) {
    return rounded_to_bfloat16(x);
  }
};
using DivTruncHalf = DivTruncInSteps<HalfRounding>;
using DivTruncBFloat16 = DivTruncInSteps<BFloat16Rounding>;
using DivFloorHalf = DivFloorInSteps<HalfRounding>;
using DivFloorBFloat16 = DivFloorInSteps<BFloat16Rounding>;

struct Pow {  // integers: a negative exponent gives 0 unless the base is 1 or -1
  template <typename T>
  T operator()(T base, T exponent) const {
    return pow(base, exponent);
  }
};

}  // namespace weft::scalar
