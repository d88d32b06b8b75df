#pragma once

#include "aot/compile_plan.h"
#include "base/json.h"

namespace weft {

// All of a plan but its graph's operators and constants: the descriptions, how the graph is called, and what
// is noted on its nodes. An UnsupportedError that says what cannot be written down.
Json plan_to_json(const aot::CompilePlan& plan);
// A plan around `graph`, which is what the notes are put on. A FormatError for what is no such text.
aot::CompilePlan plan_from_json(const Json& text, GraphModule graph);

}  // namespace weft
