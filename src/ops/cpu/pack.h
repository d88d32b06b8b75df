#pragma once

#include "ops/scalar/algebra.h"
#include "ops/scalar/approximations.h"
#include "ops/scalar/complex_pair.h"

// SIMD packs over the compilers' vector extension. `Isa` is a tag type of an instruction set's namespace
// (avx512::Isa, avx2::Isa, baseline::Isa): it fixes the width, supplies the operations that have no operator,
// and keeps the symbols of instruction sets apart. A pack of any type has the same number of bytes.
namespace weft::cpu {

using scalar::Category;

template <int size>
struct SignedOfSize;
template <>
struct SignedOfSize<1> {
  using type = int8_t;
  using unsigned_type = uint8_t;
};
template <>
struct SignedOfSize<2> {
  using type = int16_t;
  using unsigned_type = uint16_t;
};
template <>
struct SignedOfSize<4> {
  using type = int32_t;
  using unsigned_type = uint32_t;
};
template <>
struct SignedOfSize<8> {
  using type = int64_t;
  using unsigned_type = uint64_t;
};

template <typename T>
struct ElementTraits {  // the integers
  using Storage = T;
  static constexpr Category kCategory = T(-1) < T(0) ? Category::kSigned : Category::kUnsigned;
};
template <>
struct ElementTraits<bool> {  // a byte that is 0 or 1
  using Storage = uint8_t;
  static constexpr Category kCategory = Category::kBool;
};
template <>
struct ElementTraits<float> {
  using Storage = float;
  static constexpr Category kCategory = Category::kReal;
};
template <>
struct ElementTraits<double> {
  using Storage = double;
  static constexpr Category kCategory = Category::kReal;
};

template <typename T, int bytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(bytes)));
};
template <typename T, typename Isa>
using Vector = typename VectorOf<T, (Isa::kBytes != 0 ? Isa::kBytes : sizeof(T))>::type;  // 0: one lane

// All bits of a lane set, or none.
template <typename T, typename Isa>
struct LaneMask {
  using V = Vector<typename SignedOfSize<sizeof(T)>::type, Isa>;
  static constexpr int kLanes = static_cast<int>(sizeof(V) / sizeof(T));
  V v;

  friend LaneMask operator&(LaneMask a, LaneMask b) { return {a.v & b.v}; }
  friend LaneMask operator|(LaneMask a, LaneMask b) { return {a.v | b.v}; }
  friend LaneMask operator^(LaneMask a, LaneMask b) { return {a.v ^ b.v}; }
  friend LaneMask operator!(LaneMask a) { return {~a.v}; }
  friend LaneMask operator==(LaneMask a, LaneMask b) { return {~(a.v ^ b.v)}; }
  friend LaneMask operator!=(LaneMask a, LaneMask b) { return {a.v ^ b.v}; }

  // Masks in memory are bytes of 0 and 1.
  static LaneMask load(const uint8_t* p) { return {Isa::template load_mask<V>(p)}; }
  void store(uint8_t* p) const { Isa::store_mask(p, v); }
};
template <typename T, typename Isa>
bool any(LaneMask<T, Isa> mask) {
  return Isa::any(mask.v);
}

template <typename T, typename Isa_>
struct Pack {
  using Isa = Isa_;
  using Element = typename ElementTraits<T>::Storage;
  using V = Vector<Element, Isa>;
  using Unsigned = Vector<typename SignedOfSize<sizeof(T)>::unsigned_type, Isa>;
  using Mask = LaneMask<Element, Isa>;
  static constexpr Category kCategory = ElementTraits<T>::kCategory;
  static constexpr bool kIsInteger = kCategory == Category::kSigned || kCategory == Category::kUnsigned;
  static constexpr int kLanes = static_cast<int>(sizeof(V) / sizeof(Element));
  static constexpr bool kLooksUp = Isa::kLooksUp && sizeof(Element) == 4;  // has look_up
  V v;

  Pack() = default;
  Pack(V v) : v(v) {}  // NOLINT(google-explicit-constructor)
  template <typename Number>
    requires requires(Number x) { static_cast<Element>(x); }
  explicit Pack(Number x) : v(static_cast<Element>(x) - V{}) {}  // x - 0 is x for -0.0 too

