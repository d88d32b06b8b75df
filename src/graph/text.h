#pragma once

#include "weft/graph/node.h"

namespace weft {

// A value as Python code writes it: nodes by name, strings quoted, `torch.float32`, `device(type='cpu')`.
std::string python_code(const Value& value);
// A value as PyTorch's graph text has it: nodes with a %, strings as they are.
std::string graph_text(const Value& value);

}  // namespace weft
