#pragma once

#include <utility>

#include "ops/cpu/pack.h"
#include "weft/base/numbers.h"

namespace weft::cpu {

// What every instruction set can do with the vector extension alone; an Isa derives from it (through its own
// type, so that symbols differ) and overrides what it does better.
template <typename Isa>
struct GenericIsa {
  static constexpr bool kLooksUp = false;
  template <typename M, typename V>
  static V select(M mask, V a, V b) {
    return mask ? a : b;
  }
  template <typename V>
  static V multiply_add(V a, V b, V c) {
    return a * b + c;
  }
  static constexpr bool kEmbeddedBroadcast = false;  // whether multiply_add_broadcast is one instruction
  // The same vector, in a register: the compiler may load one that few operations use again for each of them.
  template <typename V>
  static V keep(V x) {
    return x;
  }
  // a > b ? a : b and a < b ? a : b, as the x86 instructions: b for a NaN.
  template <typename V>
  static V greater_of(V a, V b) {
    return a > b ? a : b;
  }
  template <typename V>
  static V lesser_of(V a, V b) {
    return a < b ? a : b;
  }
  template <typename F, typename D>
  static void widen(F x, D& low, D& high) {
    constexpr int kHalf = sizeof(D) / sizeof(double);
    for (int i = 0; i < kHalf; ++i) {
      low[i] = x[i];
      high[i] = x[kHalf + i];
    }
  }
  template <typename M>
  static bool any(M mask) {
    constexpr int kLanes = sizeof(M) / sizeof(mask[0]);
    bool found = false;
    for (int i = 0; i < kLanes; ++i) found |= mask[i] != 0;
    return found;
  }
  template <typename M>
  static M load_mask(const uint8_t* p) {
    constexpr int kLanes = sizeof(M) / sizeof(M{}[0]);
    M mask;
    for (int i = 0; i < kLanes; ++i) mask[i] = p[i] ? -1 : 0;
    return mask;
  }
  template <typename M>
  static void store_mask(uint8_t* p, M mask) {
    constexpr int kLanes = sizeof(M) / sizeof(mask[0]);
    for (int i = 0; i < kLanes; ++i) p[i] = mask[i] & 1;
  }
  template <typename V>
  static V from_bfloat16(const void* p) {
    V result;
    for (size_t i = 0; i < sizeof(V) / sizeof(float); ++i) {
      uint32_t bits = 0;
      __builtin_memcpy(reinterpret_cast<char*>(&bits) + 2, static_cast<const char*>(p) + 2 * i, 2);
      __builtin_memcpy(reinterpret_cast<char*>(&result) + 4 * i, &bits, 4);
    }
    return result;
  }
  template <typename V>
  static void to_bfloat16(void* p, V x) {
    for (size_t i = 0; i < sizeof(V) / sizeof(float); ++i) {
      uint16_t bits = BFloat16::from_float(x[i]);
      __builtin_memcpy(static_cast<char*>(p) + 2 * i, &bits, 2);
    }
  }
  // What the processor does with NaN and numbers out of range; C++ leaves it undefined.
  template <typename I, typename V>
  static I truncate_to_int64(V x) {
    I result;
    for (size_t i = 0; i < sizeof(V) / sizeof(x[0]); ++i) {
      bool fits = x[i] >= -0x1p63 && x[i] < 0x1p63;
      result[i] = fits ? static_cast<int64_t>(x[i]) : INT64_MIN;
    }
    return result;
  }
  // Lanes of a tail: `spread` brings `count` elements into a buffer whose other lanes repeat the first one,
  // `keep` brings `count` elements back.
  template <int size>
  static void spread(char* buffer, const char* source, int count) {
    for (int i = 0; i < Isa::kBytes / size || i == 0; ++i)
      __builtin_memcpy(buffer + i * size, source + (i < count ? i : 0) * size, size);
  }
  template <int size>
  static void keep(char* target, const char* buffer, int count) {
    for (int i = 0; i < count; ++i) __builtin_memcpy(target + i * size, buffer + i * size, size);
  }

