#pragma once

#include "aot/extension_tree.h"
#include "weft/aot/description.h"
#include "weft/capture/make_graph.h"
#include "weft/graph/graph_module.h"

namespace weft::aot {

struct TraceOptions {
  Decompositions decompositions = {};
  // Of an inference: records above autograd.
  bool pre_dispatch = false;
  // Of a joint graph for export: gradients are those of this graph output, and begin with ones. Placeholders
  // arg0_1, arg1_1, ...; the output is a tuple, with gradients for what requires one only.
  std::optional<size_t> loss = std::nullopt;
  // Of an inference without extensions: how placeholders are called instead.
  std::vector<std::string> input_names = {};
  // Gradients may be extensions where the inputs are plain tensors.
  bool sparse_gradients = false;
  // What nobody uses stays in the graph: whoever asked removes it.
  bool keep_dead_code = false;
};

// The call as one functional graph, over the tensors that the extensions among its inputs and outputs are
// made of.
struct TracedCall {
  GraphModule module;
  // How the graph's placeholders and outputs make up the inputs, the graph outputs of the description, and
  // the gradients.
  std::vector<ExtensionTree> inputs, outputs, tangents, gradients;
  // The backward writes to an input whose gradient is wanted.
  bool backward_writes_differentiable_input = false;
};

// A FakeMode must be open; `inputs` are those that were described. Placeholders arg0_1, arg1_1, ...; the
// output is a tuple.
TracedCall trace_inference(const ValueFunction& f, const ValueList& inputs,
                           const CallDescription& description, const TraceOptions& options);

// Forward and backward in one graph. Placeholders primals_1, ..., then tangents_1, ... for the outputs that
// take one; the output is a list: the outputs of the forward, then a gradient for each input, None where it
// has none.
TracedCall trace_joint(const ValueFunction& f, const ValueList& inputs, const CallDescription& description,
                       const TraceOptions& options);

}  // namespace weft::aot
