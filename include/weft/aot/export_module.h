#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/capture/make_graph.h"

namespace weft {

// What the placeholders and outputs of an exported graph are, by the names of their nodes.
struct GraphSignature {
  // In the order of the graph.
  using Names = std::vector<std::pair<std::string, std::string>>;

  std::vector<std::string> parameters, buffers;        // names in the module
  std::vector<std::string> user_inputs, user_outputs;  // nodes
  Names inputs_to_parameters, inputs_to_buffers;       // a placeholder, a name in the module
  // An output that is the new value of a parameter, of a buffer, or of a placeholder among the user's inputs.
  Names parameters_to_mutate, buffers_to_mutate, user_inputs_to_mutate;

  // Of a graph with gradients.
  struct Backward {
    Names gradients_to_parameters, gradients_to_user_inputs;  // an output, what it is the gradient of
    std::string loss_output;
  };
  std::optional<Backward> backward = std::nullopt;

  TreeSpec arguments, result;  // of the module's call
  // PyTorch's text: lists and dictionaries in Python's syntax.
  std::string to_string() const;
};

// A call of a module as one graph without writes: placeholders are its parameters, its buffers and the leaves
// of its arguments; outputs are the new values of what it writes to, the leaves of its result, and gradients.
struct AotExport {
  GraphModule module;
  GraphSignature signature;
};

struct AotExportOptions {
  // With gradients of output `output_loss_index`, a scalar, for what requires one.
  bool trace_joint = false;
  std::optional<size_t> output_loss_index = std::nullopt;
  // Records above autograd: composites whole where they neither write nor alias, switches of the grad mode.
  bool pre_dispatch = false;
  Decompositions decompositions = {};
  // Whether sizes of the arguments are symbols; those of parameters and buffers are numbers.
  bool dynamic = false;
};

// Neither the module nor the arguments are touched. What no graph without writes can say is an error: changed
// sizes and strides of inputs, writes to inputs that share memory, and, with gradients, writes to what
// requires one.
AotExport aot_export_module(const nn::Module& module, const ValueFunction& forward, const ValueList& args,
                            const AotExportOptions& options = {});

//   auto [graph, signature] = aot_export_module(net, {x}, {.trace_joint = true, .output_loss_index = 0});
template <typename M>
AotExport aot_export_module(const M& module, const ValueList& args, const AotExportOptions& options = {}) {
  nn::note_class(*module.state(), typeid(M));
  Ref<Callable> call = nn::detail::erased_call(module);
  require(static_cast<bool>(call),
          "aot_export_module: the forward of {} takes or gives types that no Value holds",
          module.state()->class_name);
  return aot_export_module(module, [call](Args given) { return call->call(given); }, args, options);
}

struct AotExportJointOptions {
  // Forward and backward, for a partitioner: placeholders primals_1, ..., tangents_1, ...
  bool trace_joint = true;
  Decompositions decompositions = {};
};

// A function of tensors as one graph, without anything around it: it takes the function's own arguments.
// Arguments that are containers, writes to arguments and tensor extensions are errors.
GraphModule aot_export_joint_simple(const ValueFunction& f, const ValueList& args,
                                    const AotExportJointOptions& options = {});
template <typename F>
GraphModule aot_export_joint_simple(F f, const ValueList& args, const AotExportJointOptions& options = {}) {
  return aot_export_joint_simple(as_value_function(std::move(f)), args, options);
}

}  // namespace weft
