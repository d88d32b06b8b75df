#pragma once

#include "weft/base/function_ref.h"
#include "weft/graph/graph_module.h"

namespace weft {

// Merges the reads of one tensor or module. Whether there were any to merge.
bool merge_attribute_reads(GraphModule& module);

// CSE: nodes that compute the same become one, the first. Results keep their bits, and results that
// leave the graph stay tensors of their own. Nothing happens in a graph that writes, has effects or calls
// what it does not know. Gradients would keep their values but not their bits, since sums are taken
// elsewhere: nodes for which `is_kept` is true are left alone.
bool merge_common_subexpressions(GraphModule& module, FunctionRef<bool(const Node&)> is_kept);

// Equal constants become one value of the script view, and numbers for tensors numbers (`pools_constants`).
// Whether the graph has constants, and did not say so yet.
bool pool_constants(GraphModule& module);

}  // namespace weft
