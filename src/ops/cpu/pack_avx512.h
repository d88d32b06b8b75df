#pragma once

#include <immintrin.h>
#include <sleef.h>

#include "ops/cpu/pack_generic.h"
#include "ops/cpu/sleef_functions.h"

// AVX-512 with its F, BW, DQ and VL parts, as Skylake-SP, Zen 4 and later processors have it.
namespace weft::cpu::avx512 {

struct Isa : GenericIsa<Isa> {
  static constexpr int kBytes = 64, kRegisters = 32;
  static constexpr bool kLooksUp = true;

#define WEFT_X(name, suffix)                                                           \
  static __m512 name(__m512 x) { return Sleef_finz_##name##f16_##suffix##avx512f(x); } \
  static __m512d name(__m512d x) { return Sleef_finz_##name##d8_##suffix##avx512f(x); }
  WEFT_SLEEF_UNARY(WEFT_X)
#undef WEFT_X
#define WEFT_X(name, suffix)                                                                        \
  static __m512 name(__m512 a, __m512 b) { return Sleef_finz_##name##f16_##suffix##avx512f(a, b); } \
  static __m512d name(__m512d a, __m512d b) { return Sleef_finz_##name##d8_##suffix##avx512f(a, b); }
  WEFT_SLEEF_BINARY(WEFT_X)
#undef WEFT_X
#define WEFT_X(name, mode)                                                                   \
  static __m512 name(__m512 x) { return _mm512_roundscale_ps(x, mode | _MM_FROUND_NO_EXC); } \
  static __m512d name(__m512d x) { return _mm512_roundscale_pd(x, mode | _MM_FROUND_NO_EXC); }
  WEFT_X(floor, _MM_FROUND_TO_NEG_INF)
  WEFT_X(ceil, _MM_FROUND_TO_POS_INF)
  WEFT_X(trunc, _MM_FROUND_TO_ZERO)
  WEFT_X(round, _MM_FROUND_TO_NEAREST_INT)
#undef WEFT_X
  template <typename V>
  static V keep(V x) {
    asm("" : "+v"(x));
    return x;
  }
  static __m512 sqrt(__m512 x) { return _mm512_sqrt_ps(x); }
  static __m512d sqrt(__m512d x) { return _mm512_sqrt_pd(x); }
  static __m512 multiply_add(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
  static __m512d multiply_add(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }
  // Written out, since the compiler would broadcast a number that two operations use into a register.
  static constexpr bool kEmbeddedBroadcast = true;
  static __m512 multiply_add_broadcast(const float* a, __m512 b, __m512 c) {
    asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
    return c;
  }
  static __m512d multiply_add_broadcast(const double* a, __m512d b, __m512d c) {
    asm("vfmadd231pd %2%{1to8%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
    return c;
  }
  static auto to_int32(__m512 x) { return (Vector<int32_t, Isa>)_mm512_cvtps_epi32(x); }

  static __m512 look_up(const float* table, __m512 place) {
    return _mm512_permutex2var_ps(_mm512_load_ps(table), (__m512i)place, _mm512_load_ps(table + 16));
  }

  using GenericIsa::greater_of;
  using GenericIsa::lesser_of;
  static __m512 greater_of(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
  static __m512d greater_of(__m512d a, __m512d b) { return _mm512_max_pd(a, b); }
  static __m512 lesser_of(__m512 a, __m512 b) { return _mm512_min_ps(a, b); }
  static __m512d lesser_of(__m512d a, __m512d b) { return _mm512_min_pd(a, b); }
  template <typename D>
  static void widen(__m512 x, D& low, D& high) {
    low = (D)_mm512_cvtps_pd(_mm512_castps512_ps256(x));
    high = (D)_mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
  }

  template <typename V>
  static V from_bfloat16(const void* p) {
    if constexpr (sizeof(V) == 64)
      return (V)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16);
    else return (V)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16);
  }
  template <typename V>
  static void to_bfloat16(void* p, V x) {
    if constexpr (sizeof(V) == 64) {
      __m512i bits = (__m512i)x, odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
      __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
      __mmask16 nan = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q);
      rounded = _mm512_mask_mov_epi32(rounded, nan, _mm512_set1_epi32(0x7fc00000));
      _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
    } else {
      __m256i bits = (__m256i)x, odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
      __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
      __mmask8 nan = _mm256_cmp_ps_mask((__m256)x, (__m256)x, _CMP_UNORD_Q);
      rounded = _mm256_mask_mov_epi32(rounded, nan, _mm256_set1_epi32(0x7fc00000));
      _mm_storeu_si128((__m128i*)p, _mm256_cvtepi32_epi16(_mm256_srli_epi32(rounded, 16)));
    }
  }
  template <typename V>
  static V from_half(const void* p) {
    if constexpr (sizeof(V) == 64) return (V)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p));
    else return (V)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
  }
  template <typename V>
  static void to_half(void* p, V x) {
    constexpr int kMode = _MM_FROUND_TO_NEAREST_INT;
    if constexpr (sizeof(V) == 64) _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph((__m512)x, kMode));
    else _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph((__m256)x, kMode));
  }
  template <typename I, typename V>
  static I truncate(V x) {
    if constexpr (sizeof(V) == 64 && sizeof(x[0]) == 4) return (I)_mm512_cvttps_epi32((__m512)x);
    else if constexpr (sizeof(V) == 64) return (I)_mm512_cvttpd_epi32((__m512d)x);
    else return (I)_mm256_cvttps_epi32((__m256)x);
  }
  template <typename I, typename V>
  static I truncate_to_int64(V x) {
    if constexpr (sizeof(V) == 64) return (I)_mm512_cvttpd_epi64((__m512d)x);
    else return (I)_mm512_cvttps_epi64((__m256)x);
  }