  static Pack load(const void* p) {
    Pack result;
    __builtin_memcpy(&result.v, p, sizeof(V));
    return result;
  }
  void store(void* p) const { __builtin_memcpy(p, &v, sizeof(V)); }

  friend Pack operator+(Pack a, Pack b) {
    if constexpr (kCategory == Category::kBool) return a.v | b.v;
    else if constexpr (kIsInteger) return (V)((Unsigned)a.v + (Unsigned)b.v);
    else return a.v + b.v;
  }
  friend Pack operator-(Pack a, Pack b) {
    static_assert(kCategory != Category::kBool, "booleans have no difference: use ^");
    if constexpr (kIsInteger) return (V)((Unsigned)a.v - (Unsigned)b.v);
    else return a.v - b.v;
  }
  friend Pack operator*(Pack a, Pack b) {
    if constexpr (kCategory == Category::kBool) return a.v & b.v;
    else if constexpr (kIsInteger) return (V)((Unsigned)a.v * (Unsigned)b.v);
    else return a.v * b.v;
  }
  friend Pack operator/(Pack a, Pack b) {
    static_assert(kCategory == Category::kReal, "integers divide by floor_div or trunc_div");
    return a.v / b.v;
  }
  friend Pack operator-(Pack a) {
    static_assert(kCategory != Category::kBool, "booleans have no negative: use ~");
    if constexpr (kIsInteger) return (V)(-(Unsigned)a.v);
    else return -a.v;
  }
  friend Pack operator&(Pack a, Pack b) { return a.v & b.v; }
  friend Pack operator|(Pack a, Pack b) { return a.v | b.v; }
  friend Pack operator^(Pack a, Pack b) { return a.v ^ b.v; }
  friend Pack operator~(Pack a) {
    if constexpr (kCategory == Category::kBool) return a.v ^ Pack(1).v;
    else return ~a.v;
  }

  friend Mask operator==(Pack a, Pack b) { return {(typename Mask::V)(a.v == b.v)}; }
  friend Mask operator!=(Pack a, Pack b) { return {(typename Mask::V)(a.v != b.v)}; }
  friend Mask operator<(Pack a, Pack b) { return {(typename Mask::V)(a.v < b.v)}; }
  friend Mask operator<=(Pack a, Pack b) { return {(typename Mask::V)(a.v <= b.v)}; }
  friend Mask operator>(Pack a, Pack b) { return {(typename Mask::V)(a.v > b.v)}; }
  friend Mask operator>=(Pack a, Pack b) { return {(typename Mask::V)(a.v >= b.v)}; }
};

template <typename T, typename Isa>
Pack<T, Isa> where(typename Pack<T, Isa>::Mask mask, Pack<T, Isa> a, Pack<T, Isa> b) {
  return Isa::select(mask.v, a.v, b.v);
}
template <typename T, typename Isa>
typename Pack<T, Isa>::Mask is_nan(Pack<T, Isa> x) {
  return x != x;
}
template <typename T, typename Isa>
Pack<T, Isa> conj(Pack<T, Isa> x) {
  return x;
}
template <typename T, typename Isa>
Pack<T, Isa> real(Pack<T, Isa> x) {
  return x;
}

template <typename T, typename Isa>
Pack<T, Isa> maximum(Pack<T, Isa> a, Pack<T, Isa> b) {
  if constexpr (scalar::IsReal<Pack<T, Isa>>)
    return where(is_nan(a), a, Pack<T, Isa>(Isa::greater_of(a.v, b.v)));
  else return Isa::greater_of(a.v, b.v);
}
template <typename T, typename Isa>
Pack<T, Isa> minimum(Pack<T, Isa> a, Pack<T, Isa> b) {
  if constexpr (scalar::IsReal<Pack<T, Isa>>)
    return where(is_nan(a), a, Pack<T, Isa>(Isa::lesser_of(a.v, b.v)));
  else return Isa::lesser_of(a.v, b.v);
}

// The lesser of the two; x if it is NaN.
template <typename T, typename Isa>
Pack<T, Isa> at_most(Pack<T, Isa> x, Pack<T, Isa> bound) {
  return Isa::lesser_of(bound.v, x.v);
}
// The elements of a table of 32 that the lowest five bits of each lane name.
template <typename Isa>
Pack<float, Isa> look_up(const float* table, Pack<float, Isa> place) {
  return Isa::look_up(table, place.v);
}

