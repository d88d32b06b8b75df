#pragma once

#include "weft/core/tensor.h"

namespace weft {

// Sets every element; nothing for tensors without memory. No layers.
void fill_values(const Tensor& tensor, const Scalar& value);
// The same with a number that a user gave: an error where the type cannot hold it.
void fill_number(const Tensor& tensor, const Scalar& value);

}  // namespace weft
