#pragma once

#include "weft/nn/module.h"

namespace weft {

// Copies of all tensors of a tree: detached, with the same strides, requires_grad and gradient. A tensor of
// an opaque layout is copied as its kind copies by default. None stays; an error for anything else.
Value clone_inputs(const Value& inputs);

// Parameters and persistent buffers by name, each tensor once, under the first of its names: themselves, or
// detached aliases unless `keep_vars`.
nn::NamedTensors unique_state_dict(const nn::Module& module, bool keep_vars = false);

}  // namespace weft
