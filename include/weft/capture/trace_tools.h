#pragma once

#include "weft/capture/trace.h"

namespace weft {

// Copies of all tensors of a tree: detached, with the same strides, requires_grad and gradient. None stays;
// an error for anything else.
Value clone_inputs(const Value& inputs);

// Parameters and persistent buffers by name, each tensor once, under the first of its names: themselves, or
// detached aliases unless `keep_history`.
nn::NamedTensors unique_state_dict(const nn::Module& module, bool keep_history = false);

struct TraceGraphOptions {
  bool strict = true;
  bool force_outplace = false;
  std::string arg_names = {};
};

// A program as one function of tensors.
struct TraceGraph {
  // Its inputs are the leaves of the arguments, then the module's state as unique_state_dict has it. Its
  // output is a tuple of the leaves of the result, or the only one. Nothing is left out, used or not.
  GraphModule module;
  Value result;      // what the program gave
  ValueList inputs;  // copies of all inputs as they were before it ran
  // The arguments as they were before and as the program left them.
  Value arguments_before, arguments_after;

  Graph& graph() const noexcept { return module.graph(); }
};
TraceGraph trace_graph_of(const ValueFunction& f, const nn::Module* root, const Value& arguments,
                          const TraceGraphOptions& options);

// Runs f on the arguments (a tuple, or the only one) and records it, without a check.
template <typename F>
TraceGraph get_trace_graph(F f, const Value& arguments, TraceGraphOptions options = {}) {
  if constexpr (std::is_base_of_v<nn::Module, F>) {
    BoundMethod forward = detail::forward_of(f);
    if (options.arg_names.empty()) options.arg_names = forward.arg_names;
    return trace_graph_of(forward.function, &f, arguments, options);
  } else {
    return trace_graph_of(as_value_function(std::move(f)), nullptr, arguments, options);
  }
}

}  // namespace weft
