#pragma once

#include "weft/nn/module.h"

namespace weft {

// Copies of all tensors of a tree: detached, with the same strides, requires_grad and gradient. None stays;
// an error for anything else.
Value clone_inputs(const Value& inputs);

// The entries of the module's state_dict without tensors that came before under another name: the tensors
// themselves, or detached aliases of them.
nn::NamedTensors unique_state_dict(const nn::Module& module, bool keep_vars = false);

}  // namespace weft
