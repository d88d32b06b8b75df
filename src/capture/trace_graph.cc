#include <unordered_set>

#include "capture/trace_recorder.h"
#include "capture/trace_types.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/trace_tools.h"
#include "weft/core/pytree.h"

namespace weft {

nn::NamedTensors unique_state_dict(const nn::Module& module, bool keep_history) {
  nn::NamedTensors unique;
  std::unordered_set<const TensorImpl*> seen;
  for (const auto& [name, tensor] : module.state_dict())
    if (seen.insert(tensor.impl()).second) unique.emplace_back(name, keep_history ? tensor : tensor.detach());
  return unique;
}

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

std::string name_of_input(const ArgumentNames& names, size_t argument, size_t leaf, bool is_leaf) {
  std::string name =
      argument < names.entries().size() ? names.entries()[argument].name : fmt::format("arg{}", argument);
  return is_leaf ? name : fmt::format("{}_{}", name, leaf);
}

}  // namespace

TraceGraph trace_graph_of(const ValueFunction& f, const nn::Module* root, const Value& arguments,
                          const TraceGraphOptions& options) {
  require(!is_tracing(), "Tracing can't be nested");
  Value given = arguments.is_tuple() ? arguments : Value::tuple({arguments});
  nn::NamedTensors state = root ? unique_state_dict(*root, true) : nn::NamedTensors();
  TraceOptions trace_options{.strict = options.strict, .force_outplace = options.force_outplace};
  ArgumentNames names(options.arg_names);
  TraceGraph traced;
  TraceRecorder recorder(trace_options, nullptr);
  {
    ValueList own_arguments, copies;
    TraceRecorder::Scope scope(recorder);
    for (size_t i = 0; i < given.elements().size(); ++i) {
      MaskScope below(layer::below(layer::kRecorderUpper));
      FlatTree flat = tree_flatten(given.elements()[i]);
      ValueList own, before;
      for (const Value& leaf : flat.leaves) {
        require(leaf.is_tensor(), "Expected Tensor argument, but got {}", leaf.kind_name());
        traced.inputs.push_back(copied(leaf));
        before.push_back(copied(leaf));
        own.push_back(recorder.add_argument(
            name_of_input(names, i, own.size(), given.elements()[i].is_tensor()), apart_from(state, leaf)));
      }
      own_arguments.push_back(tree_unflatten(own, flat.spec));
      copies.push_back(tree_unflatten(before, flat.spec));
    }
    for (const auto& [name, tensor] : state) {
      {
        MaskScope below(layer::below(layer::kRecorderUpper));
        traced.inputs.push_back(copied(tensor));
      }
      recorder.add_state(name, tensor);
    }
    traced.arguments_before = Value::tuple(copies);
    traced.arguments_after = Value::tuple(own_arguments);
    traced.result = f(names.empty() ? own_arguments : names.bind(own_arguments));
    check_trace_result(traced.result, options.strict);
    recorder.graph().output(as_output(recorder.as_nodes(Value::list(tree_leaves(traced.result))).elements()));
  }
  traced.module = recorder.finish(true, root ? root->state()->class_name : "forward");
  return traced;
}

}  // namespace weft
