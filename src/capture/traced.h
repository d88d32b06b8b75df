#pragma once

#include "weft/nn/module.h"

namespace weft {

// Whether a child is a graph module or a traced one: it has no C++ code, and becomes a part of a traced
// module as it is.
bool is_graph(const nn::ModuleState::Child& child);

}  // namespace weft
