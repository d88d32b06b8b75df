#pragma once

#include "weft/graph/graph_module.h"

namespace weft {

// Switches of the grad mode in a graph, and in branches below it, become regions: what runs in another mode
// than `is_enabled`, in which the program was captured, is a function submod_N of its own that
// wrap_with_set_grad_enabled calls. N is the number of the switch that it begins with.
void fold_grad_mode_regions(const GraphModule& module, bool is_enabled);

}  // namespace weft
