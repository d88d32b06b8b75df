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
  // Divided by the larger part of b first, so that squares neither overflow nor vanish. What infinities give
  // follows from the steps: those of PyTorch.
  friend ComplexPair operator/(ComplexPair a, ComplexPair b) {
    Mask upright = abs(b.re) >= abs(b.im), zero = (b.re == R(0)) & (b.im == R(0));
    R larger = where(upright, b.re, b.im), smaller = where(upright, b.im, b.re);
    R ratio = smaller / larger, scale = R(1) / (larger + smaller * ratio);
    R re = where(upright, a.re + a.im * ratio, a.re * ratio + a.im) * scale;
    R im = where(upright, a.im - a.re * ratio, a.im * ratio - a.re) * scale;
    return {where(zero, a.re / abs(b.re), re), where(zero, a.im / abs(b.im), im)};
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

// radius * (cos(angle), sin(angle)); a zero angle or radius stays exact beside infinities, and a radius that
// is infinite, rather than too large, stays so in an unknown direction.
template <typename R>
ComplexPair<R> polar(R radius, R angle, MaskOf<R> is_infinite_radius) {
  R re = radius * cos(angle), im = radius * sin(angle);
  MaskOf<R> flat = angle == R(0), none = radius == R(0);
  MaskOf<R> lost = is_infinite_radius & is_nan(re);
  re = where(flat | lost, radius, where(none, R(0), re));
  return {re, where(flat, angle, where(none, R(0), im))};
}

template <typename R>
ComplexPair<R> exp(ComplexPair<R> z) {
  return polar(exp(z.re), z.im, is_infinite(z.re));
}
template <typename R>
ComplexPair<R> exp2(ComplexPair<R> z) {
  return polar(exp2(z.re), z.im * R(0.69314718055994530942), is_infinite(z.re));
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
  R re = where(abs(z.re) + abs(z.im) < R(0.5), small, large);
  return {where(is_nan(z), R(__builtin_nan("")), re), atan2(z.im, R(1) + z.re)};
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

// A product of a zero and an infinity that stands for a zero: the part is zero wherever the other factor's
// argument lies.
template <typename R>
R keep_zero(MaskOf<R> is_zero, R zero, R product) {
  return where(is_zero & is_nan(product), zero, product);
}
// One that is infinite in an unknown direction.
template <typename R>
R keep_infinity(R infinity, R product) {
  return where(is_infinite(infinity) & is_nan(product), abs(infinity), product);
}
template <typename R>
ComplexPair<R> sin(ComplexPair<R> z) {
  return {keep_zero(z.re == R(0), z.re, sin(z.re) * cosh(z.im)),
          keep_infinity(z.im, keep_zero(z.im == R(0), z.im, cos(z.re) * sinh(z.im)))};
}
template <typename R>
ComplexPair<R> cos(ComplexPair<R> z) {
  R zero = copysign(R(0), z.re) * copysign(R(1), z.im);
  return {keep_infinity(z.im, cos(z.re) * cosh(z.im)),
          -keep_zero((z.re == R(0)) | (z.im == R(0)), zero, sin(z.re) * sinh(z.im))};
}
template <typename R>
ComplexPair<R> sinh(ComplexPair<R> z) {
  ComplexPair<R> s = sin(times_i(z));
  return {s.im, -s.re};
}
template <typename R>
ComplexPair<R> cosh(ComplexPair<R> z) {
  return cos(times_i(z));
}
// tanh(x + iy) = (t (1 + u^2) + i u (1 - t^2)) / (1 + t^2 u^2) with t = tanh x, u = tan y; written with
// sin and cos so that nothing overflows. Beyond |x| = 20 the result is +-1 in either precision.
template <typename R>
ComplexPair<R> tanh(ComplexPair<R> z) {
  R s = sin(z.im), c = cos(z.im), bounded = where(abs(z.re) > R(20), R(20), abs(z.re));
  R sh = sinh(bounded), ch = cosh(bounded);
  R norm = sh * sh + c * c;
  R re = keep_zero(z.re == R(0), z.re, copysign(sh * ch / norm, z.re));
  MaskOf<R> far = abs(z.re) > R(20);
  R tail = keep_zero(is_infinite(z.re), copysign(R(0), z.im), R(4) * s * c * exp(R(-2) * abs(z.re)));
  // An angle that says nothing matters unless x is infinite.
  R one = where(is_nan(s) & !is_infinite(z.re), s, copysign(R(1), z.re));
  return {where(far, one, re), keep_zero(z.im == R(0), z.im, where(far, tail, s * c / norm))};
}
template <typename R>
ComplexPair<R> tan(ComplexPair<R> z) {
  ComplexPair<R> t = tanh(times_i(z));
  return {t.im, -t.re};
}
template <typename R>
ComplexPair<R> sigmoid(ComplexPair<R> z) {
  ComplexPair<R> one(R(1));
  return one / (one + exp(-z));
}
template <typename R>
ComplexPair<R> pow(ComplexPair<R> base, ComplexPair<R> exponent) {
  ComplexPair<R> zero(R(0));
  ComplexPair<R> general = exp(exponent * log(base));  // of zero to the power of zero it is not a number
  return where((base == zero) & (exponent.re > R(0)), zero, general);
}

}  // namespace weft::scalar
