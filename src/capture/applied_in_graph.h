#pragma once

#include "autograd/function.h"
#include "weft/core/callable.h"

namespace weft {

// A custom function as a step of a graph: its arguments are the tensors. One that writes to them is refused
// when it is run, where `refuses_writes` says so.
Ref<Callable> applied_in_graph(Ref<autograd::CustomFunction> function, bool refuses_writes);

// One result as it is, several as a tuple.
Value one_or_tuple(const ValueList& results);

}  // namespace weft