  // As the x86 instruction: out of range is the smallest integer.
  template <typename I, typename V>
  static I truncate(V x) {
    I result;
    for (size_t i = 0; i < sizeof(V) / sizeof(x[0]); ++i)
      result[i] = x[i] >= -0x1p31 && x[i] < 0x1p31 ? static_cast<int32_t>(x[i]) : INT32_MIN;
    return result;
  }
  template <typename V>
  static V from_half(const void* p) {
    V result;
    for (size_t i = 0; i < sizeof(V) / sizeof(float); ++i) {
      uint16_t bits;
      __builtin_memcpy(&bits, static_cast<const char*>(p) + 2 * i, 2);
      result[i] = Half::to_float(bits);
    }
    return result;
  }
  template <typename V>
  static void to_half(void* p, V x) {
    for (size_t i = 0; i < sizeof(V) / sizeof(float); ++i) {
      uint16_t bits = Half::from_float(x[i]);
      __builtin_memcpy(static_cast<char*>(p) + 2 * i, &bits, 2);
    }
  }
  template <typename V>
  static auto to_int32(V x) {
    return __builtin_convertvector(x, Vector<int32_t, Isa>);
  }
};

namespace detail {
template <int shift, typename P, int... lane>
P rotate(P x, std::integer_sequence<int, lane...>) {
  return P(__builtin_shufflevector(x.v, x.v, ((lane + shift) % P::kLanes)...));
}
}  // namespace detail

// Lane i of the result is lane i + shift.
template <int shift, typename T, typename Isa>
Pack<T, Isa> rotate_lanes(Pack<T, Isa> x) {
  return detail::rotate<shift>(x, std::make_integer_sequence<int, Pack<T, Isa>::kLanes>());
}
template <int shift, typename R>
scalar::ComplexPair<R> rotate_lanes(scalar::ComplexPair<R> x) {
  return {rotate_lanes<shift>(x.re), rotate_lanes<shift>(x.im)};
}

namespace detail {
// Every second number of a and b, from the first or the second on.
template <int from, typename P, int... lane>
P every_second(P a, P b, std::integer_sequence<int, lane...>) {
  return P(__builtin_shufflevector(a.v, b.v, (2 * lane + from)...));
}
// Numbers of a and b by turns, from lane `from` on.
template <int from, typename P, int... lane>
P by_turns(P a, P b, std::integer_sequence<int, lane...>) {
  return P(__builtin_shufflevector(a.v, b.v, (from + lane / 2 + lane % 2 * P::kLanes)...));
}
}  // namespace detail

// Splits 2N interleaved numbers into N first and N second parts, and back.
template <typename P>
void load_pairs(const void* p, P& first, P& second) {
  constexpr auto kLanes = std::make_integer_sequence<int, P::kLanes>();
  const P a = P::load(p), b = P::load(static_cast<const char*>(p) + sizeof(P));
  first = detail::every_second<0>(a, b, kLanes);
  second = detail::every_second<1>(a, b, kLanes);
}
// The lanes of two packs by turns: first[0], second[0], first[1] and so on, low half and high half.
template <typename P>
void merge_lanes(P first, P second, P& low, P& high) {
  if constexpr (P::kLanes == 1) {
    low = first;
    high = second;
  } else {
    constexpr auto kLanes = std::make_integer_sequence<int, P::kLanes>();
    low = detail::by_turns<0>(first, second, kLanes);
    high = detail::by_turns<P::kLanes / 2>(first, second, kLanes);
  }
}
template <typename P>
void store_pairs(void* p, P first, P second) {
  P a, b;
  merge_lanes(first, second, a, b);
  a.store(p);
  b.store(static_cast<char*>(p) + sizeof(P));
}

}  // namespace weft::cpu
