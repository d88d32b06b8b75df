#pragma once

#include "ops/scalar/arithmetic.h"

// Comparisons, signs, selection, logic and bits. A functor that returns a mask has a boolean result.
namespace weft::scalar {

#define WEFT_COMPARISON(Functor, op)       \
  struct Functor {                         \
    template <typename T>                  \
    MaskOf<T> operator()(T a, T b) const { \
      return a op b;                       \
    }                                      \
  };
WEFT_COMPARISON(Eq, ==)
WEFT_COMPARISON(Ne, !=)
WEFT_COMPARISON(Lt, <)
WEFT_COMPARISON(Le, <=)
WEFT_COMPARISON(Gt, >)
WEFT_COMPARISON(Ge, >=)
#undef WEFT_COMPARISON

// z / |z|, and zero for zero; for real numbers the sign.
struct Sgn {
  template <typename T>
  T operator()(T x) const {
    if constexpr (IsComplex<T>) {
      auto magnitude = abs(x);
      return where(magnitude != typename T::Real(0), x / T(magnitude), T(0));
    } else {
      return Sign{}(x);
    }
  }
};
struct IsNan {
  template <typename T>
  MaskOf<T> operator()(T x) const {
    return is_nan(x);
  }
};
struct IsInfinite {
  template <typename T>
  MaskOf<T> operator()(T x) const {
    return is_infinite(x);
  }
};
// What copies and casts compute: all of the work is in the conversion to the compute type.
struct Copy {
  template <typename T>
  T operator()(T x) const {
    return x;
  }
};
// A parameter for every element.
struct Fill {
  template <typename T>
  T operator()(T value) const {
    return value;
  }
};
struct Where {
  static constexpr unsigned kMaskInputs = 1;  // a bit for each input that is a mask
  template <typename T>
  T operator()(MaskOf<T> condition, T a, T b) const {
    return where(condition, a, b);
  }
};

#define WEFT_BITWISE(Functor, op)  \
  struct Functor {                 \
    template <typename T>          \
    T operator()(T a, T b) const { \
      return a op b;               \
    }                              \
  };
WEFT_BITWISE(BitwiseAnd, &)
WEFT_BITWISE(BitwiseOr, |)
WEFT_BITWISE(BitwiseXor, ^)
#undef WEFT_BITWISE
// A count outside the type's width shifts everything out: 0, or the sign where a signed number goes right.
struct ShiftLeft {
  template <typename T>
  T operator()(T x, T count) const {
    return shift_left(x, count);
  }
};
struct ShiftRight {
  template <typename T>
  T operator()(T x, T count) const {
    return shift_right(x, count);
  }
};
struct BitwiseNot {
  template <typename T>
  T operator()(T x) const {
    return ~x;
  }
};

}  // namespace weft::scalar
