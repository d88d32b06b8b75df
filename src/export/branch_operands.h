#pragma once

#include "weft/graph/graph_module.h"

namespace weft {

// Branches and bodies of control flow, at any depth, as exported programs have them. What they close over of
// the module's state comes first among their operands, by name; their placeholders are called as the
// operands. `num_state` placeholders at the front of the graph are the state.
void arrange_branches(const GraphModule& module, size_t num_state);

}  // namespace weft
