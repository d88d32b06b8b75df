#pragma once

#include "weft/graph/graph_module.h"
#include "weft/sym/shape_env.h"

namespace weft {

// How bounds of values that come from data are written.
enum class Bounds : uint8_t {
  kAssertions,   // u0 >= 2, asserted like everything else
  kConstraints,  // aten::sym_constrain_range(u0, min = 2) first, and before it sym_constrain_range_for_size
                 // for sizes, as in exported programs: whoever captures the graph again knows the range
                 // before anything else
};

// Puts what only a run can answer (`ShapeEnv::runtime_asserts`, and the declared bounds of values that come
// from data) into the graph, as calls of `aten::_assert_scalar`, in the order in which it was learnt. Each
// stands right after the last value that it needs; sizes, strides and offsets are read off inputs, also where
// only `2*s0` or a stride tells a symbol. Nodes that are there already are used, a condition that is asserted
// or implied by an asserted bound is not asserted again, so that a second run changes nothing. What is about
// values of a nested graph goes there; what is about values that no graph computes any more is left out.
// Whether anything was added.
//
// Reads `meta().value`, which captures and ShapeProp note.
bool insert_runtime_assertions(GraphModule& module, ShapeEnv& env, Bounds bounds = Bounds::kAssertions);

}  // namespace weft
