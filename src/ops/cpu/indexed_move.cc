#include "ops/cpu/indexed_move.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "ops/cpu/thread_elements.h"
#include "weft/base/parallel.h"

namespace weft::cpu {
namespace {

constexpr int64_t kOwnColumns = 256;  // elements of `after` that a thread takes for itself when it writes

// Offsets 0, 1, 2, ...: blocks can be copied whole.
bool is_dense(std::span<const int64_t> offsets) {
  for (size_t k = 0; k < offsets.size(); ++k)
    if (offsets[k] != static_cast<int64_t>(k)) return false;
  return true;
}
int64_t length(std::span<const int64_t> offsets) { return static_cast<int64_t>(offsets.size()); }

// Cuts the rows [begin, end) of an array [before, picks] where `before` changes: f(i, j, last j, row).
template <typename F>
void for_each_run(int64_t begin, int64_t end, int64_t picks, const F& f) {
  int64_t i = begin / picks, j = begin % picks;
  for (int64_t row = begin; row < end; ++i, j = 0) {
    int64_t last = std::min(picks, j + end - row);
    f(i, j, last, row);
    row += last - j;
  }
}

template <typename T>
void gather_as(const IndexedPlaces& p, const T* memory, T* dense) {
  int64_t picks = length(p.at), width = length(p.after);
  bool whole = is_dense(p.after);
  auto run = [&](int64_t i, int64_t j, int64_t last, int64_t row) {
    const T* from = memory + p.before[static_cast<size_t>(i)];
    const int64_t* at = p.at.data();
    T* to = dense + row * width;
    if (width == 1) {
      for (; j < last; ++j) *to++ = from[at[j] + p.after[0]];
    } else if (whole) {
      for (; j < last; ++j, to += width)
        std::memcpy(to, from + at[j], static_cast<size_t>(width) * sizeof(T));
    } else {
      for (; j < last; ++j, to += width)
        for (int64_t k = 0; k < width; ++k) to[k] = from[at[j] + p.after[static_cast<size_t>(k)]];
    }
  };
  parallel_for(0, length(p.before) * picks, std::max<int64_t>(1, kThreadPlaces / width),
               [&](int64_t begin, int64_t end) { for_each_run(begin, end, picks, run); });
}
// Whether n positions are in [0, size): then neither they nor their distances to the last place have a sign.
bool are_below(const int64_t* positions, int64_t n, int64_t size) {
  typedef uint64_t V __attribute__((vector_size(16)));
  const auto last = static_cast<uint64_t>(size) - 1;
  V wrong[2] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 2; ++k) {
      V x;
      std::memcpy(&x, positions + i + 2 * k, sizeof(x));
      wrong[k] |= x | (last - x);
    }
  wrong[0] |= wrong[1];
  uint64_t signs = wrong[0][0] | wrong[0][1];
  for (; i < n; ++i) {
    const auto x = static_cast<uint64_t>(positions[i]);
    signs |= x | (last - x);
  }
  return signs >> 63 == 0;
}

// The same for columns [first, last) of rows of `width`.
bool are_below(const int64_t* positions, int64_t rows, int64_t width, int64_t first, int64_t last,
               int64_t size) {
  if (last - first == width) return are_below(positions, rows * width, size);
  for (int64_t r = 0; r < rows; ++r)
    if (!are_below(positions + r * width + first, last - first, size)) return false;
  return true;
}

// One element in each place: the offset behind it is the same for all.
template <typename T>
void gather_run(const T* from, const int64_t* at, int64_t stride, int64_t n, T* to) {
  if (stride == 1)
    for (int64_t j = 0; j < n; ++j) to[j] = from[at[j]];
  else
    for (int64_t j = 0; j < n; ++j) to[j] = from[at[j] * stride];
}
template <typename T>
bool gather_as(const ElementPlaces& p, const T* memory, T* dense) {
  const int64_t width = length(p.after), stride = p.stride, first = p.after[0];
  std::atomic<bool> inside = true;
  auto run = [&](int64_t i, int64_t j, int64_t last, int64_t row) {
    const T* from = memory + p.before[static_cast<size_t>(i)];
    const int64_t* at = p.positions + row * width;
    T* to = dense + row * width;
    if (width == 1) return gather_run(from + first, at, stride, last - j, to);
    for (; j < last; ++j)
      for (int64_t offset : p.after) *to++ = from[*at++ * stride + offset];
  };
  parallel_for(0, length(p.before) * p.picks, std::max<int64_t>(1, kThreadPlaces / width),
               [&](int64_t begin, int64_t end) {
                 // The positions of a block are read again from the cache.
                 if (are_below(p.positions + begin * width, (end - begin) * width, p.size))
                   for_each_run(begin, end, p.picks, run);
                 else inside = false;
               });
  return inside;
}

// Places may repeat along j only. So a thread that writes takes some i and some k, and goes through all j in
// order: f(i, first k, last k).
template <typename F>
void for_each_column(std::span<const int64_t> before, int64_t picks, std::span<const int64_t> after,
                     const F& f) {
  int64_t width = length(after), tile = std::min(width, kOwnColumns), tiles = (width + tile - 1) / tile;
  parallel_for(0, length(before) * tiles, std::max<int64_t>(1, kThreadPlaces / (tile * picks)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   int64_t first = t % tiles * tile;
                   f(t / tiles, first, std::min(width, first + tile));
                 }
               });
}

