#pragma once

#include "weft/core/value.h"

namespace weft {

// Copies of all tensors of a tree: detached, with the same strides, requires_grad and gradient. None stays;
// an error for anything else.
Value clone_inputs(const Value& inputs);

}  // namespace weft
