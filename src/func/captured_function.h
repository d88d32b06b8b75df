#pragma once

#include <span>

#include "weft/core/callable.h"

// The functions of control flow as graphs. This folder knows no graphs: capture/ defines what is declared
// here.

namespace weft {

// A function that ran once, as a graph of what it called, above all transforms and layers: every one of them
// sees those calls when the graph runs.
struct CapturedFunction {
  Ref<Callable> graph;  // takes the leaves, then what the functions close over
  ValueList results;    // what it gave, without data
};
struct CapturedFunctions {
  std::vector<CapturedFunction> functions;
  // Tensors and symbolic numbers that some of them use without being given them.
  ValueList closed_over;
};

// Runs each function once, on tensors without data. The first `varying` leaves are others in every call, so
// that numbers among them are symbols. Afterwards the ShapeEnv of the caller's fake mode knows the conditions
// that the functions asked about, and none of their symbols; `check` sees what they gave before.
using ResultCheck = FunctionRef<void(std::span<const CapturedFunction>)>;
CapturedFunctions capture_functions(std::span<const ValueFunction> functions, const ValueList& leaves,
                                    size_t varying, ResultCheck check);

}  // namespace weft
