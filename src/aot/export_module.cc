#include "weft/aot/export_module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "aot/describe.h"
#include "aot/fake_inputs.h"
#include "aot/trace_call.h"
#include "func/functional_call.h"
#include "weft/base/error.h"
#include "weft/nn/functional_call.h"
#include "weft/ops/extension.h"

namespace weft {

using namespace aot;

namespace {

bool requires_grad(const Value& value) { return value.is_tensor() && value.tensor_ref().requires_grad(); }

// --- what no exported graph can say ----------------------------------------------------------------------

// Inputs and what a call does to them, with names for messages.
class ExportedInputs {
 public:
  ExportedInputs(const ValueList& inputs, std::vector<std::string> names)
      : inputs_(inputs), names_(std::move(names)) {}

  void refuse_extensions() const {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (is_tensor(i) && extension_of(tensor(i)))
        unsupported(
            "aot_export is not currently supported with traceable tensor subclass: {} is a {}; give the "
            "tensors "
            "that it is made of",
            names_[i], extension_of(tensor(i))->type_name());
  }

  // `with_gradients`: of the values that inputs have, not of those that they are given.
  void check(const CallDescription& description, bool may_write, bool with_gradients) const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const InputUse& use = description.inputs[i];
      if (use.changes_metadata || use.resizes_storage)
        fail(
            "Found an input that received a metadata mutation: the program changes sizes, strides or memory "
            "of {} "
            "itself, and an exported graph gives values only. Let it change a clone or a view of it",
            names_[i]);
      if (!use.is_written) continue;
      if (use.requires_grad && with_gradients)
        fail(
            "Found a graph input that requires gradients, and received a mutation: the program writes to {}. "
            "Write to a clone of it",
            names_[i]);
      refuse_shared(i);
      require(
          may_write,
          "aot_export_joint_simple takes functions that write to none of their arguments, but {} is written "
          "to; use aot_export_module, which gives the new value as an output",
          names_[i]);
    }
  }

 private:
  bool is_tensor(size_t i) const { return inputs_[i].is_tensor() && inputs_[i].tensor_ref().defined(); }
  const Tensor& tensor(size_t i) const { return inputs_[i].tensor_ref(); }

  // Each input has memory of its own in the graph: one that others share must not be written to.
  void refuse_shared(size_t written) const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (i == written || !is_tensor(i) || !may_share_elements(tensor(i), tensor(written))) continue;
      const bool is_same = tensor(i).is_same(tensor(written));
      fail(
          "Encountered {} inputs that are mutated in the graph: {} is written to, and {} {}. Clone one of "
          "them, "
          "or let the program make the view itself",
          is_same ? "duplicated" : "aliased", names_[written], names_[i],
          is_same ? "is the same tensor" : "shares its memory");
    }
  }

  const ValueList& inputs_;
  std::vector<std::string> names_;
};

// --- the loss --------------------------------------------------------------------------------------------

// The graph output that gradients are of.
size_t loss_output(const CallDescription& description, size_t index) {
  require(index < description.outputs.size(),
          "aot_export_module: output_loss_index is {}, but the module gives {} values", index,
          description.outputs.size());
  const OutputOrigin& loss = description.outputs[index];
  require(loss.like.is_tensor(), "aot_export_module: output {}, the loss, is {} and no tensor", index,
          loss.like.kind_name());
  require(loss.requires_grad,
          "aot_export_module: output {}, the loss, does not require a gradient, so that there is nothing to "
          "differentiate",
          index);
  require(loss.like.tensor_ref().dim() == 0,
          "aot_export_module: output {}, the loss, must be a scalar, but is {}; take its sum or mean", index,
          describe(loss.like.tensor_ref()));
  for (size_t i = 0; i < description.outputs.size(); ++i)
    require(
        i == index || !description.outputs[i].requires_grad,
        "Found an output of the forward that requires gradients, that was not the scalar loss: output {}. "
        "Gradients are those of output {} alone: detach() the others",
        i, index);
  return description.written_back.size() + index;
}

// --- modules ---------------------------------------------------------------------------------------------

// A module as a function of its parameters, its buffers and the leaves of its arguments.
class ExportedModule {
 public:
  ExportedModule(const nn::Module& module, const ValueFunction& forward, const ValueList& args)
      : module_(module),
        forward_(forward),
        parameters_(module.named_parameters()),
        buffers_(module.named_buffers()) {
    FlatTree flat = tree_flatten(Value::tuple(args));
    arguments_ = flat.spec;
    leaves_ = std::move(flat.leaves);
  }

