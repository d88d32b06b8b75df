#pragma once

#include <string>

#include "weft/dispatch/operator.h"

namespace weft {

// A call for messages, without what has its default: "aten::sum.dim_IntList(self=f32[2, 3], dim=[5])".
std::string call_text(const Operator& op, Args args);

}  // namespace weft
