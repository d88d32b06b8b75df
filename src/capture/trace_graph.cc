#include "weft/capture/trace_graph.h"

#include "capture/trace_recorder.h"
#include "capture/trace_types.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/trace_tools.h"
#include "weft/core/pytree.h"

namespace weft {

namespace {

// A tensor that the module owns is as an argument a value of its own.
Value apart_from(const nn::NamedTensors& state, const Value& leaf) {
  for (const auto& [name, tensor] : state)
    if (tensor.is_same(leaf.tensor_ref())) return alias(tensor);
  return leaf;
}

Value as_output(const ValueList& leaves) { return leaves.size() == 1 ? leaves[0] : Value::tuple(leaves); }

// A copy with what a later run needs: the same strides and wish for a gradient, but no gradient.
Value copied(const Value& tensor) {
  NoGrad no_grad;
  Tensor copy = tensor.tensor_ref().detach().clone();
  if (tensor.tensor_ref().requires_grad()) copy.set_requires_grad();
  return copy;
}

}  // namespace

TraceGraph trace_graph_of(const ValueFunction& f, const nn::Module* root, const Value& arguments,
                          const TraceGraphOptions& options) {
  require(!is_tracing(), "Tracing can't be nested");
  Value given = arguments.is_tuple() ? arguments : Value::tuple({arguments});
  nn::NamedTensors state = root ? unique_state_dict(*root, true) : nn::NamedTensors();
  FlatTree flat = tree_flatten(given);
  ValueList before;
  for (const Value& leaf : flat.leaves) {
    require(leaf.is_tensor(), "Expected Tensor argument, but got {}", leaf.kind_name());
    before.push_back(copied(leaf));
  }
  TraceGraph traced;
  if (options.return_inputs) {
    traced.inputs = before;
    for (const auto& [name, tensor] : state) traced.inputs.push_back(copied(tensor));
  }
  TraceOptions trace_options{.strict = options.strict, .force_outplace = options.force_outplace};
  TraceRecorder recorder(trace_options, nullptr);
  {
    TraceRecorder::Scope scope(recorder);
    ValueList leaves;
    for (const Value& leaf : flat.leaves) {
      MaskScope below(layer::below(layer::kRecorderUpper));
      leaves.push_back(
          recorder.add_argument(fmt::format("input_{}", leaves.size()), apart_from(state, leaf)));
    }
    for (const auto& [name, tensor] : state) recorder.add_state(name, tensor);
    Value own = tree_unflatten(leaves, flat.spec);
    traced.out = f(own.elements());
    check_trace_result(traced.out, options.strict);
    recorder.graph().output(as_output(recorder.as_nodes(Value::list(tree_leaves(traced.out))).elements()));
    if (options.return_inputs_states && !options.return_inputs) {
      traced.inputs_before = tree_unflatten(before, flat.spec);
      traced.inputs_after = own;
    }
  }
  traced.module = recorder.finish(true, root ? root->state()->class_name : "forward");
  return traced;
}

}  // namespace weft
