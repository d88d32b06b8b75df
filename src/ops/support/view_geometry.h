#pragma once

#include "weft/core/tensor.h"

namespace weft {

// `size` with a -1 replaced so that it holds `numel` elements; errors in PyTorch's words.
SymInts infer_size(SymIntSpan size, const SymInt& numel);

// The strides with which memory of (sizes, strides) can be seen as `target`, of as many elements; nothing
// when it would need a copy.
std::optional<SymInts> view_strides(SymIntSpan sizes, SymIntSpan strides, SymIntSpan target);

// A position where a negative one counts from the end.
SymInt wrapped_position(const SymInt& position, const SymInt& size);
// start, end and step of a slice brought into [0, size]; the length of the slice.
struct SliceRange {
  SymInt start, length;
};
SliceRange slice_range(const SymInt& size, const std::optional<SymInt>& start,
                       const std::optional<SymInt>& end, const SymInt& step);

// The bytes from the start of a storage to the end of the last element of this geometry, 0 where it has none.
// An error for negative sizes and strides, and where there is no such number.
size_t reached_bytes(SymIntSpan sizes, SymIntSpan strides, const SymInt& offset, DType dtype);

}  // namespace weft
