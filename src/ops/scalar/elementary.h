#pragma once

#include "ops/scalar/complex_pair.h"

// Elementary functions: each is the algebra's function of the same name, inline in its loop, which then keeps
// the function's constants in registers.
namespace weft::scalar {

#define WEFT_ELEMENTARY(Functor, function)           \
  struct Functor {                                   \
    template <typename T>                            \
    [[gnu::always_inline]] T operator()(T x) const { \
      return function(x);                            \
    }                                                \
  };
WEFT_ELEMENTARY(Exp, exp)
WEFT_ELEMENTARY(Exp2, exp2)
WEFT_ELEMENTARY(Expm1, expm1)
WEFT_ELEMENTARY(Log, log)
WEFT_ELEMENTARY(Log2, log2)
WEFT_ELEMENTARY(Log10, log10)
WEFT_ELEMENTARY(Log1p, log1p)
WEFT_ELEMENTARY(Sqrt, sqrt)
WEFT_ELEMENTARY(Rsqrt, rsqrt)
WEFT_ELEMENTARY(Sin, sin)
WEFT_ELEMENTARY(Cos, cos)
WEFT_ELEMENTARY(Tan, tan)
WEFT_ELEMENTARY(Asin, asin)
WEFT_ELEMENTARY(Acos, acos)
WEFT_ELEMENTARY(Atan, atan)
WEFT_ELEMENTARY(Sinh, sinh)
WEFT_ELEMENTARY(Cosh, cosh)
WEFT_ELEMENTARY(Tanh, tanh)
WEFT_ELEMENTARY(Asinh, asinh)
WEFT_ELEMENTARY(Acosh, acosh)
WEFT_ELEMENTARY(Atanh, atanh)
WEFT_ELEMENTARY(Sigmoid, sigmoid)
WEFT_ELEMENTARY(Erf, erf)
WEFT_ELEMENTARY(Erfc, erfc)
WEFT_ELEMENTARY(NormalCdf, normal_cdf)
#undef WEFT_ELEMENTARY

// Integers are whole already.
#define WEFT_ROUNDING(Functor, function)           \
  struct Functor {                                 \
    template <typename T>                          \
    T operator()(T x) const {                      \
      if constexpr (IsReal<T>) return function(x); \
      else return x;                               \
    }                                              \
  };
WEFT_ROUNDING(Floor, floor)
WEFT_ROUNDING(Ceil, ceil)
WEFT_ROUNDING(Trunc, trunc)
WEFT_ROUNDING(Round, round)  // halves to even
#undef WEFT_ROUNDING

struct Hypot {
  template <typename T>
  T operator()(T a, T b) const {
    return hypot(a, b);
  }
};
struct Atan2 {
  template <typename T>
  T operator()(T y, T x) const {
    return atan2(y, x);
  }
};
struct CopySign {
  template <typename T>
  T operator()(T magnitude, T sign) const {
    return copysign(magnitude, sign);
  }
};

}  // namespace weft::scalar
