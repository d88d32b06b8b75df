#pragma once

#include "ops/scalar/complex_pair.h"

// Reductions. Those with one accumulator of the element's kind have an identity, a step that prepares an
// element, a combination that is associative up to rounding, and perhaps a finish that knows how many
// elements there were; the others say what their accumulator is.
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

// --- positions -------------------------------------------------------------------------------------------

// Whether a later x takes the place of y: the first extreme wins, and any NaN wins over numbers. Of plain
// numbers too.
template <bool largest, typename T>
[[gnu::always_inline]] inline auto is_better(T x, T y) {
  if constexpr (largest) return (y == y) & ((x != x) | (x > y));
  else return (y == y) & ((x != x) | (x < y));
}

// The extreme so far and its position, which is -1 before the first element.
template <typename T, typename I>
struct Found {
  T value;
  I position;
};
template <bool largest_, bool with_value_>
struct PositionReduction {
  static constexpr bool kLargest = largest_, kWithValue = with_value_;
  template <typename T, typename I>
  static Found<T, I> identity() {
    return {largest_ ? lowest(T()) : highest(T()), I(-1)};
  }
  template <typename T, typename I>
  static Found<T, I> step(Found<T, I> a, T x, I index) {
    return choose((a.position < I(0)) | is_better<largest_>(x, a.value), Found<T, I>{x, index}, a);
  }
  template <typename T, typename I>
  static Found<T, I> combine(Found<T, I> a, Found<T, I> b) {
    auto improves = (a.position < I(0)) | is_better<largest_>(b.value, a.value);
    return choose((b.position >= I(0)) & improves, b, a);
  }

 private:
  template <typename T, typename I>
  static Found<T, I> choose(MaskOf<T> mask, Found<T, I> a, Found<T, I> b) {
    return {where(mask, a.value, b.value), where(mask, a.position, b.position)};
  }
};
using ArgmaxReduction = PositionReduction<true, false>;
using ArgminReduction = PositionReduction<false, false>;
using MaxDimReduction = PositionReduction<true, true>;
using MinDimReduction = PositionReduction<false, true>;

// --- variance --------------------------------------------------------------------------------------------

// Of the elements so far: how many, their mean, the sum of their squared deviations from it.
template <typename T>
struct Moments {
  T count, mean, deviation;
};
// Chan's formula. Of plain numbers too; one of them must have elements.
template <typename T>
[[gnu::always_inline]] inline Moments<T> merged(Moments<T> a, Moments<T> b) {
  T total = a.count + b.count, delta = b.mean - a.mean;
  return {total, a.mean + delta * (b.count / total),
          a.deviation + (b.deviation + delta * delta * (a.count * b.count / total))};
}
template <bool root_, bool with_mean_>
struct VarianceFunctor {
  static constexpr bool kRoot = root_, kWithMean = with_mean_;
  template <typename T>
  static Moments<T> step(Moments<T> a, T x) {
    return merged(a, {T(1), x, T(0)});
  }
  template <typename T>
  static Moments<T> combine(Moments<T> a, Moments<T> b) {
    Moments<T> both = merged(a, b);
    auto is_empty = b.count == T(0);
    return {where(is_empty, a.count, both.count), where(is_empty, a.mean, both.mean),
            where(is_empty, a.deviation, both.deviation)};
  }
  // The spread, and the mean. No element has neither.
  template <typename T>
  static Two<T> finish(Moments<T> a, T count, T correction) {
    T degrees = count - correction, nan = T(__builtin_nan(""));
    T variance = a.deviation / where(degrees < T(0), T(0), degrees);
    auto is_empty = count == T(0);
    T spread = where(is_empty, nan, variance);
    if constexpr (root_) spread = sqrt(spread);
    return {spread, where(is_empty, nan, a.mean)};
  }
};
using VarReduction = VarianceFunctor<false, false>;
using StdReduction = VarianceFunctor<true, false>;
using VarMeanReduction = VarianceFunctor<false, true>;
using StdMeanReduction = VarianceFunctor<true, true>;

}  // namespace weft::scalar
