#pragma once

#include "weft/graph/graph_module.h"

namespace weft {

// Every node of this kind and target gets another kind and target; names, arguments and all other nodes stay.
// How many there were.
size_t replace_target_nodes_with(const GraphModule& module, NodeKind old_kind, const Target& old_target,
                                 NodeKind new_kind, const Target& new_target);

}  // namespace weft
