#pragma once

#include <string_view>

#include "weft/core/tensor.h"

// Tensors over memory that a file describes.

namespace weft {

// What memory must be aligned to for elements of the type.
size_t element_alignment(DType dtype);

// Where a tensor's elements are in its storage, in elements.
struct StoredLayout {
  Ints sizes, strides;
  int64_t offset = 0;
};
// Row-major from the beginning.
StoredLayout row_major(Ints sizes);

// A FormatError that begins with `what` for negative numbers, for elements outside of the storage, and for
// sizes that cannot be addressed.
Tensor tensor_over(Ref<Storage> storage, DType dtype, const StoredLayout& layout, std::string_view what);

// Any byte but 0 and 1 would be an invalid C++ bool: a FormatError that begins with `what`.
void check_bools(const Storage& storage, std::string_view what);

}  // namespace weft
