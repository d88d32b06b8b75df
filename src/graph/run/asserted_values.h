#pragma once

#include <unordered_set>

#include "weft/graph/graph.h"

namespace weft {

// A call that is there for nothing but what it refuses: of an effectful operator without results.
bool is_assertion(const Node& node);

// Calls of functions of numbers whose results nobody but assertions reads, directly or through other such
// calls.
std::unordered_set<const Node*> find_asserted_values(const Graph& graph);

}  // namespace weft
