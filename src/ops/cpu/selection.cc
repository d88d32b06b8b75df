#include "ops/cpu/selection.h"

#include <algorithm>
#include <vector>

#include "ops/cpu/thread_elements.h"
#include "weft/base/error.h"
#include "weft/base/parallel.h"

namespace weft::cpu {
namespace {

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
  // One comparison that most elements fail; a NaN on either side passes it.
  bool is_surely_worse(K a, K b) const { return largest ? a <= b : a >= b; }
  bool operator()(const Candidate<K>& a, const Candidate<K>& b) const {
    if (largest ? is_larger(a.key, b.key) : is_larger(b.key, a.key)) return true;
    if (largest ? is_larger(b.key, a.key) : is_larger(a.key, b.key)) return false;
    return a.position < b.position;
  }
};

// One lane: element i is from[i * stride].
template <typename T>
struct Lane {
  const T* from;
  int64_t n, stride;
  auto candidate(int64_t i) const {
    return Candidate<decltype(comparable(T()))>{comparable(from[i * stride]), i};
  }
};

// Leaves the k best at the front of `best`, in order.
template <typename T, typename K, typename Better>
void select_best(const Lane<T>& lane, int64_t k, std::vector<Candidate<K>>& best, const Better& better) {
  if (k * 8 < lane.n) {
    // A few out of many: a heap of the best so far, the worst of them on top. Most elements only look at
    // that.
    best.resize(static_cast<size_t>(k));
    for (int64_t i = 0; i < k; ++i) best[static_cast<size_t>(i)] = lane.candidate(i);
    std::make_heap(best.begin(), best.end(), better);
    for (int64_t i = k; i < lane.n; ++i) {
      Candidate<K> next = lane.candidate(i);
      if (better.is_surely_worse(next.key, best.front().key) || !better(next, best.front())) continue;
      std::pop_heap(best.begin(), best.end(), better);
      best.back() = next;
      std::push_heap(best.begin(), best.end(), better);
    }
    std::sort_heap(best.begin(), best.end(), better);
    return;
  }
  best.resize(static_cast<size_t>(lane.n));
  for (int64_t i = 0; i < lane.n; ++i) best[static_cast<size_t>(i)] = lane.candidate(i);
  if (k < lane.n) std::nth_element(best.begin(), best.begin() + k, best.end(), better);
  std::sort(best.begin(), best.begin() + k, better);
}

template <bool largest, typename T>
void topk_lanes(const TopkShape& shape, const T* in, T* values, int64_t* positions) {
  using K = decltype(comparable(T()));
  auto run = [&](int64_t begin, int64_t end) {
    std::vector<Candidate<K>> best;
    for (int64_t l = begin; l < end; ++l) {
      int64_t outer = l / shape.inner, inner = l % shape.inner;
      Lane<T> lane{in + outer * shape.n * shape.inner + inner, shape.n, shape.inner};
      select_best(lane, shape.k, best, Better<K, largest>());
      int64_t to = outer * shape.k * shape.inner + inner;
      for (int64_t i = 0; i < shape.k; ++i, to += shape.inner) {
        positions[to] = best[static_cast<size_t>(i)].position;
        values[to] = lane.from[positions[to] * shape.inner];
      }
    }
  };
  parallel_for(0, shape.outer * shape.inner, std::max<int64_t>(1, kThreadPlaces / shape.n), run);
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
