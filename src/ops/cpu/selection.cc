#include "ops/cpu/selection.h"

#include <algorithm>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/parallel.h"

namespace weft::cpu {
namespace {

constexpr int64_t kThreadElements = 16384;

template <typename T>
auto comparable(T value) {
  if constexpr (std::same_as<T, Half> || std::same_as<T, BFloat16>) return static_cast<float>(value);
  else return value;
}

template <typename K>
struct Candidate {
  K key;
  int64_t position;
};

template <typename K>
bool is_larger(K a, K b) {
  return (a != a && b == b) || a > b;
}

template <typename K, bool largest>
struct Better {
  bool operator()(const Candidate<K>& a, const Candidate<K>& b) const {
    if (largest ? is_larger(a.key, b.key) : is_larger(b.key, a.key)) return true;
    if (largest ? is_larger(b.key, a.key) : is_larger(a.key, b.key)) return false;
    return a.position < b.position;
  }
};

template <bool largest, typename T>
void topk_lanes(const TopkShape& shape, const T* in, T* values, int64_t* positions) {
  using K = decltype(comparable(T()));
  auto run = [&](int64_t begin, int64_t end) {
    std::vector<Candidate<K>> candidates(static_cast<size_t>(shape.n));
    for (int64_t lane = begin; lane < end; ++lane) {
      const T* from = in + lane / shape.inner * shape.n * shape.inner + lane % shape.inner;
      for (int64_t i = 0; i < shape.n; ++i)
        candidates[static_cast<size_t>(i)] = {comparable(from[i * shape.inner]), i};
      auto first = candidates.begin(), middle = first + shape.k;
      Better<K, largest> better;
      // A few out of many: a heap of the best. Many: part them from the rest, then sort.
      if (shape.k * 8 < shape.n) {
        std::partial_sort(first, middle, candidates.end(), better);
      } else {
        if (shape.k < shape.n) std::nth_element(first, middle, candidates.end(), better);
        std::sort(first, middle, better);
      }
      int64_t to = lane / shape.inner * shape.k * shape.inner + lane % shape.inner;
      for (int64_t i = 0; i < shape.k; ++i, to += shape.inner) {
        positions[to] = candidates[static_cast<size_t>(i)].position;
        values[to] = from[positions[to] * shape.inner];
      }
    }
  };
  parallel_for(0, shape.outer * shape.inner, std::max<int64_t>(1, kThreadElements / shape.n), run);
}

}  // namespace

void topk(TopkShape shape, bool largest, const char* in, DType dtype, char* values, int64_t* positions) {
  if (shape.outer * shape.inner * shape.k == 0) return;
  visit_dtype(dtype, [&]<typename T>() {
    if constexpr (requires(T t) { t.re; }) {
      unsupported("topk is not implemented for {}", dtype_name(dtype));
    } else {
      const T* from = reinterpret_cast<const T*>(in);
      T* to = reinterpret_cast<T*>(values);
      if (largest) topk_lanes<true>(shape, from, to, positions);
      else topk_lanes<false>(shape, from, to, positions);
    }
  });
}

}  // namespace weft::cpu
