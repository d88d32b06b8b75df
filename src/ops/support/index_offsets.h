#pragma once

#include "ops/cpu/indexed_move.h"
#include "weft/core/tensor.h"

// The offsets of the elements that an index along one dim selects.

namespace weft {

// Offsets of all elements of (sizes, strides), in row-major order.
std::vector<int64_t> strided_offsets(IntSpan sizes, IntSpan strides);

// Offsets around dim `dim` of `tensor`, for the part of it that `sizes` covers (which has as many dims).
struct OffsetsAround {
  std::vector<int64_t> before, after;
  OffsetsAround(const Tensor& tensor, int64_t dim, IntSpan sizes);
};

// Bounds check of indices into a dim of `size` elements: the first that is out of range is an error which
// `describe` makes.
template <typename Describe>
void check_positions(const int64_t* positions, int64_t count, int64_t size, Describe describe) {
  bool inside = true;
  for (int64_t i = 0; i < count; ++i)
    inside &= static_cast<uint64_t>(positions[i]) < static_cast<uint64_t>(size);
  if (inside) return;
  for (int64_t i = 0; i < count; ++i)
    if (static_cast<uint64_t>(positions[i]) >= static_cast<uint64_t>(size)) describe(positions[i]);
}

}  // namespace weft