  size_t num_state() const { return parameters_.size() + buffers_.size(); }
  const ValueList& leaves() const { return leaves_; }
  const TreeSpec& arguments() const { return arguments_; }
  const nn::NamedTensors& parameters() const { return parameters_; }
  const nn::NamedTensors& buffers() const { return buffers_; }
  const std::string& state_name(size_t i) const {
    return i < parameters_.size() ? parameters_[i].first : buffers_[i - parameters_.size()].first;
  }

  // The state with sizes that are numbers.
  ValueList fakes(const FakeMode& fake) const {
    ValueList all;
    for (const nn::NamedTensors* state : {&parameters_, &buffers_})
      for (const auto& [name, tensor] : *state)
        all.emplace_back(
            is_fake(tensor) ? tensor : fake.fake_of(tensor, FakeRequest::fixed(tensor.dim()).without_base()));
    for (Value& leaf : fakes_of(leaves_, fake, num_state())) all.push_back(std::move(leaf));
    return all;
  }

  std::vector<std::string> input_names() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < num_state() + leaves_.size(); ++i)
      names.push_back(i < num_state() ? fmt::format("'arg{}_1' ('{}')", i, state_name(i))
                                      : fmt::format("'arg{}_1'", i));
    return names;
  }

  ValueFunction function() const {
    return [this](Args given) {
      nn::NamedTensors state;
      for (size_t i = 0; i < num_state(); ++i) state.emplace_back(state_name(i), given[i].to_tensor());
      nn::Substitution substitution(module_, state);
      return forward_(tree_unflatten(given.subspan(num_state()), arguments_).elements());
    };
  }

 private:
  const nn::Module& module_;
  const ValueFunction& forward_;
  nn::NamedTensors parameters_, buffers_;
  TreeSpec arguments_;
  ValueList leaves_;
};

std::string name_of(const Value& output) {
  const Node* node = node_in(output);
  return node ? std::string(node->name()) : output.to_string();
}

// Reads off the graph which node is what.
GraphSignature signature_of(const ExportedModule& exported, const CallDescription& description,
                            const GraphModule& graph, const ValueList& inputs) {
  GraphSignature signature;
  signature.arguments = exported.arguments();
  signature.result = description.result;
  const std::vector<Node*> placeholders = graph.graph().placeholders();
  const ValueList& outputs = graph.graph().output_node()->returned().elements();
  const size_t num_parameters = exported.parameters().size();
  for (const auto& [name, tensor] : exported.parameters()) signature.parameters.push_back(name);
  for (const auto& [name, tensor] : exported.buffers()) signature.buffers.push_back(name);
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const std::string node(placeholders[i]->name());
    if (i >= exported.num_state()) signature.user_inputs.push_back(node);
    else
      (i < num_parameters ? signature.inputs_to_parameters : signature.inputs_to_buffers)
          .emplace_back(node, exported.state_name(i));
  }
  size_t next = 0;
  for (size_t input : description.written_back) {
    const std::string node = name_of(outputs[next++]);
    if (input >= exported.num_state())
      signature.user_inputs_to_mutate.emplace_back(node, placeholders[input]->name());
    else
      (input < num_parameters ? signature.parameters_to_mutate : signature.buffers_to_mutate)
          .emplace_back(node, exported.state_name(input));
  }
  for (size_t i = 0; i < description.outputs.size(); ++i)
    signature.user_outputs.push_back(name_of(outputs[next++]));
  if (next == outputs.size()) return signature;
  signature.backward.emplace();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!requires_grad(inputs[i])) continue;
    const std::string node = name_of(outputs[next++]);
    if (i < num_parameters)
      signature.backward->gradients_to_parameters.emplace_back(node, exported.state_name(i));
    else signature.backward->gradients_to_user_inputs.emplace_back(node, placeholders[i]->name());
  }
  return signature;
}

// The graph has an output for each gradient: a parameter that takes no part has none.
void require_gradients(const ValueList& inputs, const std::vector<std::string>& names, size_t found) {
  std::vector<std::string> wanted_names;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (requires_grad(inputs[i])) wanted_names.push_back(names[i]);
  const size_t wanted = wanted_names.size();
  require(found == wanted,
          "Found a parameter that did not receive a gradient: the loss depends on {} of the {} inputs that "
          "require one ({}). Freeze the others, or leave them out",
          found, wanted, fmt::join(wanted_names, ", "));
}

}  // namespace

