#pragma once

#include "ops/scalar/algebra.h"
#include "ops/scalar/piecewise.h"

// Single-precision functions that inline into loops: a call of a vector library for eight numbers costs more
// than the polynomial. Coefficients that are written here are weighted minimax fits; `multiply_add` is fused
// where the instruction set has it. Polynomials are split into halves (Estrin) because these loops wait for
// results, not for units; those from tables are not, as the look-ups go on meanwhile.
// Errors are measured over all floats by cpu_math_test.
namespace weft::scalar {

// n and e^(x - n ln 2): the reduced argument r has |r| <= ln 2 / 2.
template <typename T>
struct ReducedExp {
  T n, fraction;
};
template <typename T>
[[gnu::always_inline]] inline ReducedExp<T> reduce_exp(T x) {
  T n = round(x * T(1.44269504088896341));
  T r = multiply_add(n, T(-0.693359375), x);  // ln 2 in two parts: the first has trailing zeros
  r = multiply_add(n, T(2.12194440e-4), r);
  T square = r * r;
  T low = multiply_add(T(0.166665196), r, T(0.49999994));
  T high = multiply_add(T(0.00836878084), r, T(0.0416683927));
  high = multiply_add(T(0.00138144649), square, high);
  T q = multiply_add(high, square, low);
  return {n, multiply_add(q, square, r) + T(1)};
}

// e^x. A bound on x keeps n within what two scalings can express; beyond it they still give infinity, zero
// and the right subnormals.
template <typename T>
[[gnu::always_inline]] inline T exp_f32(T x) {
  T bounded = where(x > T(89.0), T(89.0), where(x < T(-104.0), T(-104.0), x));
  ReducedExp<T> e = reduce_exp(bounded);
  return scale_by_power_of_two(e.fraction, e.n);
}
// e^x for |x| < 87, where the result is a normal number.
template <typename T>
[[gnu::always_inline]] inline T exp_bounded_f32(T x) {
  ReducedExp<T> e = reduce_exp(x);
  return scale_within_normals(e.fraction, e.n);
}

template <typename T>
[[gnu::always_inline]] inline T tanh_f32(T x) {
  T z = abs(x), bounded = at_most(z, T(9.1));  // the result is 1 from 9.02
  if constexpr (T::kLooksUp) {
    static constexpr auto kTanh =
        fit_piecewise<T, 6>(0, 0.2890625f, [](double t) consteval { return tanh_of(t); });
    return copysign(evaluate(kTanh, bounded), x);
  } else {
    T s = x * x, square = s * s;
    T low = multiply_add(T(0.133314207), s, T(-0.333332807));
    T high = multiply_add(T(0.0206325501), s, T(-0.0537378006));
    T q = multiply_add(multiply_add(T(-0.00569738727), square, high), square, low);
    T small = multiply_add(q * s, x, x);
    T large = T(1) - T(2) / (exp_bounded_f32(bounded + bounded) + T(1));
    return copysign(where(z < T(0.625), small, large), x);  // of small, too: it loses the sign of -0
  }
}

// For |x| above 0.92, erf(x) = 1 - exp(q(x)) with q a fit of log(erfc).
template <typename T>
[[gnu::always_inline]] inline T erf_f32(T x) {
  T z = abs(x), s = x * x;
  T t = where(z > T(4), T(4), z);  // beyond 3.92 the result is 1
  T t2 = t * t;
  T q_low = multiply_add(T(-1.12767565), t, T(-0.000195666507));
  T q_middle = multiply_add(T(-0.103931665), t, T(-0.637182176));
  T q_high = multiply_add(T(-0.00304322666), t, T(0.0222269557));
  q_high = multiply_add(T(0.000195938264), t2, q_high);
  T q = multiply_add(multiply_add(q_high, t2, q_middle), t2, q_low);
  T large = T(1) - exp_bounded_f32(q);
  T s2 = s * s;
  T p_low = multiply_add(T(-0.376126319), s, T(0.128379166));
  T p_middle = multiply_add(T(-0.0268589444), s, T(0.112836875));
  T p_high = multiply_add(T(-0.000813005492), s, T(0.00519991107));
  p_high = multiply_add(T(8.31692523e-05), s2, p_high);
  T p = multiply_add(multiply_add(p_high, s2, p_middle), s2, p_low);
  T small = multiply_add(p, x, x);
  return where(z < T(0.92), small, copysign(large, x));
}

// The normal distribution's cumulative function, erfc(-x / sqrt 2) / 2, to within 4 units in the last place
// on both sides: erfc(z) = exp(-z^2) u P(u) with u = 1 / (1 + 0.425 z).
template <typename T>
[[gnu::always_inline]] inline T normal_cdf_by_exp_f32(T x) {
  T z = abs(x) * T(0.70710678118654752);
  T u = T(1) / multiply_add(z, T(0.425), T(1));
  T exponent = x * x * T(-0.5);
  T e = where(exponent < T(-87), T(0), exp_bounded_f32(exponent));
  T u2 = u * u;
  T a = multiply_add(T(0.241840541), u, T(0.239678636)), b = multiply_add(T(0.255084276), u, T(0.200706586));
  T c = multiply_add(T(0.407610774), u, T(-0.103245713)),
    d = multiply_add(T(0.0714769289), u, T(-0.313152194));
  T p = multiply_add(multiply_add(d, u2, c), u2 * u2, multiply_add(b, u2, a));
  T tail = e * (T(0.5) * u) * p;
  return where(x < T(0), tail, T(1) - tail);
}
// This is what gelu needs. Numbers below the intervals are rare: they are computed where there are any.
template <typename T>
[[gnu::always_inline]] inline T normal_cdf_f32(T x) {
  if constexpr (T::kLooksUp) {
    constexpr int kFirst = -13;
    constexpr float kWidth = 0.30078125f;
    static constexpr auto kNormalCdf =
        fit_piecewise<T, 6>(kFirst, kWidth, [](double t) consteval { return normal_cdf_of(t); });
    const T inside = evaluate(kNormalCdf, at_most(x, T(5.5)));  // the table has 1 from 5.26
    const auto is_below = x < T((kFirst - 0.4f) * kWidth);  // a little inside: its edge may round outwards
    return any(is_below) ? where(is_below, normal_cdf_by_exp_f32(x), inside) : inside;
  } else {
    return normal_cdf_by_exp_f32(x);
  }
}

}  // namespace weft::scalar