template <Combine how, typename T>
T combined(T a, T b) {
  constexpr bool add = how == Combine::kAdd;
  if constexpr (how == Combine::kReplace) return b;
  else if constexpr (std::same_as<T, bool>) return add ? a || b : a && b;
  else if constexpr (std::same_as<T, Half> || std::same_as<T, BFloat16>)
    return T(add ? float(a) + float(b) : float(a) * float(b));
  else return static_cast<T>(add ? a + b : a * b);
}
template <Combine how, typename T>
void combine_at(const IndexedPlaces& p, T* memory, const T* dense, bool is_single) {
  int64_t picks = length(p.at), width = length(p.after);
  bool whole = is_dense(p.after);
  for_each_column(p.before, picks, p.after, [&](int64_t i, int64_t first, int64_t last) {
    for (int64_t j = 0; j < picks; ++j) {
      T* to = memory + p.before[static_cast<size_t>(i)] + p.at[static_cast<size_t>(j)];
      const T* from = dense + (is_single ? 0 : (i * picks + j) * width);
      const int64_t* after = p.after.data();
      if (is_single)
        for (int64_t k = first; k < last; ++k) to[after[k]] = combined<how>(to[after[k]], *from);
      else if (whole)
        for (int64_t k = first; k < last; ++k) to[k] = combined<how>(to[k], from[k]);
      else
        for (int64_t k = first; k < last; ++k) to[after[k]] = combined<how>(to[after[k]], from[k]);
    }
  });
}
template <Combine how, typename T>
void combine_run(T* base, const int64_t* at, int64_t stride, int64_t n, const T* from, int64_t step) {
  if (stride == 1 && step == 1) {
    for (int64_t j = 0; j < n; ++j) base[at[j]] = combined<how>(base[at[j]], from[j]);
    return;
  }
  for (int64_t j = 0; j < n; ++j) {
    T& to = base[at[j] * stride];
    to = combined<how>(to, from[step * j]);
  }
}
template <Combine how, typename T>
bool combine_at(const ElementPlaces& p, T* memory, const T* dense, bool is_single, bool is_checked) {
  int64_t picks = p.picks, width = length(p.after), stride = p.stride, step = is_single ? 0 : 1;
  std::atomic<bool> inside = true;
  for_each_column(p.before, picks, p.after, [&](int64_t i, int64_t first, int64_t last) {
    T* base = memory + p.before[static_cast<size_t>(i)];
    const int64_t *at = p.positions + i * picks * width, *after = p.after.data();
    if (!is_checked && !are_below(at, picks, width, first, last, p.size)) {
      inside = false;
      return;
    }
    const T* from = dense + step * i * picks * width;
    if (width == 1) return combine_run<how>(base + after[0], at, stride, picks, from, step);
    for (int64_t j = 0; j < picks; ++j, at += width, from += step * width)
      for (int64_t k = first; k < last; ++k) {
        T& to = base[at[k] * stride + after[k]];
        to = combined<how>(to, from[step * k]);
      }
  });
  return inside;
}

struct Bytes16 {
  int64_t parts[2];
};

// Calls f with the unsigned type that has as many bytes.
template <typename F>
void visit_width(int64_t item_size, F f) {
  switch (item_size) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<Bytes16>();
  }
}

bool is_empty(const IndexedPlaces& p) { return p.before.empty() || p.at.empty() || p.after.empty(); }
bool is_empty(const ElementPlaces& p) { return p.before.empty() || p.picks == 0 || p.after.empty(); }

}  // namespace

void gather_indexed(const IndexedPlaces& places, const char* memory, char* dense, int64_t item_size) {
  if (is_empty(places)) return;
  visit_width(item_size, [&]<typename T>() {
    gather_as(places, reinterpret_cast<const T*>(memory), reinterpret_cast<T*>(dense));
  });
}

void scatter_indexed(const IndexedPlaces& places, char* memory, const char* dense, bool is_single,
                     int64_t item_size) {
  if (is_empty(places)) return;
  visit_width(item_size, [&]<typename T>() {
    combine_at<Combine::kReplace>(places, reinterpret_cast<T*>(memory), reinterpret_cast<const T*>(dense),
                                  is_single);
  });
}

void accumulate_indexed(const IndexedPlaces& places, char* memory, const char* dense, bool is_single,
                        DType dtype) {
  if (is_empty(places)) return;
  visit_dtype(dtype, [&]<typename T>() {
    combine_at<Combine::kAdd>(places, reinterpret_cast<T*>(memory), reinterpret_cast<const T*>(dense),
                              is_single);
  });
}

bool are_inside(const ElementPlaces& places) {
  std::atomic<bool> inside = true;
  parallel_for(0, places.count(), 2 * kThreadPlaces, [&](int64_t begin, int64_t end) {
    if (!are_below(places.positions + begin, end - begin, places.size)) inside = false;
  });
  return inside;
}

bool gather_elements(const ElementPlaces& places, const char* memory, char* dense, int64_t item_size) {
  if (is_empty(places)) return true;
  bool inside = true;
  visit_width(item_size, [&]<typename T>() {
    inside = gather_as(places, reinterpret_cast<const T*>(memory), reinterpret_cast<T*>(dense));
  });
  return inside;
}

bool scatter_elements(const ElementPlaces& places, char* memory, const char* dense, bool is_single,
                      Combine how, DType dtype, bool is_checked) {
  if (is_empty(places)) return true;
  return visit_dtype(dtype, [&]<typename T>() {
    T* to = reinterpret_cast<T*>(memory);
    const T* from = reinterpret_cast<const T*>(dense);
    if (how == Combine::kReplace)
      return combine_at<Combine::kReplace>(places, to, from, is_single, is_checked);
    if (how == Combine::kAdd) return combine_at<Combine::kAdd>(places, to, from, is_single, is_checked);
    return combine_at<Combine::kMultiply>(places, to, from, is_single, is_checked);
  });
}

}  // namespace weft::cpu
