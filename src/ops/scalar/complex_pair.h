#pragma once

#include "ops/scalar/algebra.h"

// Complex numbers as pairs of any real value type of the algebra: packs for kernels, expressions for the
// code generator. Special values follow C99's Annex G where that costs a selection or two.
namespace weft::scalar {

template <typename R>
struct ComplexPair {
  static constexpr Category kCategory = Category::kComplex;
  using Real = R;
  using Mask = MaskOf<R>;
  R re, im;

  ComplexPair() = default;
  ComplexPair(R re, R im) : re(re), im(im) {}
  explicit ComplexPair(R re) : re(re), im(R(0)) {}
  explicit ComplexPair(double re) : re(R(re)), im(R(0)) {}

  friend ComplexPair operator+(ComplexPair a, ComplexPair b) { return {a.re + b.re, a.im + b.im}; }
  friend ComplexPair operator-(ComplexPair a, ComplexPair b) { return {a.re - b.re, a.im - b.im}; }
  friend ComplexPair operator-(ComplexPair a) { return {-a.re, -a.im}; }
  friend ComplexPair operator*(ComplexPair a, ComplexPair b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  friend ComplexPair operator*(ComplexPair a, R b) { return {a.re * b, a.im * b}; }
  // Scaled by the larger part of b, so that squares neither overflow nor vanish.
  friend ComplexPair operator/(ComplexPair a, ComplexPair b) {
    R largest = maximum(abs(b.re), abs(b.im));
    R scale = where(largest == R(0), R(1), where(is_infinite(largest), R(1), R(1) / largest));
    R re = b.re * scale, im = b.im * scale;
    // An infinite divisor makes every finite quotient zero: its parts become 0 or +-1.
    Mask infinite = is_infinite(largest);
    re = where(infinite, where(is_infinite(b.re), copysign(R(1), b.re), copysign(R(0), b.re)), re);
    im = where(infinite, where(is_infinite(b.im), copysign(R(1), b.im), copysign(R(0), b.im)), im);
    R norm = re * re + im * im;
    R real = (a.re * re + a.im * im) / norm * scale, imaginary = (a.im * re - a.re * im) / norm * scale;
    Mask vanishes = infinite & !is_infinite(a.re) & !is_infinite(a.im), zero = largest == R(0);
    R infinity = copysign(R(__builtin_inf()), b.re);
    return {where(zero, a.re * infinity, where(vanishes, real * R(0), real)),
            where(zero, a.im * infinity, where(vanishes, imaginary * R(0), imaginary))};
  }
  friend Mask operator==(ComplexPair a, ComplexPair b) { return (a.re == b.re) & (a.im == b.im); }
  friend Mask operator!=(ComplexPair a, ComplexPair b) { return !(a == b); }
};

template <typename R>
ComplexPair<R> where(MaskOf<R> mask, ComplexPair<R> a, ComplexPair<R> b) {
  return {where(mask, a.re, b.re), where(mask, a.im, b.im)};
}
template <typename R>
MaskOf<R> is_nan(ComplexPair<R> z) {
  return is_nan(z.re) | is_nan(z.im);
}
template <typename R>
ComplexPair<R> conj(ComplexPair<R> z) {
  return {z.re, -z.im};
}
template <typename R>
R real(ComplexPair<R> z) {
  return z.re;
}
template <typename R>
R abs(ComplexPair<R> z) {
  return hypot(z.re, z.im);
}
// i * z, without a multiplication that would turn an infinity into NaN.
template <typename R>
ComplexPair<R> times_i(ComplexPair<R> z) {
  return {-z.im, z.re};
}

// radius * (cos(angle), sin(angle)); a zero angle or radius stays exact beside infinities, and an infinite
// radius stays infinite in an unknown direction.
template <typename R>
ComplexPair<R> polar(R radius, R angle) {
  R re = radius * cos(angle), im = radius * sin(angle);
  MaskOf<R> flat = angle == R(0), none = radius == R(0);
  MaskOf<R> lost = is_infinite(radius) & is_nan(re);
  re = where(flat | lost, radius, where(none, R(0), re));
  return {re, where(flat, angle, where(none, R(0), im))};
}

template <typename R>
ComplexPair<R> exp(ComplexPair<R> z) {
  return polar(exp(z.re), z.im);
}
template <typename R>
ComplexPair<R> exp2(ComplexPair<R> z) {
  return polar(exp2(z.re), z.im * R(0.69314718055994530942));
}
template <typename R>
ComplexPair<R> log(ComplexPair<R> z) {
  return {log(hypot(z.re, z.im)), atan2(z.im, z.re)};
}
template <typename R>
ComplexPair<R> log2(ComplexPair<R> z) {
  return {log2(hypot(z.re, z.im)), atan2(z.im, z.re) * R(1.44269504088896341)};
}
template <typename R>
ComplexPair<R> log10(ComplexPair<R> z) {
  return {log10(hypot(z.re, z.im)), atan2(z.im, z.re) * R(0.43429448190325182765)};
}
template <typename R>
ComplexPair<R> log1p(ComplexPair<R> z) {
  // |1 + z|^2 - 1 = x (2 + x) + y^2 keeps the digits of a small z.
  R small = R(0.5) * log1p(z.re * (R(2) + z.re) + z.im * z.im);
  R large = log(hypot(R(1) + z.re, z.im));
  return {where(abs(z.re) + abs(z.im) < R(0.5), small, large), atan2(z.im, R(1) + z.re)};
}
template <typename R>
ComplexPair<R> expm1(ComplexPair<R> z) {
  R half = sin(z.im * R(0.5));
  R small = expm1(z.re) * cos(z.im) - R(2) * half * half;
  ComplexPair<R> e = exp(z);
  return {where(abs(z.re) < R(1), small, e.re - R(1)), e.im};
}

template <typename R>
ComplexPair<R> sqrt(ComplexPair<R> z) {
  // Halving (and doubling afterwards) keeps |z| + |re| finite for the largest numbers.
  R quarter = R(0.25);
  R magnitude = hypot(z.re * quarter, z.im * quarter);
  R root = sqrt(R(0.5) * (magnitude + abs(z.re) * quarter)) * R(2);
  R other = abs(z.im) * R(0.5) / where(root == R(0), R(1), root);
  MaskOf<R> right = z.re >= R(0);
  R re = where(right, root, other), im = copysign(where(right, other, root), z.im);
  MaskOf<R> infinite = is_infinite(z.im);
  MaskOf<R> flat = is_infinite(z.re) & !infinite & !is_nan(z.im);
  R infinity = abs(z.re);
  re = where(flat, where(right, infinity, R(0)), where(infinite, abs(z.im), re));
  im = where(flat, copysign(where(right, R(0), infinity), z.im), where(infinite, z.im, im));
  return {where(is_nan(z.re) & infinite, abs(z.im), re), im};
}
template <typename R>
ComplexPair<R> rsqrt(ComplexPair<R> z) {
  return ComplexPair<R>(R(1)) / sqrt(z);
}

template <typename R>
ComplexPair<R> sin(ComplexPair<R> z) {
  return {sin(z.re) * cosh(z.im), cos(z.re) * sinh(z.im)};
}
template <typename R>
ComplexPair<R> cos(ComplexPair<R> z) {
  return {cos(z.re) * cosh(z.im), -(sin(z.re) * sinh(z.im))};
}
template <typename R>
ComplexPair<R> sinh(ComplexPair<R> z) {
  return {sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im)};
}
template <typename R>
ComplexPair<R> cosh(ComplexPair<R> z) {
  return {cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im)};
}
// tanh(x + iy) = (t (1 + u^2) + i u (1 - t^2)) / (1 + t^2 u^2) with t = tanh x, u = tan y; written with
// sin and cos so that nothing overflows. Beyond |x| = 20 the result is +-1 in either precision.
template <typename R>
ComplexPair<R> tanh(ComplexPair<R> z) {
  R s = sin(z.im), c = cos(z.im), bounded = where(abs(z.re) > R(20), R(20), abs(z.re));
  R sh = sinh(bounded), ch = cosh(bounded);
  R norm = sh * sh + c * c;
  R re = copysign(sh * ch / norm, z.re);
  MaskOf<R> far = abs(z.re) > R(20);
  R tail = R(4) * s * c * exp(R(-2) * abs(z.re));
  return {where(far, copysign(R(1), z.re), re), where(far, tail, s * c / norm)};
}
template <typename R>
ComplexPair<R> tan(ComplexPair<R> z) {
  ComplexPair<R> t = tanh(times_i(z));
  return {t.im, -t.re};
}
// 1 / (1 + exp(-z)); for a negative real part exp(z) / (1 + exp(z)), which cannot overflow.
template <typename R>
ComplexPair<R> sigmoid(ComplexPair<R> z) {
  MaskOf<R> right = z.re >= R(0);
  ComplexPair<R> e = exp(where(right, -z, z)), one(R(1));
  return where(right, one, e) / (one + e);
}
template <typename R>
ComplexPair<R> pow(ComplexPair<R> base, ComplexPair<R> exponent) {
  ComplexPair<R> zero(R(0)), one(R(1));
  ComplexPair<R> general = exp(exponent * log(base));
  return where(exponent == zero, one, where((base == zero) & (exponent.re > R(0)), zero, general));
}

}  // namespace weft::scalar
