#pragma once

#include "ops/scalar/complex_pair.h"

// Arithmetic functors. Names are ATen's; arguments are the inputs, then the uniform parameters.
namespace weft::scalar {

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return a + b;
  }
  template <typename T>
  T operator()(T a, T b, T alpha) const {
    return a + alpha * b;
  }
};
struct Sub {
  template <typename T>
  T operator()(T a, T b) const {
    return a - b;
  }
  template <typename T>
  T operator()(T a, T b, T alpha) const {
    return a - alpha * b;
  }
};
struct Mul {
  template <typename T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct Div {
  template <typename T>
  T operator()(T a, T b) const {
    return a / b;
  }
};
struct Neg {
  template <typename T>
  T operator()(T x) const {
    return -x;
  }
};
struct Abs {
  template <typename T>
  auto operator()(T x) const {
    return abs(x);
  }
};
struct Sign {
  template <typename T>
  T operator()(T x) const {
    if constexpr (IsBool<T>) return x;
    else if constexpr (IsSigned<T> || IsReal<T>) return where(x > T(0), T(1), where(x < T(0), T(-1), T(0)));
    else return where(x > T(0), T(1), T(0));
  }
};
struct Square {
  template <typename T>
  T operator()(T x) const {
    return x * x;
  }
};
// Powers of complex numbers by multiplication: the general formula, exp(y log(x)), loses infinities and
// zeros.
struct Cube {
  template <typename T>
  T operator()(T x) const {
    return x * x * x;
  }
};
struct InverseSquare {
  template <typename T>
  T operator()(T x) const {
    return T(1) / (x * x);
  }
};
struct SquaredDifference {
  template <typename T>
  T operator()(T a, T b) const {
    T d = a - b;
    return d * d;
  }
};
struct Reciprocal {
  template <typename T>
  T operator()(T x) const {
    return T(1) / x;
  }
};
struct Conj {
  template <typename T>
  T operator()(T x) const {
    return conj(x);
  }
};
struct RealPart {
  template <typename T>
  auto operator()(T x) const {
    return real(x);
  }
};

// A NaN on either side is the result.
struct Maximum {
  template <typename T>
  T operator()(T a, T b) const {
    return maximum(a, b);
  }
};
struct Minimum {
  template <typename T>
  T operator()(T a, T b) const {
    return minimum(a, b);
  }
};
// The upper bound wins where the bounds cross; a NaN bound is the result.
struct Clamp {
  template <typename T>
  T operator()(T x, T low, T high) const {
    return minimum(maximum(x, low), high);
  }
};

struct Lerp {
  template <typename T>
  T operator()(T start, T end, T weight) const {
    // The formula whose rounding error vanishes at the nearer end.
    T difference = end - start;
    T near_start = start + weight * difference, near_end = end - difference * (T(1) - weight);
    if constexpr (IsComplex<T>) return where(abs(weight) < typename T::Real(0.5), near_start, near_end);
    else return where(abs(weight) < T(0.5), near_start, near_end);
  }
};
struct AddCMul {
  template <typename T>
  T operator()(T x, T a, T b, T value) const {
    return x + value * a * b;
  }
};
struct AddCDiv {
  template <typename T>
  T operator()(T x, T a, T b, T value) const {
    return x + value * a / b;
  }
};

}  // namespace weft::scalar
