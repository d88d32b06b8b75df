#pragma once

#include <immintrin.h>
#include <sleef.h>

#include "ops/cpu/pack_generic.h"
#include "ops/cpu/sleef_functions.h"

// AVX2, FMA and F16C.
namespace weft::cpu::avx2 {

struct Isa : GenericIsa<Isa> {
  static constexpr int kBytes = 32, kRegisters = 16;

#define WEFT_X(name, suffix)                                                       \
  static __m256 name(__m256 x) { return Sleef_finz_##name##f8_##suffix##avx2(x); } \
  static __m256d name(__m256d x) { return Sleef_finz_##name##d4_##suffix##avx2(x); }
  WEFT_SLEEF_UNARY(WEFT_X)
#undef WEFT_X
#define WEFT_X(name, suffix)                                                                    \
  static __m256 name(__m256 a, __m256 b) { return Sleef_finz_##name##f8_##suffix##avx2(a, b); } \
  static __m256d name(__m256d a, __m256d b) { return Sleef_finz_##name##d4_##suffix##avx2(a, b); }
  WEFT_SLEEF_BINARY(WEFT_X)
#undef WEFT_X
#define WEFT_X(name, mode)                                                              \
  static __m256 name(__m256 x) { return _mm256_round_ps(x, mode | _MM_FROUND_NO_EXC); } \
  static __m256d name(__m256d x) { return _mm256_round_pd(x, mode | _MM_FROUND_NO_EXC); }
  WEFT_X(floor, _MM_FROUND_TO_NEG_INF)
  WEFT_X(ceil, _MM_FROUND_TO_POS_INF)
  WEFT_X(trunc, _MM_FROUND_TO_ZERO)
  WEFT_X(round, _MM_FROUND_TO_NEAREST_INT)
#undef WEFT_X
  template <typename V>
  static V keep(V x) {
    asm("" : "+x"(x));
    return x;
  }
  static __m256 sqrt(__m256 x) { return _mm256_sqrt_ps(x); }
  static __m256d sqrt(__m256d x) { return _mm256_sqrt_pd(x); }
  static __m256 multiply_add(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
  static __m256d multiply_add(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
  static auto to_int32(__m256 x) { return (Vector<int32_t, Isa>)_mm256_cvtps_epi32(x); }

  using GenericIsa::greater_of;
  using GenericIsa::lesser_of;
  static __m256 greater_of(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
  static __m256d greater_of(__m256d a, __m256d b) { return _mm256_max_pd(a, b); }
  static __m256 lesser_of(__m256 a, __m256 b) { return _mm256_min_ps(a, b); }
  static __m256d lesser_of(__m256d a, __m256d b) { return _mm256_min_pd(a, b); }
  template <typename D>
  static void widen(__m256 x, D& low, D& high) {
    low = (D)_mm256_cvtps_pd(_mm256_castps256_ps128(x));
    high = (D)_mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
  }

  template <typename V>
  static V from_bfloat16(const void* p) {
    if constexpr (sizeof(V) == 32)
      return (V)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16);
    else return (V)_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i*)p)), 16);
  }
  template <typename V>
  static void to_bfloat16(void* p, V x) {
    if constexpr (sizeof(V) == 32) {
      __m256i bits = (__m256i)x, odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
      __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
      __m256i nan = (__m256i)_mm256_cmp_ps((__m256)x, (__m256)x, _CMP_UNORD_Q);
      rounded = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc00000), nan);
      rounded = _mm256_srli_epi32(rounded, 16);
      _mm_storeu_si128((__m128i*)p, _mm_packus_epi32(_mm256_castsi256_si128(rounded),
                                                     _mm256_extracti128_si256(rounded, 1)));
    } else {
      __m128i bits = (__m128i)x, odd = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
      __m128i rounded = _mm_add_epi32(_mm_add_epi32(bits, _mm_set1_epi32(0x7fff)), odd);
      __m128i nan = (__m128i)_mm_cmpunord_ps((__m128)x, (__m128)x);
      rounded = _mm_srli_epi32(_mm_blendv_epi8(rounded, _mm_set1_epi32(0x7fc00000), nan), 16);
      _mm_storel_epi64((__m128i*)p, _mm_packus_epi32(rounded, rounded));
    }
  }
  // To 64-bit integers: AVX2 has no instruction for it, but nearly all numbers are small.
  template <typename I, typename V>
  static I truncate_to_int64(V x) {
    if constexpr (sizeof(V) == 16) {
      __m128 large = _mm_cmpnlt_ps(_mm_andnot_ps(_mm_set1_ps(-0.0f), (__m128)x), _mm_set1_ps(0x1p31f));
      if (_mm_movemask_ps(large) == 0) return (I)_mm256_cvtepi32_epi64(_mm_cvttps_epi32((__m128)x));
    } else {
      __m256d whole = _mm256_round_pd((__m256d)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
      __m256d magnitude = _mm256_andnot_pd(_mm256_set1_pd(-0.0), whole);
      __m256d large = _mm256_cmp_pd(magnitude, _mm256_set1_pd(0x1p51), _CMP_NLT_UQ);
      // Adding 2^52 + 2^51 puts the integer into the low bits of the mantissa.
      __m256d magic = _mm256_set1_pd(0x1.8p52);
      if (_mm256_movemask_pd(large) == 0)
        return (I)_mm256_sub_epi64((__m256i)_mm256_add_pd(whole, magic), (__m256i)magic);
    }
    I result;
    for (int i = 0; i < 4; ++i) {
      if constexpr (sizeof(V) == 16) result[i] = _mm_cvttss_si64(_mm_set_ss(x[i]));
      else result[i] = _mm_cvttsd_si64(_mm_set_sd(x[i]));
    }
    return result;
  }
  // The first `count` lanes of memory, and copies of the first one.
  template <int size>
  static void spread(char* buffer, const char* source, int count) {
    if constexpr (size == 4) {
      __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
      __m256i part = _mm256_maskload_epi32((const int*)source, mask);
      __m256i first = _mm256_broadcastd_epi32(_mm256_castsi256_si128(part));
      _mm256_store_si256((__m256i*)buffer, _mm256_blendv_epi8(first, part, mask));
    } else if constexpr (size == 8) {
      __m256i mask = _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
      __m256i part = _mm256_maskload_epi64((const long long*)source, mask);
      __m256i first = _mm256_broadcastq_epi64(_mm256_castsi256_si128(part));
      _mm256_store_si256((__m256i*)buffer, _mm256_blendv_epi8(first, part, mask));
    } else {
      GenericIsa::spread<size>(buffer, source, count);
    }
  }
  template <int size>
  static void keep(char* target, const char* buffer, int count) {
    if constexpr (size == 4) {
      __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
      _mm256_maskstore_epi32((int*)target, mask, _mm256_load_si256((const __m256i*)buffer));
    } else if constexpr (size == 8) {
      __m256i mask = _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
      _mm256_maskstore_epi64((long long*)target, mask, _mm256_load_si256((const __m256i*)buffer));
    } else {
      GenericIsa::keep<size>(target, buffer, count);
    }
  }

  template <typename I, typename V>
  static I truncate(V x) {
    if constexpr (sizeof(V) == 32 && sizeof(x[0]) == 4) return (I)_mm256_cvttps_epi32((__m256)x);
    else if constexpr (sizeof(V) == 32) return (I)_mm256_cvttpd_epi32((__m256d)x);
    else return (I)_mm_cvttps_epi32((__m128)x);
  }
  template <typename V>
  static V from_half(const void* p) {
    if constexpr (sizeof(V) == 32) return (V)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
    else return (V)_mm_cvtph_ps(_mm_loadl_epi64((const __m128i*)p));
  }
  template <typename V>
  static void to_half(void* p, V x) {
    if constexpr (sizeof(V) == 32) {
      _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
    } else {
      _mm_storel_epi64((__m128i*)p, _mm_cvtps_ph((__m128)x, _MM_FROUND_TO_NEAREST_INT));
    }
  }
  template <typename M, typename V>
  static V select(M mask, V a, V b) {
    return (V)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)mask);
  }
  template <typename M>
  static __m256 select(M mask, __m256 a, __m256 b) {
    return _mm256_blendv_ps(b, a, (__m256)mask);
  }
  template <typename M>
  static __m256d select(M mask, __m256d a, __m256d b) {
    return _mm256_blendv_pd(b, a, (__m256d)mask);
  }
  template <typename M>
  static bool any(M mask) {
    return _mm256_movemask_epi8((__m256i)mask) != 0;
  }

