#include "ops/cpu/indexed_move.h"

#include <algorithm>
#include <cstring>

#include "weft/base/parallel.h"

namespace weft::cpu {
namespace {

constexpr int64_t kThreadElements = 16384;
constexpr int64_t kColumns = 256;  // elements of `after` that a thread takes for itself when it writes

// Offsets 0, 1, 2, ...: blocks can be copied whole.
bool is_dense(std::span<const int64_t> offsets) {
  for (size_t k = 0; k < offsets.size(); ++k)
    if (offsets[k] != static_cast<int64_t>(k)) return false;
  return true;
}
int64_t length(std::span<const int64_t> offsets) { return static_cast<int64_t>(offsets.size()); }

template <typename T>
void gather_as(const IndexedPlaces& p, const T* memory, T* dense) {
  int64_t picks = length(p.at), width = length(p.after);
  bool whole = is_dense(p.after);
  parallel_for(0, length(p.before) * picks, std::max<int64_t>(1, kThreadElements / width),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   const T* from = memory + p.before[static_cast<size_t>(row / picks)] +
                                   p.at[static_cast<size_t>(row % picks)];
                   T* to = dense + row * width;
                   if (whole) std::memcpy(to, from, static_cast<size_t>(width) * sizeof(T));
                   else
                     for (int64_t k = 0; k < width; ++k) to[k] = from[p.after[static_cast<size_t>(k)]];
                 }
               });
}

// Calls write(place in memory, element of `dense`) for every element. Places may repeat along j only, so a
// thread takes some i and some k and goes through all j in order.
template <typename F>
void for_each_place(const IndexedPlaces& p, const F& write) {
  int64_t picks = length(p.at), width = length(p.after), tile = std::min(width, kColumns);
  int64_t tiles = (width + tile - 1) / tile;
  int64_t grain = std::max<int64_t>(1, kThreadElements / (tile * picks));
  parallel_for(0, length(p.before) * tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      int64_t i = t / tiles, first = t % tiles * tile, last = std::min(width, first + tile);
      for (int64_t j = 0; j < picks; ++j) {
        int64_t base = p.before[static_cast<size_t>(i)] + p.at[static_cast<size_t>(j)];
        int64_t row = (i * picks + j) * width;
        for (int64_t k = first; k < last; ++k) write(base + p.after[static_cast<size_t>(k)], row + k);
      }
    }
  });
}

template <typename T>
void scatter_as(const IndexedPlaces& p, T* memory, const T* dense, bool is_single) {
  int64_t step = is_single ? 0 : 1;
  for_each_place(p, [&](int64_t place, int64_t element) { memory[place] = dense[step * element]; });
}

template <typename T>
T added(T a, T b) {
  if constexpr (std::same_as<T, bool>) return a || b;
  else if constexpr (std::same_as<T, Half> || std::same_as<T, BFloat16>) return T(float(a) + float(b));
  else return static_cast<T>(a + b);
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
    scatter_as(places, reinterpret_cast<T*>(memory), reinterpret_cast<const T*>(dense), is_single);
  });
}

void accumulate_indexed(const IndexedPlaces& places, char* memory, const char* dense, bool is_single,
                        DType dtype) {
  if (is_empty(places)) return;
  int64_t step = is_single ? 0 : 1;
  visit_dtype(dtype, [&]<typename T>() {
    T* to = reinterpret_cast<T*>(memory);
    const T* from = reinterpret_cast<const T*>(dense);
    for_each_place(
        places, [&](int64_t place, int64_t element) { to[place] = added(to[place], from[step * element]); });
  });
}

}  // namespace weft::cpu