namespace detail {
template <typename T, typename Isa>
typename Pack<T, Isa>::Mask::V sign_bits() {
  using M = typename Pack<T, Isa>::Mask;
  return (typename M::V)Pack<T, Isa>(-0.0).v;
}
}  // namespace detail

template <typename T, typename Isa>
Pack<T, Isa> abs(Pack<T, Isa> x) {
  using P = Pack<T, Isa>;
  if constexpr (P::kCategory == Category::kReal) {
    return (typename P::V)((typename P::Mask::V)x.v & ~detail::sign_bits<T, Isa>());
  } else if constexpr (P::kCategory == Category::kSigned) {
    return where(x < P(0), -x, x);
  } else {
    return x;
  }
}
template <typename T, typename Isa>
Pack<T, Isa> copysign(Pack<T, Isa> magnitude, Pack<T, Isa> sign) {
  using P = Pack<T, Isa>;
  auto bits = detail::sign_bits<T, Isa>();
  return (typename P::V)(((typename P::Mask::V)magnitude.v & ~bits) | ((typename P::Mask::V)sign.v & bits));
}
template <typename T, typename Isa>
typename Pack<T, Isa>::Mask is_infinite(Pack<T, Isa> x) {
  return abs(x) == Pack<T, Isa>(__builtin_inf());
}
// a * b + c, rounded once where the instruction set can.
template <typename T, typename Isa>
Pack<T, Isa> multiply_add(Pack<T, Isa> a, Pack<T, Isa> b, Pack<T, Isa> c) {
  return Isa::multiply_add(a.v, b.v, c.v);
}
// The same with one number in memory, broadcast to all lanes by the instruction itself; where
// `Isa::kEmbeddedBroadcast`.
template <typename T, typename Isa>
Pack<T, Isa> multiply_add_broadcast(const T* a, Pack<T, Isa> b, Pack<T, Isa> c) {
  return Isa::multiply_add_broadcast(a, b.v, c.v);
}

// x * 2^n for integral n from -252 to 254, in two steps: 2^n itself may not be a float.
template <typename Isa>
Pack<float, Isa> scale_by_power_of_two(Pack<float, Isa> x, Pack<float, Isa> n) {
  using V = typename Pack<float, Isa>::V;
  using I = Vector<int32_t, Isa>;
  I whole = Isa::to_int32(n.v);
  I half = whole >> 1;
  return x.v * (V)((half + 127) << 23) * (V)((whole - half + 127) << 23);
}

// The same where x and the result are normal numbers: an addition to the exponent.
template <typename Isa>
Pack<float, Isa> scale_within_normals(Pack<float, Isa> x, Pack<float, Isa> n) {
  using I = Vector<int32_t, Isa>;
  return (typename Pack<float, Isa>::V)((I)x.v + (Isa::to_int32(n.v) << 23));
}

// Rounded to 16 bits and back.
template <typename Isa>
Pack<float, Isa> rounded_to_half(Pack<float, Isa> x) {
  alignas(64) char bits[2 * Pack<float, Isa>::kLanes];
  Isa::to_half(bits, x.v);
  return Isa::template from_half<typename Pack<float, Isa>::V>(bits);
}
template <typename Isa>
Pack<float, Isa> rounded_to_bfloat16(Pack<float, Isa> x) {
  alignas(64) char bits[2 * Pack<float, Isa>::kLanes];
  Isa::to_bfloat16(bits, x.v);
  return Isa::template from_bfloat16<typename Pack<float, Isa>::V>(bits);
}

#define WEFT_UNARY(name)              \
  template <typename T, typename Isa> \
  Pack<T, Isa> name(Pack<T, Isa> x) { \
    return Isa::name(x.v);            \
  }
