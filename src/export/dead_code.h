#pragma once

#include "weft/graph/graph_module.h"

namespace weft {

// What nobody needs is removed. What tells a value that only a run tells stays if the program asserts
// something about it, though nobody else reads it.
void remove_dead_code(GraphModule& module, const ShapeEnv& env);

}  // namespace weft
