#pragma once

#include "weft/core/tensor.h"

namespace weft::autograd {

// The same memory as a tensor that nobody knows: it has no history, writes through it are not counted, and
// captures take it for a constant. What PyTorch calls `.data`; `detach()` is what one usually wants.
Tensor untracked_data(const Tensor& tensor);

}  // namespace weft::autograd
