#pragma once

#include "ops/scalar/complex_pair.h"

// Comparisons, selection, logic and bits. A functor that returns a mask has a boolean result.
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

struct IsNan {
  template <typename T>
  MaskOf<T> operator()(T x) const {
    return is_nan(x);
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
struct BitwiseNot {
  template <typename T>
  T operator()(T x) const {
    return ~x;
  }
};

}  // namespace weft::scalar