  // The first `count` lanes of memory, and copies of the first one.
  template <int size>
  static void spread(char* buffer, const char* source, int count) {
    const uint64_t mask = first_lanes(count);
    __m512i lanes;
    if constexpr (size == 1) {
      lanes = _mm512_mask_loadu_epi8(_mm512_set1_epi8(*source), mask, source);
    } else if constexpr (size == 2) {
      short first;
      __builtin_memcpy(&first, source, sizeof(first));
      lanes = _mm512_mask_loadu_epi16(_mm512_set1_epi16(first), static_cast<__mmask32>(mask), source);
    } else if constexpr (size == 4) {
      __m512i part = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(mask), source);
      __m512i first = _mm512_broadcastd_epi32(_mm512_castsi512_si128(part));
      lanes = _mm512_mask_mov_epi32(first, static_cast<__mmask16>(mask), part);
    } else {
      __m512i part = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(mask), source);
      __m512i first = _mm512_broadcastq_epi64(_mm512_castsi512_si128(part));
      lanes = _mm512_mask_mov_epi64(first, static_cast<__mmask8>(mask), part);
    }
    _mm512_store_si512(buffer, lanes);
  }
  template <int size>
  static void keep(char* target, const char* buffer, int count) {
    const __m512i lanes = _mm512_load_si512(buffer);
    const uint64_t mask = first_lanes(count);
    if constexpr (size == 1) _mm512_mask_storeu_epi8(target, mask, lanes);
    else if constexpr (size == 2) _mm512_mask_storeu_epi16(target, static_cast<__mmask32>(mask), lanes);
    else if constexpr (size == 4) _mm512_mask_storeu_epi32(target, static_cast<__mmask16>(mask), lanes);
    else _mm512_mask_storeu_epi64(target, static_cast<__mmask8>(mask), lanes);
  }

  template <typename M>
  static bool any(M mask) {
    return _mm512_movepi8_mask((__m512i)mask) != 0;
  }
  // Any value but zero is true.
  template <typename M>
  static M load_mask(const uint8_t* p) {
    if constexpr (sizeof(M{}[0]) == 1) {
      __m512i bytes = _mm512_loadu_si512(p);
      return (M)_mm512_movm_epi8(_mm512_test_epi8_mask(bytes, bytes));
    } else if constexpr (sizeof(M{}[0]) == 2) {
      __m256i bytes = _mm256_loadu_si256((const __m256i*)p);
      return (M)_mm512_movm_epi16(_mm256_test_epi8_mask(bytes, bytes));
    } else if constexpr (sizeof(M{}[0]) == 4) {
      __m128i bytes = _mm_loadu_si128((const __m128i*)p);
      return (M)_mm512_movm_epi32(_mm_test_epi8_mask(bytes, bytes));
    } else {
      __m128i bytes = _mm_loadl_epi64((const __m128i*)p);
      return (M)_mm512_movm_epi64(static_cast<__mmask8>(_mm_test_epi8_mask(bytes, bytes)));
    }
  }
  template <typename M>
  static void store_mask(uint8_t* p, M mask) {
    const __m512i m = (__m512i)mask;
    if constexpr (sizeof(mask[0]) == 1) _mm512_storeu_si512(p, _mm512_and_si512(m, _mm512_set1_epi8(1)));
    else if constexpr (sizeof(mask[0]) == 2)
      _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi16_epi8(_mm512_and_si512(m, _mm512_set1_epi16(1))));
    else if constexpr (sizeof(mask[0]) == 4)
      _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8(_mm512_and_si512(m, _mm512_set1_epi32(1))));
    else _mm_storel_epi64((__m128i*)p, _mm512_cvtepi64_epi8(_mm512_and_si512(m, _mm512_set1_epi64(1))));
  }

 private:
  static uint64_t first_lanes(int count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }
};

}  // namespace weft::cpu::avx512
