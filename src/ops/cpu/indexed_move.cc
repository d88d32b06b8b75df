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

// Calls write(place in memory, element of `dense`) for every element [i, j, k]; place(i, j, element) is where
// it lies but for after[k]. Places may repeat along j only, so a thread takes some i and some k and goes
// through all j in order.
template <typename Place, typename F>
void for_each_place(std::span<const int64_t> before, int64_t picks, std::span<const int64_t> after,
                    const Place& place, const F& write) {
  int64_t width = length(after), tile = std::min(width, kColumns);
  int64_t tiles = (width + tile - 1) / tile;
  int64_t grain = std::max<int64_t>(1, kThreadElements / (tile * picks));
  parallel_for(0, length(before) * tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      int64_t i = t / tiles, first = t % tiles * tile, last = std::min(width, first + tile);
      for (int64_t j = 0; j < picks; ++j) {
        int64_t row = (i * picks + j) * width, base = before[static_cast<size_t>(i)];
        for (int64_t k = first; k < last; ++k)
          write(base + place(j, row + k) + after[static_cast<size_t>(k)], row + k);
      }
    }
  });
}
template <typename F>
void for_each_place(const IndexedPlaces& p, const F& write) {
  auto place = [&](int64_t j, int64_t) { return p.at[static_cast<size_t>(j)]; };
  for_each_place(p.before, length(p.at), p.after, place, write);
}
template <typename F>
void for_each_place(const ElementPlaces& p, const F& write) {
  auto place = [&](int64_t, int64_t element) { return p.positions[element] * p.stride; };
  for_each_place(p.before, p.picks, p.after, place, write);
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
template <Combine how, typename Places, typename T>
void combine_at(const Places& places, T* memory, const T* dense, bool is_single) {
  int64_t step = is_single ? 0 : 1;
  for_each_place(places, [&](int64_t place, int64_t element) {
    memory[place] = combined<how>(memory[place], dense[step * element]);
  });
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

void gather_elements(const ElementPlaces& places, const char* memory, char* dense, int64_t item_size) {
  if (is_empty(places)) return;
  visit_width(item_size, [&]<typename T>() {
    const T* from = reinterpret_cast<const T*>(memory);
    T* to = reinterpret_cast<T*>(dense);
    int64_t width = length(places.after);
    auto rows = [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* base = from + places.before[static_cast<size_t>(row / places.picks)];
        for (int64_t k = 0, element = row * width; k < width; ++k, ++element)
          to[element] =
              base[places.positions[element] * places.stride + places.after[static_cast<size_t>(k)]];
      }
    };
    parallel_for(0, length(places.before) * places.picks, std::max<int64_t>(1, kThreadElements / width),
                 rows);
  });
}

void scatter_elements(const ElementPlaces& places, char* memory, const char* dense, bool is_single,
                      Combine how, DType dtype) {
  if (is_empty(places)) return;
  visit_dtype(dtype, [&]<typename T>() {
    T* to = reinterpret_cast<T*>(memory);
    const T* from = reinterpret_cast<const T*>(dense);
    if (how == Combine::kReplace) combine_at<Combine::kReplace>(places, to, from, is_single);
    else if (how == Combine::kAdd) combine_at<Combine::kAdd>(places, to, from, is_single);
    else combine_at<Combine::kMultiply>(places, to, from, is_single);
  });
}

}  // namespace weft::cpu
