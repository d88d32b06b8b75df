#pragma once

#include "weft/capture/trace.h"

namespace weft {

struct TraceGraphOptions {
  bool strict = true;
  bool force_outplace = false;
  // Keeps copies of all inputs of the graph as they were before the program ran.
  bool return_inputs = false;
  // Keeps the arguments as they were before the program ran, and as it left them; not with return_inputs.
  bool return_inputs_states = false;
};

// A program as one function of tensors.
struct TraceGraph {
  // Its inputs are the leaves of the arguments, then the module's state as unique_state_dict has it. Its
  // output is a tuple of the leaves of the result, or the only one. Nothing is left out, used or not.
  GraphModule module;
  Value out;              // what the program gave
  ValueList inputs = {};  // where they are asked for, as the other two
  Value inputs_before = {}, inputs_after = {};

  Graph& graph() const noexcept { return module.graph(); }
};
TraceGraph trace_graph_of(const ValueFunction& f, const nn::Module* root, const Value& arguments,
                          const TraceGraphOptions& options);

// Runs f on the arguments (a tuple, or the only one) and records it, without a check.
template <typename F>
TraceGraph get_trace_graph(F f, const Value& arguments, const TraceGraphOptions& options = {}) {
  if constexpr (std::is_base_of_v<nn::Module, F>) {
    return trace_graph_of(detail::forward_of(f).function, &f, arguments, options);
  } else {
    return trace_graph_of(as_value_function(std::move(f)), nullptr, arguments, options);
  }
}

}  // namespace weft
