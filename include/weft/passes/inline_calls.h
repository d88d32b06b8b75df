#pragma once

#include "weft/base/function_ref.h"
#include "weft/graph/graph_module.h"

namespace weft {

// Replaces calls of graphs by what the graphs do: calls of child modules that are graphs, and of functions
// that were traced before. Their tensors are named by path: "child.weight". Calls by name, and of graphs that
// take their arguments apart (CallSpec), stay calls. `inlined` learns of each new node and the call that it
// comes from. Whether there was any call.
bool inline_calls(GraphModule& module);
bool inline_calls(GraphModule& module, FunctionRef<void(const Node& call, Node& copy)> inlined);

}  // namespace weft
