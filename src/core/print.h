#pragma once

#include <string>
#include <vector>

#include "weft/core/tensor.h"

// What the texts of tensors have in common, for folders whose tensors print differently.

namespace weft::detail {

// What stands beside the values: ", dtype=torch.float64", ..., and the closing bracket. What would pass the
// end of the line starts a line of its own, `indent` columns in.
std::string close_text(std::string text, const std::vector<std::string>& suffixes, size_t indent);

// "device='sim:0'", unless it is the CPU.
void add_device(std::vector<std::string>& suffixes, const Tensor& tensor);
// "grad_fn=<MulBackward0>" or "requires_grad=True", if there is a gradient to follow.
void add_history(std::vector<std::string>& suffixes, const Tensor& tensor);

}  // namespace weft::detail