  template <typename M>
  static M load_mask(const uint8_t* p) {
    __m256i zero = _mm256_setzero_si256(), wide;
    if constexpr (sizeof(M{}[0]) == 1) wide = _mm256_loadu_si256((const __m256i*)p);
    else if constexpr (sizeof(M{}[0]) == 2) wide = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)p));
    else if constexpr (sizeof(M{}[0]) == 4) wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p));
    else wide = _mm256_cvtepi8_epi64(_mm_loadu_si32(p));
    // Any value but zero is true.
    __m256i is_zero;
    if constexpr (sizeof(M{}[0]) == 8) is_zero = _mm256_cmpeq_epi64(wide, zero);
    else is_zero = (__m256i)((M)wide == M{});
    return (M)_mm256_xor_si256(is_zero, _mm256_set1_epi8(-1));
  }
  template <typename M>
  static void store_mask(uint8_t* p, M mask) {
    __m256i m = (__m256i)mask;
    if constexpr (sizeof(mask[0]) == 1) {
      _mm256_storeu_si256((__m256i*)p, _mm256_and_si256(m, _mm256_set1_epi8(1)));
      return;
    }
    // Narrowing with saturation keeps 0 and -1.
    __m128i low = _mm256_castsi256_si128(m), high = _mm256_extracti128_si256(m, 1), ones = _mm_set1_epi8(1);
    if constexpr (sizeof(mask[0]) == 2) {
      _mm_storeu_si128((__m128i*)p, _mm_and_si128(_mm_packs_epi16(low, high), ones));
    } else {
      __m128i words = _mm_packs_epi32(low, high);  // for 8 bytes each word is there twice
      __m128i narrow = _mm_and_si128(_mm_packs_epi16(words, words), ones);
      if constexpr (sizeof(mask[0]) == 4) _mm_storel_epi64((__m128i*)p, narrow);
      else _mm_storeu_si32(p, _mm_packus_epi16(_mm_and_si128(narrow, _mm_set1_epi16(1)), narrow));
    }
  }
};

}  // namespace weft::cpu::avx2
