#include "aot/compile_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "aot/describe.h"
#include "aot/input_steps.h"
#include "aot/trace_call.h"
#include "weft/autograd/grad_node.h"
#include "weft/base/error.h"
#include "weft/ops/fake.h"

namespace weft::aot {
namespace {

// What a compilation is made under: the caller's casts and grad mode, and nothing else that is active.
class CompileScope {
 public:
  CompileScope() {
    LayerState& state = layer_state();
    state.active &= layer::kAutocast;
    state.mask = layer::kAll | layer::kNotLayers;
    state.level_depth = 0;
  }

 private:
  LayerStateScope saved_;
};

bool is_real_tensor(const Value& value) {
  return value.is_tensor() && value.tensor_ref().defined() && !is_fake(value.tensor_ref());
}

// The leaves without data, with symbols for sizes and integers where there is an environment for them.
ValueList fakes_of(const ValueList& leaves, const FakeMode& fake) {
  ValueList fakes;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const std::string name = fmt::format("arg{}", i);
    if (is_real_tensor(leaves[i]))
      fakes.emplace_back(fake.fake_of(leaves[i].tensor_ref(), FakeRequest(name).without_base()));
    else if (leaves[i].kind() == Value::Kind::kInt && fake.options().shape_env)
      fakes.emplace_back(fake.options().shape_env->create_value(leaves[i].to_int(), sym::Source(name),
                                                                sym::DimPolicy::kDuck));
    else fakes.push_back(leaves[i]);
  }
  return fakes;
}

std::vector<CheckInputs::Given> given_inputs(const ValueList& examples, const ValueList& fakes,
                                             const CallDescription& description, bool drops_duplicates) {
  std::vector<CheckInputs::Given> all;
  std::map<const TensorImpl*, size_t> first;
  std::map<const Storage*, size_t> memories;
  for (size_t i = 0; i < fakes.size(); ++i) {
    CheckInputs::Given given{.like = noted_form(fakes[i]), .tree = ExtensionTree::of(fakes[i])};
    if (fakes[i].is_tensor()) {
      given.requires_grad = fakes[i].tensor_ref().requires_grad();
      given.is_written = description.inputs[i].is_written;
      given.memory = memories.try_emplace(examples[i].tensor_ref().storage().get(), i).first->second;
      const auto [known, is_new] = first.try_emplace(examples[i].tensor_ref().impl(), i);
      if (!is_new && drops_duplicates) given.duplicate_of = known->second;
    }
    all.push_back(std::move(given));
  }
  return all;
}

// Steps over symbols would give the geometry of this call to others.
void refuse_symbolic_geometry(const CallDescription& description) {
  for (size_t i = 0; i < description.inputs.size(); ++i)
    if (description.inputs[i].steps && has_symbols(*description.inputs[i].steps))
      unsupported("input {} gets sizes or strides that follow from symbolic ones; compile for static sizes",
                  i);
}

std::unique_ptr<FakeMode> fake_mode_for(const AotOptions& options) {
  FakeOptions fake{.allow_real_inputs = true};
  if (options.dynamic) fake.shape_env = ShapeEnv::create();
  return std::make_unique<FakeMode>(fake);
}

}  // namespace

CompiledCall::CompiledCall(const ValueFunction& f, const ValueList& examples, const AotOptions& options) {
  CompileScope scope;
  const std::unique_ptr<FakeMode> fake = fake_mode_for(options);
  const DescribeOptions describe{.keep_input_mutations = options.keep_inference_input_mutations};
  const std::string name = std::to_string(detail::next_graph_number());
  ValueFunction function = f;
  ValueList given = examples, inputs = fakes_of(given, *fake);
  CallDescription description = describe_call(function, inputs, describe);
  std::unique_ptr<DropDuplicates> duplicates = DropDuplicates::needed_for(given, description);
  refuse_symbolic_geometry(description);
  steps_.add(std::make_unique<CheckInputs>(
      name, given_inputs(given, inputs, description, duplicates != nullptr), is_grad_enabled()));
  if (duplicates) {
    function = duplicates->over_the_rest(std::move(function));
    given = duplicates->without_duplicates(given);
    inputs = duplicates->without_duplicates(inputs);
    description = describe_call(function, inputs, describe);
    steps_.add(std::move(duplicates));
  }
  if (std::unique_ptr<SyntheticBases> bases = SyntheticBases::needed_for(given, description)) {
    function = bases->over_bases(std::move(function), inputs);
    given = bases->with_bases(given);
    inputs = fakes_of(given, *fake);
    description = describe_call(function, inputs, describe);
    steps_.add(std::move(bases));
  }
  graphs_ = std::make_shared<CompiledGraphs>(std::move(description), name);
  add_output_steps();
  trace(function, inputs, options);
}

void CompiledCall::add_output_steps() {
  const CallDescription& description = graphs_->description();
  auto any_input = [&](auto member) {
    return std::ranges::any_of(description.written_back,
                               [&](size_t i) { return description.inputs[i].*member; });
  };
  steps_.add(std::make_unique<ChangeMetadata>(description));
  if (std::ranges::any_of(description.outputs, &OutputOrigin::is_regenerated))
    steps_.add(std::make_unique<RegenerateOutputs>(description));
  if (any_input(&InputUse::is_written)) steps_.add(std::make_unique<CopyBack>(description));
  steps_.add(std::make_unique<RunGraphs>(graphs_));
}

void CompiledCall::trace(const ValueFunction& f, const ValueList& inputs, const AotOptions& options) {
  const TraceOptions trace{.decompositions = options.decompositions};
  const CallDescription& description = graphs_->description();
  const Compiler forward = options.forward_compiler ? options.forward_compiler : nop;
  if (!description.needs_backward) {
    graphs_->set_inference(trace_inference(f, inputs, description, trace),
                           options.inference_compiler ? options.inference_compiler : forward);
    return;
  }
  graphs_->set_training(trace_joint(f, inputs, description, trace), options.partitioner, forward,
                        options.backward_compiler ? options.backward_compiler : forward);
}

Value CompiledCall::run(ValueList inputs) const {
  return tree_unflatten(steps_.run(std::move(inputs)), description().result);
}

}  // namespace weft::aot
