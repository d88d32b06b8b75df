#include "aot/compile_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "aot/compile_plan.h"
#include "aot/describe.h"
#include "aot/fake_inputs.h"
#include "aot/input_steps.h"
#include "weft/autograd/grad_node.h"
#include "weft/base/error.h"

namespace weft::aot {
namespace {

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

}  // namespace

namespace {

// Descriptions and graph of a call: found out by running it without data, or known from before.
class PlanMaker {
 public:
  PlanMaker(const AotOptions& options, const GraphModule* program, const ValueList& examples)
      : options_(options), program_(program) {
    if (!options.cache) return;
    try {
      require(
          program != nullptr,
          "the compile cache keeps captured graphs, but this program is C++ code; capture it first (compile, "
          "make_graph)");
      key_ = plan_key(*program, examples, options);
    } catch (const Error& error) {
      options.cache->count_bypass();
      if (options.strict_cache) throw;
      return;
    }
    known_ = options.cache->find(*key_);
  }

  // The next stage of the call, `function` over what `make_fakes` gives.
  template <typename MakeFakes>
  CompilePlan::Stage stage(const ValueFunction& function, MakeFakes make_fakes) {
    CompilePlan::Stage stage;
    if (known_) {
      stage = known_->stages.at(made_.stages.size());
      if (stage.fakes.empty()) stage.fakes = make_fakes();
    } else {
      stage.fakes = make_fakes();
      stage.description = describe_call(function, stage.fakes,
                                        {.keep_input_mutations = options_.keep_inference_input_mutations});
    }
    made_.stages.push_back(stage);
    return stage;
  }

  TracedCall traced(const ValueFunction& function, const CompilePlan::Stage& stage) {
    if (known_) return with_constants_of_program(known_->traced);
    const TraceOptions trace{.decompositions = options_.decompositions, .sparse_gradients = true};
    TracedCall traced = stage.description.needs_backward
                            ? trace_joint(function, stage.fakes, stage.description, trace)
                            : trace_inference(function, stage.fakes, stage.description, trace);
    if (key_) {
      made_.traced = traced;
      // A compiler may change the graph that it is given.
      made_.traced.module = GraphModule(traced.module, traced.module.graph().copy());
      note_constants();
      keep();
    }
    return traced;
  }

 private:
  void keep() {
    try {
      options_.cache->store(*key_, std::make_shared<const CompilePlan>(std::move(made_)));
    } catch (const UnsupportedError&) {
      options_.cache->count_bypass();
      if (options_.strict_cache) throw;
    }
  }
  void note_constants() {
    for (const auto& [path, tensor] : constants_of(made_.traced.module))
      for (const auto& [known, other] : constants_of(*program_))
        if (tensor.is_same(other)) made_.constants.emplace_back(path, known);
  }
  // Another program of the same content has constants of its own.
  TracedCall with_constants_of_program(TracedCall traced) const {
    GraphModule::Attributes attributes;
    for (const auto& [path, name] : known_->constants) attributes.emplace_back(path, program_->find(name));
    traced.module = GraphModule(traced.module, attributes, traced.module.graph().copy());
    return traced;
  }

  const AotOptions& options_;
  const GraphModule* program_;
  std::optional<std::string> key_;
  std::shared_ptr<const CompilePlan> known_;
  CompilePlan made_;
};

}  // namespace

CompiledCall::CompiledCall(const ValueFunction& f, const ValueList& examples, const AotOptions& options,
                           const GraphModule* program) {
  CompileScope scope;
  // It reads constants, which no fake mode would let it.
  PlanMaker plan(options, program, examples);
  const std::unique_ptr<FakeMode> fake = fake_mode(options.dynamic);
  const std::string name = std::to_string(detail::next_graph_number());
  ValueFunction function = f;
  ValueList given = examples;
  CompilePlan::Stage stage =
      plan.stage(function, [&] { return fakes_of(given, *fake, 0, options.num_params_buffers); });
  std::unique_ptr<DropDuplicates> duplicates = DropDuplicates::needed_for(given, stage.description);
  refuse_symbolic_geometry(stage.description);
  result_ = stage.description.result;
  steps_.add(std::make_unique<CheckInputs>(
      name, given_inputs(given, stage.fakes, stage.description, duplicates != nullptr), is_grad_enabled()));
  if (duplicates) {
    function = duplicates->over_the_rest(std::move(function));
    given = duplicates->without_duplicates(given);
    const ValueList rest = duplicates->without_duplicates(stage.fakes);
    stage = plan.stage(function, [&] { return rest; });
    steps_.add(std::move(duplicates));
  }
  if (std::unique_ptr<SyntheticBases> bases = SyntheticBases::needed_for(given, stage.description)) {
    function = bases->over_bases(std::move(function), given);
    given = bases->with_bases(given);
    stage = plan.stage(function, [&] { return fakes_of(given, *fake); });
    steps_.add(std::move(bases));
  }
  TracedCall traced = plan.traced(function, stage);
  graphs_ = std::make_shared<CompiledGraphs>(std::move(stage.description), name);
  add_output_steps();
  compile(std::move(traced), options);
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

void CompiledCall::compile(TracedCall traced, const AotOptions& options) {
  const Compiler forward = options.forward_compiler ? options.forward_compiler : nop;
  if (graphs_->description().needs_backward)
    graphs_->set_training(std::move(traced), options.partitioner, forward,
                          options.backward_compiler ? options.backward_compiler : forward);
  else
    graphs_->set_inference(std::move(traced),
                           options.inference_compiler ? options.inference_compiler : forward);
}

Value CompiledCall::run(Args inputs) const { return tree_unflatten(steps_.run(inputs), result_); }

}  // namespace weft::aot
