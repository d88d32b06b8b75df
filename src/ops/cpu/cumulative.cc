#include "ops/cpu/cumulative.h"

#include <algorithm>

#include "ops/cpu/thread_elements.h"
#include "weft/base/error.h"
#include "weft/base/parallel.h"

namespace weft::cpu {
namespace {

constexpr int64_t kColumns = 256;
constexpr int kLanes = 4;  // rows at a time: one alone would wait for each addition

template <typename T, typename A>
void cumsum_row(int64_t n, const T* in, T* out) {
  A sum = 0;
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(sum = sum + static_cast<A>(in[i]));
}

template <typename T, typename A>
void cumsum_rows(int64_t n, const T* in, T* out) {
  A sum[kLanes] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int k = 0; k < kLanes; ++k)
      out[k * n + i] = static_cast<T>(sum[k] = sum[k] + static_cast<A>(in[k * n + i]));
}

template <typename T, typename A>
void cumsum_columns(int64_t n, int64_t width, int64_t stride, const T* in, T* out) {
  A sum[kColumns] = {};
  for (int64_t r = 0; r < n; ++r, in += stride, out += stride)
    for (int64_t c = 0; c < width; ++c) out[c] = static_cast<T>(sum[c] = sum[c] + static_cast<A>(in[c]));
}

// A: what sums are kept in (unsigned for integers, which wrap).
template <typename T, typename A>
void run(int64_t outer, int64_t n, int64_t inner, const T* in, T* out) {
  if (inner == 1) {
    int64_t grain = std::max<int64_t>(kLanes, kThreadElements / n / kLanes * kLanes);
    parallel_for(0, outer, grain, [&](int64_t begin, int64_t end) {
      int64_t r = begin;
      for (; r + kLanes <= end; r += kLanes) cumsum_rows<T, A>(n, in + r * n, out + r * n);
      for (; r < end; ++r) cumsum_row<T, A>(n, in + r * n, out + r * n);
    });
    return;
  }
  int64_t width = std::min(inner, kColumns), tiles = (inner + width - 1) / width;
  parallel_for(0, outer * tiles, std::max<int64_t>(1, kThreadElements / (n * width)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   int64_t column = t % tiles * width, offset = t / tiles * n * inner + column;
                   cumsum_columns<T, A>(n, std::min(width, inner - column), inner, in + offset, out + offset);
                 }
               });
}

// Whether a later `x` takes the place of `best`.
template <bool largest, typename T>
bool replaces(T x, T best) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return replaces<largest>(static_cast<float>(x), static_cast<float>(best));
  } else {
    bool reaches = largest ? x >= best : x <= best;
    if constexpr (std::is_floating_point_v<T>) return x != x || (best == best && reaches);
    else return reaches;
  }
}

// Rows of `width` elements, `stride` apart: each is compared with the one before.
template <bool largest, typename T>
void extremum_columns(int64_t n, int64_t width, int64_t stride, const T* in, T* values, int64_t* places) {
  for (int64_t c = 0; c < width; ++c) {
    values[c] = in[c];
    places[c] = 0;
  }
  for (int64_t r = 1; r < n; ++r) {
    const T *x = in + r * stride, *best = values + (r - 1) * stride;
    const int64_t* at = places + (r - 1) * stride;
    for (int64_t c = 0; c < width; ++c) {
      bool later = replaces<largest>(x[c], best[c]);
      values[r * stride + c] = later ? x[c] : best[c];
      places[r * stride + c] = later ? r : at[c];
    }
  }
}

template <bool largest, typename T>
void run_extremum(int64_t outer, int64_t n, int64_t inner, const T* in, T* values, int64_t* places) {
  int64_t width = std::min(inner, kColumns), tiles = (inner + width - 1) / width;
  parallel_for(0, outer * tiles, std::max<int64_t>(1, kThreadElements / (n * width)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   int64_t column = t % tiles * width, at = t / tiles * n * inner + column;
                   extremum_columns<largest>(n, std::min(width, inner - column), inner, in + at, values + at,
                                             places + at);
                 }
               });
}

template <typename T, typename A>
void run_bytes(int64_t outer, int64_t n, int64_t inner, const char* in, char* out) {
  run<T, A>(outer, n, inner, reinterpret_cast<const T*>(in), reinterpret_cast<T*>(out));
}

}  // namespace

void cumsum(int64_t outer, int64_t n, int64_t inner, const char* in, char* out, DType type) {
  if (outer == 0 || n == 0 || inner == 0) return;
  switch (type) {
    case DType::kFloat16:
      return run_bytes<Half, double>(outer, n, inner, in, out);
    case DType::kBFloat16:
      return run_bytes<BFloat16, double>(outer, n, inner, in, out);
    case DType::kFloat32:
      return run_bytes<float, double>(outer, n, inner, in, out);
    case DType::kFloat64:
      return run_bytes<double, double>(outer, n, inner, in, out);
    case DType::kInt64:
      return run_bytes<uint64_t, uint64_t>(outer, n, inner, in, out);
    // Parts add separately: two interleaved real arrays.
    case DType::kComplex64:
      return run_bytes<float, double>(outer, n, 2 * inner, in, out);
    case DType::kComplex128:
      return run_bytes<double, double>(outer, n, 2 * inner, in, out);
    default:
      unsupported("cumsum is not implemented for {}", dtype_name(type));
  }
}

void cumulative_extremum(bool largest, int64_t outer, int64_t n, int64_t inner, const char* in, char* values,
                         int64_t* places, DType type) {
  if (outer == 0 || n == 0 || inner == 0) return;
  visit_dtype(type, [&]<typename T>() {
    if constexpr (requires(T t) { t.re; }) {
      unsupported("cumulative extremes are not implemented for {}", dtype_name(type));
    } else {
      auto run = largest ? &run_extremum<true, T> : &run_extremum<false, T>;
      run(outer, n, inner, reinterpret_cast<const T*>(in), reinterpret_cast<T*>(values), places);
    }
  });
}

}  // namespace weft::cpu
