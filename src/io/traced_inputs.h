#pragma once

#include "base/json.h"
#include "weft/graph/graph_module.h"

namespace weft {

// What a module was traced with, without the data: by the name of the method the tree of its arguments, and
// type, sizes, strides and device of each tensor in it.
Json describe_inputs(const Dict& inputs);
// The same inputs as tensors without data; a FormatError for a note that is none.
Dict read_inputs(const Json& note);
// Puts them on the placeholders of the module's graph.
void restore_shapes(const GraphModule& module);

}  // namespace weft
