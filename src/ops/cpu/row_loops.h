#pragma once

#include "ops/cpu/pack_generic.h"

// Helpers for kernels over contiguous rows (softmax, layer norm). Every template has an Isa among its
// arguments.
namespace weft::cpu {

template <typename T, typename Isa>
struct Row {
  using P = Pack<T, Isa>;
  static constexpr int kLanes = P::kLanes;

  static P load_tail(const T* p, int count, T padding) {
    alignas(64) T buffer[kLanes];
    for (int i = 0; i < kLanes; ++i) buffer[i] = i < count ? p[i] : padding;
    return P::load(buffer);
  }
  static void store_tail(T* p, P x, int count) {
    alignas(64) T buffer[kLanes];
    x.store(buffer);
    for (int i = 0; i < kLanes; ++i)
      if (i < count) p[i] = buffer[i];
  }

  // f(i, load, store) for each pack: load(array, padding), store(array, pack) at position i.
  template <typename F>
  [[gnu::always_inline]] static void for_each(int64_t n, F f) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      f([&](const T* p, T) { return P::load(p + i); }, [&](T* p, P x) { x.store(p + i); });
    if (i == n) return;
    int count = static_cast<int>(n - i);
    f([&](const T* p, T padding) { return load_tail(p + i, count, padding); },
      [&](T* p, P x) { store_tail(p + i, x, count); });
  }

  // The sum of f over a row, in packs whose totals are taken over in double: long rows keep their digits.
  template <typename F>
  [[gnu::always_inline]] static double sum(int64_t n, F f) {
    constexpr int64_t kBlock = 64 * kLanes;
    double total = 0;
    for (int64_t start = 0; start < n; start += kBlock) {
      int64_t size = n - start < kBlock ? n - start : kBlock;
      P even(0), odd(0);
      int64_t i = 0;
      for (; i + 2 * kLanes <= size; i += 2 * kLanes) {
        even = even + f(start + i, [&](const T* p, T) { return P::load(p + start + i); }, kLanes);
        odd = odd +
              f(start + i + kLanes, [&](const T* p, T) { return P::load(p + start + i + kLanes); }, kLanes);
      }
      for (; i < size; i += kLanes) {
        int count = size - i < kLanes ? static_cast<int>(size - i) : kLanes;
        even = even + f(
                          start + i,
                          [&](const T* p, T padding) { return load_tail(p + start + i, count, padding); },
                          count);
      }
      total += lanes_total(even + odd);
    }
    return total;
  }
  static double lanes_total(P x) {
    return combined<kLanes / 2>(x, [](P a, P b) { return a + b; });
  }
  static T lanes_maximum(P x) {
    return combined<kLanes / 2>(x, [](P a, P b) { return maximum(a, b); });
  }
  // All lanes, halves first.
  template <int half, typename F>
  [[gnu::always_inline]] static T combined(P x, F f) {
    if constexpr (half == 0) return x.v[0];
    else return combined<half / 2>(f(x, rotate_lanes<half>(x)), f);
  }
};

}  // namespace weft::cpu
