#pragma once

#include <algorithm>
#include <cstdint>

// The cache blocking: BLIS's KC, MC and NC. (MR and NR belong to the micro-kernel.)
namespace weft::cpu {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// KC, from k alone, since where sums over k are cut decides their bits: a panel of b with so many rows stays
// in the L1 or L2 cache while the rows of a pass by. Blocks are of nearly equal depth.
template <typename T>
inline constexpr int64_t kMaxBlockDepth = 2048 / sizeof(T);
template <typename T>
int64_t block_depth(int64_t k) {
  return ceil_div(k, ceil_div(k, kMaxBlockDepth<T>));
}

// Bytes of a core's L2 cache, as the system tells.
int64_t second_level_cache();

// MC: so many rows of a, that deep, take half of the L2 cache.
template <typename T>
int64_t block_rows(int64_t depth) {
  return std::max<int64_t>(second_level_cache() / 2 / (static_cast<int64_t>(sizeof(T)) * depth), 1);
}

inline constexpr int64_t kBlockColumns = 2048;  // NC: packed panels of b stay in the last-level cache

}  // namespace weft::cpu