AotExport aot_export_module(const nn::Module& module, const ValueFunction& forward, const ValueList& args,
                            const AotExportOptions& options) {
  require(
      !options.trace_joint || !options.pre_dispatch,
      "aot_export_module: a graph with gradients (trace_joint) is recorded below autograd, and pre_dispatch "
      "above it; ask for one of them");
  require(options.trace_joint == options.output_loss_index.has_value(),
          "aot_export_module: trace_joint and output_loss_index belong together: gradients are those of one "
          "output");
  CompileScope scope;
  // Switches of the grad mode are a part of what is recorded above autograd; below, nothing follows from it.
  std::optional<GradModeScope> recording;
  if (!options.pre_dispatch) recording.emplace(options.trace_joint);
  const std::unique_ptr<FakeMode> fake = fake_mode(options.dynamic);
  const ExportedModule exported(module, forward, args);
  const ValueFunction function = exported.function();
  const ValueList inputs = exported.fakes(*fake);
  const ExportedInputs checked(inputs, exported.input_names());
  checked.refuse_extensions();
  CallDescription description = describe_call(function, inputs, {});
  checked.check(description, /*may_write=*/true, options.trace_joint);
  forget_aliases(description);
  TraceOptions trace{.decompositions = options.decompositions, .pre_dispatch = options.pre_dispatch};
  if (options.trace_joint) trace.loss = loss_output(description, *options.output_loss_index);
  TracedCall traced = options.trace_joint ? trace_joint(function, inputs, description, trace)
                                          : trace_inference(function, inputs, description, trace);
  AotExport result{std::move(traced.module), {}};
  if (trace.loss) {
    const ValueList& outputs = result.module.graph().output_node()->returned().elements();
    require_gradients(inputs, exported.input_names(), outputs.size() - description.num_graph_outputs());
  }
  result.signature = signature_of(exported, description, result.module, inputs);
  // PyTorch counts among all outputs of the graph here, written buffers included.
  if (result.signature.backward)
    result.signature.backward->loss_output =
        name_of(result.module.graph().output_node()->returned().elements()[*options.output_loss_index]);
  return result;
}

GraphModule aot_export_joint_simple(const ValueFunction& f, const ValueList& args,
                                    const AotExportJointOptions& options) {
  for (size_t i = 0; i < args.size(); ++i)
    require(!args[i].is_sequence() && args[i].kind() != Value::Kind::kDict,
            "aot_export_joint_simple requires individual inputs not to be pytrees, but argument {} is {}; "
            "flatten "
            "it, or use aot_export_module",
            i, args[i].kind_name());
  CompileScope scope;
  GradModeScope recording(options.trace_joint);
  const std::unique_ptr<FakeMode> fake = fake_mode(/*dynamic=*/false);
  const ValueList inputs = fakes_of(args, *fake);
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) names.push_back(fmt::format("argument {}", i));
  const ExportedInputs checked(inputs, std::move(names));
  checked.refuse_extensions();
  const ValueFunction leaves = [&](Args given) {
    FlatTree result = tree_flatten(f(given));
    require(
        std::ranges::all_of(result.spec.children(), &TreeSpec::is_leaf),
        "aot_export_joint_simple requires individual outputs not to be pytrees, but the function gives {}; "
        "return one list of tensors, or use aot_export_module",
        result.spec.to_string());
    return Value::list(std::move(result.leaves));
  };
  CallDescription description = describe_call(leaves, inputs, {});
  checked.check(description, /*may_write=*/false, options.trace_joint);
  forget_aliases(description);
  const TraceOptions trace{.decompositions = options.decompositions};
  if (!options.trace_joint) return trace_inference(leaves, inputs, description, trace).module;
  require(description.needs_backward,
          "aot_export_joint_simple: no output requires a gradient, so that there is no joint graph; let an "
          "argument require one, or ask for trace_joint = false");
  return trace_joint(leaves, inputs, description, trace).module;
}

// --- text ------------------------------------------------------------------------------------------------

namespace {

std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", name);
  return "[" + text + "]";
}
std::string quoted(const GraphSignature::Names& names) {
  std::string text;
  for (const auto& [node, name] : names)
    text += fmt::format("{}'{}': '{}'", text.empty() ? "" : ", ", node, name);
  return "{" + text + "}";
}

}  // namespace

std::string GraphSignature::to_string() const {
  std::string text = fmt::format(
      "GraphSignature(parameters={}, buffers={}, user_inputs={}, user_outputs={}, inputs_to_parameters={}, "
      "inputs_to_buffers={}, parameters_to_mutate={}, buffers_to_mutate={}, user_inputs_to_mutate={}",
      quoted(parameters), quoted(buffers), quoted(user_inputs), quoted(user_outputs),
      quoted(inputs_to_parameters), quoted(inputs_to_buffers), quoted(parameters_to_mutate),
      quoted(buffers_to_mutate), quoted(user_inputs_to_mutate));
  if (!backward) return text + ", backward_signature=None)";
  return text + fmt::format(
                    ", backward_signature=BackwardSignature(gradients_to_parameters={}, "
                    "gradients_to_user_inputs={}, loss_output='{}'))",
                    quoted(backward->gradients_to_parameters), quoted(backward->gradients_to_user_inputs),
                    backward->loss_output);
}

}  // namespace weft
