#pragma once

#include <string>

#include "weft/core/tensor.h"

namespace weft::detail {

// How a printed tensor shows where its gradient goes: "grad_fn=<MulBackward0>", "requires_grad=True", or
// nothing. Set by the autograd layer, which core does not know.
extern std::string (*history_text)(const Tensor& tensor);

}  // namespace weft::detail
