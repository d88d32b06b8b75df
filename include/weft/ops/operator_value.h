#pragma once

#include "weft/ops/operator.h"

namespace weft {

// An operator as a Value, for operators over operators: an argument `torch.ops.aten.mm.default` of a graph.
Value operator_value(const Operator& op);
// Null when the Value is no operator.
const Operator* operator_in(const Value& value);

}  // namespace weft
