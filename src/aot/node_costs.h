#pragma once

#include "weft/graph/graph_module.h"

// What partitioners ask of a node: its traits, never its name.

namespace weft::aot {

// Views of what is there cost nothing.
bool is_view_node(const Node& node);
// It may not be run a second time, whatever it costs.
bool has_effects(const Operator& op);
// Cheap enough to be computed again, and the same each time: pointwise, a reduction, a view, a factory, an
// item of several results.
bool is_recomputable(const Node& node);
// A compiler may run it in one loop with a neighbour of that kind.
bool is_fusible(const Node& node);
// The node whose memory the value may be: itself, or one that it is a view of.
const Node& memory_of(const Node& node);
// Bytes of all tensors that the node gives, at the example's sizes.
int64_t size_of(const Node& node);

}  // namespace weft::aot
