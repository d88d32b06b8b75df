#include "ops/cpu/embedding.h"

#include <algorithm>
#include <vector>

#include "ops/cpu/thread_elements.h"
#include "weft/base/parallel.h"

namespace weft::cpu {
namespace {

// The lookups of each row, in order: those of row r are lookups[first[r]] to lookups[first[r + 1]].
struct LookupsByRow {
  std::vector<int64_t> first, lookups;

  explicit LookupsByRow(const EmbeddingBackwardArgs& args)
      : first(static_cast<size_t>(args.rows) + 1, 0), lookups(static_cast<size_t>(args.count)) {
    for (int64_t i = 0; i < args.count; ++i) ++first[static_cast<size_t>(args.indices[i]) + 1];
    for (size_t r = 1; r < first.size(); ++r) first[r] += first[r - 1];
    std::vector<int64_t> next(first.begin(), first.end() - 1);
    for (int64_t i = 0; i < args.count; ++i)
      lookups[static_cast<size_t>(next[static_cast<size_t>(args.indices[i])]++)] = i;
  }
};

template <typename T>
struct WideOf {
  using type = T;
};
template <>
struct WideOf<Half> {
  using type = float;
};
template <>
struct WideOf<BFloat16> {
  using type = float;
};

template <typename T>
T real_number(double value) {
  if constexpr (requires(T t) { t.re; }) return T(static_cast<decltype(T::re)>(value));
  else return static_cast<T>(value);
}

template <typename T>
void sum_rows(const EmbeddingBackwardArgs& args, const T* grad, T* table) {
  using Wide = typename WideOf<T>::type;
  LookupsByRow by_row(args);
  int64_t work = std::max<int64_t>(1, args.width * (1 + args.count / std::max<int64_t>(1, args.rows)));
  parallel_for(0, args.rows, std::max<int64_t>(1, kThreadPlaces / work), [&](int64_t begin, int64_t end) {
    std::vector<Wide> sum(static_cast<size_t>(args.width));
    for (int64_t r = begin; r < end; ++r) {
      std::fill(sum.begin(), sum.end(), real_number<Wide>(0));
      auto first = by_row.first[static_cast<size_t>(r)], last = by_row.first[static_cast<size_t>(r) + 1];
      Wide share = real_number<Wide>(args.mean && last > first ? 1.0 / static_cast<double>(last - first) : 1);
      if (r == args.padding) last = first;
      for (int64_t i = first; i < last; ++i) {
        const T* from = grad + by_row.lookups[static_cast<size_t>(i)] * args.width;
        for (int64_t k = 0; k < args.width; ++k)
          sum[static_cast<size_t>(k)] = sum[static_cast<size_t>(k)] + static_cast<Wide>(from[k]) * share;
      }
      for (int64_t k = 0; k < args.width; ++k)
        table[r * args.width + k] = static_cast<T>(sum[static_cast<size_t>(k)]);
    }
  });
}

}  // namespace

void embedding_backward(const EmbeddingBackwardArgs& args, const char* grad, char* table, DType dtype) {
  // A table without elements may have more rows than fit in memory.
  if (args.width == 0) return;
  visit_dtype(dtype, [&]<typename T>() {
    if constexpr (!std::integral<T>)
      sum_rows(args, reinterpret_cast<const T*>(grad), reinterpret_cast<T*>(table));
  });
}

}  // namespace weft::cpu
