#pragma once

#include <utility>
#include <vector>

#include "weft/graph/graph_module.h"

namespace weft {

// PyTorch exports a vmap before dispatch as calls that begin and end a level, with the program's own calls
// between them. Here each such region becomes one call of a graph under func::vmap: a level then ends however
// the region is left. The graphs, with the paths that the calls read them from.
std::vector<std::pair<std::string, GraphModule>> fold_vmap_regions(Graph& graph);

}  // namespace weft
