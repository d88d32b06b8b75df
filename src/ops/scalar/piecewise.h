#pragma once

#include <utility>

#include "ops/scalar/algebra.h"

// Functions by one short polynomial an interval, for instruction sets that can look a coefficient up in a
// table of 32 floats: half the operations of one polynomial for all, and no division. The compiler fits the
// polynomials, from the functions' definitions.
namespace weft::scalar {

// Interval n reaches half a width to both sides of n * width; what belongs to it is at place n modulo 32 of
// the tables. Its polynomial is one of x - origin.
template <int degree>
struct Piecewise {
  static constexpr int kIntervals = 32;
  float width;
  alignas(64) float origins[kIntervals];
  alignas(64) float coefficients[degree + 1][kIntervals];
};

// Interpolates in the zeros of a Chebyshev polynomial, in double precision. T is the type that `evaluate` is
// called with: a call that depends on it is made where the function is instantiated, not wherever it is
// declared.
template <typename T, int degree, typename F>
consteval Piecewise<degree> fit_piecewise(int first, float width, F f) {
  static_assert(degree % 2 == 0, "an odd number of points has one where t is 0");
  constexpr int kPoints = degree + 1;
  // 1 - x^2/2 + ...: to twelve digits up to pi.
  auto cosine = [](double x) {
    double term = 1, sum = 1;
    for (int k = 1; k <= 12; ++k) sum += term *= -x * x / ((2 * k - 1) * (2 * k));
    return sum;
  };
  // What rounding to single precision does to it.
  auto rounding = [](double x) {
    return x < static_cast<float>(x) ? static_cast<float>(x) - x : x - static_cast<float>(x);
  };
  Piecewise<degree> result{};
  result.width = width;
  for (int n = first; n < first + Piecewise<degree>::kIntervals; ++n) {
    const double middle = static_cast<double>(n) * width;
    // The constant term would bring its rounding into every result: an origin near the middle where it is
    // small.
    double origin = middle;
    for (int step = 1; step < 48 && f(origin) != 0; ++step) {
      const double other = middle + step * 0x1p-18;
      if (rounding(f(other)) < rounding(f(origin))) origin = other;
    }
    // A function that is zero there is fitted as t times another one: small results keep all their digits.
    const int lowest = f(origin) == 0 ? 1 : 0, used = kPoints - lowest;
    double points[kPoints]{}, differences[kPoints]{}, sums[kPoints]{};
    for (int i = 0; i < used; ++i) {
      points[i] = middle - origin + 0.5 * width * cosine((i + 0.5) * 3.14159265358979323846 / used);
      differences[i] = f(origin + points[i]) / (lowest ? points[i] : 1);
    }
    for (int order = 1; order < used; ++order)
      for (int i = used - 1; i >= order; --i)
        differences[i] = (differences[i] - differences[i - 1]) / (points[i] - points[i - order]);
    // Newton's form, from its last term outwards, multiplied out.
    for (int i = used - 1; i >= 0; --i) {
      for (int k = used - 1; k > 0; --k) sums[k] = sums[k - 1] - points[i] * sums[k];
      sums[0] = differences[i] - points[i] * sums[0];
    }
    const int place = n & (Piecewise<degree>::kIntervals - 1);
    result.origins[place] = static_cast<float>(origin);
    for (int k = 0; k < used; ++k) result.coefficients[k + lowest][place] = static_cast<float>(sums[k]);
  }
  return result;
}

// The value at x, which must lie within the intervals: elsewhere it means nothing. NaN gives NaN.
template <int degree, typename T>
[[gnu::always_inline]] inline T evaluate(const Piecewise<degree>& f, T x) {
  // In a number of this size, the last bit counts ones: the sum ends in the number of the interval.
  constexpr float kRounds = 1.5f * (1 << 23);
  const T place = multiply_add(x, T(1 / f.width), T(kRounds));
  const T t = x - look_up(f.origins, place);
  T sum = look_up(f.coefficients[degree], place);
  [&]<size_t... k>(std::index_sequence<k...>) __attribute__((always_inline)) {
    ((sum = multiply_add(sum, t, look_up(f.coefficients[degree - 1 - k], place))), ...);
  }(std::make_index_sequence<degree>());
  return sum;
}

consteval double exp_of(double x) {
  const double part = x / 1024;
  double term = 1, sum = 1;
  for (int k = 1; k < 12; ++k) sum += term *= part / k;
  for (int doubling = 0; doubling < 10; ++doubling) sum *= sum;
  return sum;
}
// In the last interval of each the result is 1 to within a unit in the last place; 1 itself lets what is made
// of 1 - tanh(x)^2 vanish as it should.
consteval double tanh_of(double x) {
  if (x > 8.81) return 1;
  const double e = exp_of(-2 * x);
  return (1 - e) / (1 + e);
}
// 1/2 + density * (x + x^3/3 + x^5/(3*5) + ...): good to 8 digits down to -4.
consteval double normal_cdf_of(double x) {
  if (x > 5.26) return 1;
  double term = x, sum = x;
  for (int k = 1; term * term > sum * sum * 1e-34; ++k) sum += term *= x * x / (2 * k + 1);
  return 0.5 + 0.39894228040143267794 * exp_of(-0.5 * x * x) * sum;
}

}  // namespace weft::scalar