// clang-format off
WEFT_UNARY(exp2) WEFT_UNARY(expm1) WEFT_UNARY(log) WEFT_UNARY(log2) WEFT_UNARY(log10) WEFT_UNARY(sqrt)
WEFT_UNARY(sin) WEFT_UNARY(cos) WEFT_UNARY(tan) WEFT_UNARY(asin) WEFT_UNARY(acos) WEFT_UNARY(atan)
WEFT_UNARY(sinh) WEFT_UNARY(cosh) WEFT_UNARY(atanh) WEFT_UNARY(erfc)
WEFT_UNARY(floor) WEFT_UNARY(ceil) WEFT_UNARY(trunc) WEFT_UNARY(round)
#undef WEFT_UNARY
template <typename Isa>
[[gnu::always_inline]] inline Pack<float, Isa> exp(Pack<float, Isa> x) {
  return scalar::exp_f32(x);
}
// clang-format on
template <typename Isa>
Pack<double, Isa> exp(Pack<double, Isa> x) {
  return Isa::exp(x.v);
}
template <typename Isa>
[[gnu::always_inline]] inline Pack<float, Isa> tanh(Pack<float, Isa> x) {
  return scalar::tanh_f32(x);
}
template <typename Isa>
Pack<double, Isa> tanh(Pack<double, Isa> x) {
  return Isa::tanh(x.v);
}
template <typename Isa>
[[gnu::always_inline]] inline Pack<float, Isa> erf(Pack<float, Isa> x) {
  return scalar::erf_f32(x);
}
template <typename Isa>
Pack<double, Isa> erf(Pack<double, Isa> x) {
  return Isa::erf(x.v);
}
template <typename Isa>
[[gnu::always_inline]] inline Pack<float, Isa> normal_cdf(Pack<float, Isa> x) {
  return scalar::normal_cdf_f32(x);
}
template <typename Isa>
Pack<double, Isa> normal_cdf(Pack<double, Isa> x) {
  using P = Pack<double, Isa>;
  return P(0.5) * erfc(x * P(-0.70710678118654752440));
}
template <typename T, typename Isa>
[[gnu::always_inline]] inline Pack<T, Isa> sigmoid(Pack<T, Isa> x) {
  using P = Pack<T, Isa>;
  return P(1) / (P(1) + exp(-x));
}
template <typename T, typename Isa>
Pack<T, Isa> rsqrt(Pack<T, Isa> x) {
  return Pack<T, Isa>(1) / sqrt(x);
}
template <typename T, typename Isa>
Pack<T, Isa> hypot(Pack<T, Isa> a, Pack<T, Isa> b) {
  return Isa::hypot(a.v, b.v);
}
template <typename T, typename Isa>
Pack<T, Isa> atan2(Pack<T, Isa> y, Pack<T, Isa> x) {
  return Isa::atan2(y.v, x.v);
}

// SLEEF gives infinity for arguments near the largest numbers; there these functions are logarithms.
namespace detail {
template <typename P>
P far_value() {
  return P(sizeof(typename P::Element) == 4 ? 0x1p60 : 0x1p500);
}
}  // namespace detail
template <typename T, typename Isa>
Pack<T, Isa> log1p(Pack<T, Isa> x) {
  Pack<T, Isa> near = Isa::log1p(x.v);
  auto far = x > detail::far_value<Pack<T, Isa>>();
  return any(far) ? where(far, log(x), near) : near;
}
template <typename T, typename Isa>
Pack<T, Isa> asinh(Pack<T, Isa> x) {
  using P = Pack<T, Isa>;
  P near = Isa::asinh(x.v);
  auto far = abs(x) > detail::far_value<P>();
  return any(far) ? where(far, copysign(log(abs(x)) + P(0.69314718055994530942), x), near) : near;
}
template <typename T, typename Isa>
Pack<T, Isa> acosh(Pack<T, Isa> x) {
  using P = Pack<T, Isa>;
  P near = Isa::acosh(x.v);
  auto far = x > detail::far_value<P>();
  return any(far) ? where(far, log(x) + P(0.69314718055994530942), near) : near;
}

// SLEEF's fmod gives up beyond a ratio; the C library is exact and slow.
template <typename T, typename Isa>
Pack<T, Isa> fmod(Pack<T, Isa> a, Pack<T, Isa> b) {
  using P = Pack<T, Isa>;
  P result = Isa::fmod(a.v, b.v);
  auto near = abs(a) < abs(b) * P(sizeof(T) == 4 ? 0x1p20 : 0x1p48);
  if (!any(!near)) return result;
  for (int i = 0; i < P::kLanes; ++i) {
    if (near.v[i]) continue;
    if constexpr (sizeof(T) == 4) result.v[i] = __builtin_fmodf(a.v[i], b.v[i]);
    else result.v[i] = __builtin_fmod(a.v[i], b.v[i]);
  }
  return result;
}

}  // namespace weft::cpu

#include "ops/cpu/pack_integer.h"
