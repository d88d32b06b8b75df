#pragma once

#include "weft/base/function_ref.h"
#include "weft/dispatch/operator.h"

namespace weft::autograd {

// Runs `op` through `call_below` and puts the call on the tape of its arguments. The base layer and every
// grad level use this one function: they differ only in what is below. `call_below` takes and gives tensors
// of this position, and returns a written argument as itself.
Value record_call(const Operator& op, Args args, FunctionRef<Value(Args)> call_below);

// Whether any argument that can carry a gradient requires one.
bool any_requires_grad(Args args);

}  // namespace weft::autograd
