#pragma once

#include "ops/scalar/complex_pair.h"

// Reductions with one accumulator of the element's kind: an identity, the step that prepares an element, a
// combination that is associative up to rounding, and perhaps a finish that knows how many elements there
// were.
namespace weft::scalar {

struct SumReduction {
  static constexpr bool kWidens = true;  // f32 accumulates in f64, after packs were combined by eights in f32
  template <typename T>
  static T identity() {
    return T(0);
  }
  template <typename T>
  static T step(T x) {
    return x;
  }
  template <typename T>
  static T combine(T a, T b) {
    return a + b;
  }
  static constexpr bool kAverages = false;  // whether the result is finish(accumulator, count)
};
struct MeanReduction : SumReduction {
  static constexpr bool kAverages = true;
  template <typename T>
  static T finish(T a, T count) {
    return a / count;
  }
};
struct SumSquaresReduction : SumReduction {
  template <typename T>
  static T step(T x) {
    return x * x;
  }
};
struct ProdReduction : SumReduction {
  template <typename T>
  static T identity() {
    return T(1);
  }
  template <typename T>
  static T combine(T a, T b) {
    return a * b;
  }
};
// A NaN anywhere is the result.
struct AmaxReduction : SumReduction {
  static constexpr bool kWidens = false;
  template <typename T>
  static T identity() {
    return lowest(T());
  }
  template <typename T>
  static T combine(T a, T b) {
    return maximum(a, b);
  }
};
struct AminReduction : AmaxReduction {
  template <typename T>
  static T identity() {
    return highest(T());
  }
  template <typename T>
  static T combine(T a, T b) {
    return minimum(a, b);
  }
};
// Booleans: + is "or", * is "and".
struct AnyReduction : SumReduction {};
struct AllReduction : ProdReduction {};

}  // namespace weft::scalar
