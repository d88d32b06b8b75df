#pragma once

#include <cstring>
#include <vector>

#include "weft/core/tensor.h"

namespace weft {

// A tensor of these sizes with a copy of `values`, row by row; a vector unless sizes are given.
template <typename T>
Tensor from_data(const std::vector<T>& values, SymIntSpan sizes) {
  Tensor tensor = allocate_contiguous(sizes, dtype_of<T>);
  require(tensor.plain_numel() == static_cast<int64_t>(values.size()),
          "from_data: {} values do not fill sizes {}", values.size(), describe_sizes(sizes));
  for (size_t i = 0; i < values.size(); ++i) tensor.data<T>()[i] = values[i];
  return tensor;
}
template <typename T>
Tensor from_data(const std::vector<T>& values) {
  return from_data(values, {static_cast<int64_t>(values.size())});
}

}  // namespace weft
