#pragma once

#include "weft/graph/graph_module.h"

namespace weft {

// How far a graph has come, and so what may be in it.
enum class Stage : uint8_t {
  kAny,         // a graph: order, users, names, targets with arguments that fit their schemas
  kCaptured,    // and one output, placeholders first
  kFunctional,  // and no operator that writes; only the last ones may hand results, or their sizes, to inputs
};

// An error that says what does not hold, and at which node. Looks into nested graphs too.
void verify(const GraphModule& module, Stage stage = Stage::kAny);
void verify(const Graph& graph, Stage stage = Stage::kAny);

}  // namespace weft
