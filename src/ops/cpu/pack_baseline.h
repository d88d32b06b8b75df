#pragma once

#include <sleef.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "ops/cpu/pack_generic.h"
#include "ops/cpu/sleef_functions.h"

namespace weft::cpu {

// One lane: the algebra on plain numbers, through SLEEF's portable functions. Also what an instruction set
// without a SLEEF family of its own builds on.
namespace single {

struct Isa : GenericIsa<Isa> {
  static constexpr int kBytes = 0;
  using F = Vector<float, Isa>;
  using D = Vector<double, Isa>;
#define WEFT_X(name, suffix)                                                    \
  static F name(F x) { return F{Sleef_cinz_##name##f1_##suffix##purec(x[0])}; } \
  static D name(D x) { return D{Sleef_cinz_##name##d1_##suffix##purec(x[0])}; }
  WEFT_SLEEF_UNARY(WEFT_X)
  WEFT_X(floor, )
  WEFT_X(ceil, )
  WEFT_X(trunc, )
  WEFT_X(sqrt, )
#undef WEFT_X
  static F round(F x) { return F{Sleef_cinz_rintf1_purec(x[0])}; }
  static D round(D x) { return D{Sleef_cinz_rintd1_purec(x[0])}; }
#define WEFT_X(name, suffix)                                                               \
  static F name(F a, F b) { return F{Sleef_cinz_##name##f1_##suffix##purec(a[0], b[0])}; } \
  static D name(D a, D b) { return D{Sleef_cinz_##name##d1_##suffix##purec(a[0], b[0])}; }
  WEFT_SLEEF_BINARY(WEFT_X)
#undef WEFT_X
};

}  // namespace single

// What every processor of the architecture has: SSE2 on x86-64, elsewhere 16-byte vectors with portable
// functions lane by lane.
namespace baseline {

struct Isa : GenericIsa<Isa> {
  static constexpr int kBytes = 16, kRegisters = 16;
#if defined(__SSE2__)
#define WEFT_X(name, suffix)                                                       \
  static __m128 name(__m128 x) { return Sleef_cinz_##name##f4_##suffix##sse2(x); } \
  static __m128d name(__m128d x) { return Sleef_cinz_##name##d2_##suffix##sse2(x); }
  WEFT_SLEEF_UNARY(WEFT_X)
  WEFT_X(floor, )
  WEFT_X(ceil, )
  WEFT_X(trunc, )
#undef WEFT_X
#define WEFT_X(name, suffix)                                                                    \
  static __m128 name(__m128 a, __m128 b) { return Sleef_cinz_##name##f4_##suffix##sse2(a, b); } \
  static __m128d name(__m128d a, __m128d b) { return Sleef_cinz_##name##d2_##suffix##sse2(a, b); }
  WEFT_SLEEF_BINARY(WEFT_X)
#undef WEFT_X
  using GenericIsa::greater_of;
  using GenericIsa::lesser_of;
  static __m128 greater_of(__m128 a, __m128 b) { return _mm_max_ps(a, b); }
  static __m128d greater_of(__m128d a, __m128d b) { return _mm_max_pd(a, b); }
  static __m128 lesser_of(__m128 a, __m128 b) { return _mm_min_ps(a, b); }
  static __m128d lesser_of(__m128d a, __m128d b) { return _mm_min_pd(a, b); }
  template <typename D>
  static void widen(__m128 x, D& low, D& high) {
    low = (D)_mm_cvtps_pd(x);
    high = (D)_mm_cvtps_pd(_mm_movehl_ps(x, x));
  }
  static __m128 round(__m128 x) { return Sleef_cinz_rintf4_sse2(x); }
  static __m128d round(__m128d x) { return Sleef_cinz_rintd2_sse2(x); }
  static __m128 sqrt(__m128 x) { return _mm_sqrt_ps(x); }
  static __m128d sqrt(__m128d x) { return _mm_sqrt_pd(x); }
  template <typename I, typename V>
  static I truncate(V x) {
    if constexpr (sizeof(x[0]) == 4) return (I)_mm_cvttps_epi32((__m128)x);
    else
      return __builtin_shufflevector((Vector<int32_t, Isa>)_mm_cvttpd_epi32((__m128d)x),
                                     Vector<int32_t, Isa>{}, 0, 1);
  }
  static auto to_int32(__m128 x) { return (Vector<int32_t, Isa>)_mm_cvtps_epi32(x); }
#else
  template <typename V, typename Function>
  static V lanes(V x, Function f) {
    V result;
    for (size_t i = 0; i < sizeof(V) / sizeof(x[0]); ++i) result[i] = f(x[i]);
    return result;
  }
  template <typename E>
  using One = Vector<E, single::Isa>;
#define WEFT_X(name, suffix)                                                           \
  template <typename V>                                                                \
  static V name(V x) {                                                                 \
    return lanes(x, [](auto e) { return single::Isa::name(One<decltype(e)>{e})[0]; }); \
  }
  WEFT_SLEEF_UNARY(WEFT_X)
  WEFT_X(floor, )
  WEFT_X(ceil, )
  WEFT_X(trunc, )
  WEFT_X(sqrt, )
  WEFT_X(round, )
#undef WEFT_X
#define WEFT_X(name, suffix)                              \
  template <typename V>                                   \
  static V name(V a, V b) {                               \
    using O = One<decltype(a[0] + 0)>;                    \
    V result;                                             \
    for (size_t i = 0; i < sizeof(V) / sizeof(a[0]); ++i) \
      result[i] = single::Isa::name(O{a[i]}, O{b[i]})[0]; \
    return result;                                        \
  }
  WEFT_SLEEF_BINARY(WEFT_X)
#undef WEFT_X
#endif
};

}  // namespace baseline
}  // namespace weft::cpu
