#include "export/retrace.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "aot/describe.h"
#include "aot/layer_scopes.h"
#include "aot/trace_call.h"
#include "dispatch/kept_composites.h"
#include "export/branch_operands.h"
#include "export/dead_code.h"
#include "export/grad_mode_regions.h"
#include "export/lift_constants.h"
#include "export/noted_numbers.h"
#include "export/preserved_composites.h"
#include "export/vmap_regions.h"
#include "weft/aot/aot_function.h"
#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/export/export_program.h"
#include "weft/func/functionalize.h"
#include "weft/graph/interpreter.h"
#include "weft/ops/fake.h"
#include "weft/ops/functions.h"
#include "weft/passes/insert_runtime_assertions.h"

namespace weft {
namespace {

// The program's graph, its regions of vmap as calls that can run.
GraphModule runnable(const ExportedProgram& program) {
  Graph graph = program.graph().copy();
  const std::vector<std::pair<std::string, GraphModule>> bodies = fold_vmap_regions(graph);
  if (bodies.empty()) return program.graph_module();
  GraphModule::Attributes attributes;
  for (const auto& [path, body] : bodies)
    attributes.emplace_back(path, Value(Ref<ValueObject>(body.callable())));
  for (const Node& node : graph) {
    if (node.kind() != NodeKind::kGetAttr) continue;
    const std::string path = node.target().to_string();
    if (std::optional<Value> value = program.graph_module().try_find(path))
      attributes.emplace_back(path, *value);
  }
  return GraphModule(attributes, std::move(graph));
}

// Runs the program's graph; values that come from data are the symbols that its nodes note.
class Rerun : public Interpreter {
 public:
  Rerun(const ExportedProgram& program, const GraphModule& module, ShapeEnv& env)
      : Interpreter(module), program_(program), module_(module), env_(env) {}

  Value run_node(Node& node) override {
    std::vector<const sym::Expr*> fresh;
    note_fresh(module_, node, fresh);
    env_.reuse_unbacked(std::move(fresh));
    Value result = Interpreter::run_node(node);
    env_.reuse_unbacked({});
    return result;
  }

  // Whether a conversion copies depends on where and of what type its argument is, which may differ where the
  // program runs. So it is a copy always, and nobody may write to one that was none.
  Value call_function(const Target& target, Args args, const Kwargs& kwargs) override {
    const Operator* op = target.op();
    if (!op || args.empty() || !args[0].is_tensor()) return Interpreter::call_function(target, args, kwargs);
    // What is in the program already needs no way in.
    if (op->has(Traits::kLifts) && !is_constant(current().args()[0])) return clone(args[0].to_tensor());
    Value result = Interpreter::call_function(target, args, kwargs);
    const std::optional<size_t> copies = op->schema().argument_index("copy");
    if (!copies || !op->has(Traits::kMayAlias) || !result.is_tensor() ||
        !result.tensor_ref().is_same(args[0].tensor_ref()))
      return result;
    result = copied(target, args, kwargs, *copies);
    if (func::is_functional(result.tensor_ref())) func::freeze_functional(result.tensor_ref());
    return result;
  }

 private:
  // Values that this call is the first to read from data, those of the graphs that it runs included.
  void note_fresh(const GraphModule& module, const Node& node, std::vector<const sym::Expr*>& fresh) {
    if (node.kind() == NodeKind::kOutput) return;
    for (const Node* input : node.inputs()) {
      if (input->kind() != NodeKind::kGetAttr) continue;
      const std::optional<GraphModule> inner = graph_module_in(module.find(input->target().to_string()));
      if (!inner) continue;
      for (const Node& each : inner->graph()) note_fresh(*inner, each, fresh);
    }
    const NodeMeta* noted = node.meta_or_null();
    if (!noted) return;
    for_each_number(noted->value, [&](const sym::Expr* expr) {
      for (const sym::Symbol* symbol : env_.free_symbols(expr))
        if (seen_.insert(symbol->expr).second && symbol->backing == sym::Backing::kUnbacked)
          fresh.push_back(symbol->expr);
    });
  }

  // Whether it is one of the program's constants: an input of the program, or an attribute.
  bool is_constant(const Value& value) const {
    const Node* node = node_in(value);
    if (!node || node->kind() == NodeKind::kGetAttr) return true;
    const std::vector<Node*> placeholders = module_.graph().placeholders();
    const auto at = std::ranges::find(placeholders, node);
    return at != placeholders.end() &&
           program_.inputs()[static_cast<size_t>(at - placeholders.begin())].kind ==
               InputSpec::Kind::kTensorConstant;
  }

  Value copied(const Target& target, Args args, Kwargs kwargs, size_t copies) {
    ValueList given(args.begin(), args.end());
    std::erase_if(kwargs, [](const auto& entry) { return entry.first == "copy"; });
    if (copies < given.size()) given[copies] = true;
    else kwargs.emplace_back("copy", true);
    return Interpreter::call_function(target, given, kwargs);
  }

  const ExportedProgram& program_;
  const GraphModule& module_;
  ShapeEnv& env_;
  std::unordered_set<const sym::Expr*> seen_;
};

class Retrace {
 public:
  Retrace(const ExportedProgram& program, const RetraceOptions& options)
      : program_(program),
        options_(options),
        preserved_(preserved_composites(options.preserved)),
        env_(program.shape_env() ? program.shape_env() : ShapeEnv::create({.duck_shape = false})) {}

  ExportedProgram run() {
    aot::CompileScope scope;
    const KeptCompositesScope kept(preserved_);
    std::optional<GradModeScope> recording;
    if (!options_.pre_dispatch) recording.emplace(false);
    const FakeMode fake(FakeOptions{.shape_env = env_, .allow_real_inputs = true});
    // A question that only decompositions ask was answered by the example: whether it holds is checked when
    // the program runs.
    env_->defer_guards([](const sym::Expr*) { return true; });
    const ValueList inputs = fresh_inputs(fake);
    const GraphModule module = runnable(program_);
    auto f = [&](Args given) { return Rerun(program_, module, *env_).run(given); };
    aot::CallDescription description = aot::describe_call(f, inputs, {});
    check(description);
    aot::forget_aliases(description);
    for (const Node* placeholder : program_.graph().placeholders()) names_.push_back(placeholder->name());
    aot::TraceOptions trace{.decompositions = options_.decompositions, .pre_dispatch = options_.pre_dispatch};
    trace.input_names = names_;
    trace.keep_dead_code = true;
    aot::TracedCall traced = aot::trace_inference(f, inputs, description, trace);
    env_->defer_guards(nullptr);
    remove_dead_code(traced.module, *env_);
    return finish(std::move(traced.module), description);
  }

 private:
  // Tensors like those that the graph's placeholders note, each of its own.
  ValueList fresh_inputs(const FakeMode& fake) const {
    ValueList inputs;
    const std::vector<Node*> placeholders = program_.graph().placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i) {
      const InputSpec& spec = program_.inputs()[i];
      using Kind = InputSpec::Kind;
      if (spec.kind == Kind::kConstantInput) {
        inputs.push_back(spec.constant);
        continue;
      }
      if (spec.kind == Kind::kToken || spec.kind == Kind::kCustomObject)
        unsupported("run_decompositions: '{}' is {} '{}', and such inputs are not decomposed",
                    placeholders[i]->name(), kind_name(spec.kind), spec.target);
      if (spec.kind != Kind::kUserInput) {
        const Tensor& tensor = program_.tensor(spec.target);
        inputs.emplace_back(fake.fake_of(tensor, FakeRequest::fixed(tensor.dim()).without_base()));
        continue;
      }
      const NodeMeta* noted = placeholders[i]->meta_or_null();
      require(
          noted != nullptr && !noted->value.is_none(),
          "run_decompositions: nothing is noted of the input '{}'; a program's placeholders note what they "
          "take",
          placeholders[i]->name());
      Value input = noted->value;
      if (input.is_tensor()) {
        Tensor own = shape_only(input.tensor_ref());
        if (input.tensor_ref().requires_grad()) own.set_requires_grad();
        input = own;
      }
      inputs.push_back(std::move(input));
    }
    return inputs;
  }

  void check(const aot::CallDescription& description) const {
    for (size_t i = 0; i < description.inputs.size(); ++i)
      require(!description.inputs[i].changes_metadata && !description.inputs[i].resizes_storage,
              "the program changes sizes, strides or memory of its input '{}', and a functional graph gives "
              "values only; let it change a clone",
              program_.graph().placeholders()[i]->name());
  }

  ExportedProgram finish(GraphModule module, const aot::CallDescription& description) {
    keep_notes(module.graph());
    ExportedProgram::Parts parts = program_.parts();
    ConstantLifter lifter({}, parts.constants);
    const size_t num_state =
        static_cast<size_t>(std::ranges::find_if(parts.inputs, is_users) - parts.inputs.begin());
    // Lifted ones stand behind the state; the names of written inputs were noted before.
    const std::vector<InputSpec> lifted = lifter.lift(module, num_state);
    parts.constants.insert(parts.constants.end(), lifter.literals().begin(), lifter.literals().end());
    std::vector<OutputSpec> outputs;
    for (const size_t input : description.written_back) outputs.push_back(written(input));
    outputs.insert(outputs.end(), parts.outputs.begin(), parts.outputs.end());
    parts.outputs = std::move(outputs);
    parts.inputs.insert(parts.inputs.begin() + static_cast<ptrdiff_t>(num_state), lifted.begin(),
                        lifted.end());
    if (options_.emit_runtime_asserts) insert_runtime_assertions(module, *env_, Bounds::kConstraints);
    arrange_branches(module, num_state + lifted.size());
    fold_grad_mode_regions(module, is_grad_enabled());
    parts.graph_module = std::move(module);
    if (!env_->symbols().empty()) parts.shape_env = env_;
    parts.is_training_dialect = false;
    return ExportedProgram::make(std::move(parts));
  }
  // What is known of an input beyond what it runs as: whether it wants a gradient, say.
  void keep_notes(Graph& graph) const {
    const std::vector<Node*> before = program_.graph().placeholders(), now = graph.placeholders();
    for (size_t i = 0; i < before.size(); ++i) {
      const NodeMeta* noted = before[i]->meta_or_null();
      if (!noted) continue;
      now[i]->meta().value = noted->value;
      now[i]->meta().extra = noted->extra;
    }
  }
  static bool is_users(const InputSpec& spec) {
    return spec.kind == InputSpec::Kind::kUserInput || spec.kind == InputSpec::Kind::kConstantInput;
  }

  OutputSpec written(size_t input) const {
    const InputSpec& spec = program_.inputs()[input];
    switch (spec.kind) {
      case InputSpec::Kind::kParameter:
        return {OutputSpec::Kind::kParameterMutation, spec.target};
      case InputSpec::Kind::kBuffer:
        return {OutputSpec::Kind::kBufferMutation, spec.target};
      case InputSpec::Kind::kUserInput:
        return {OutputSpec::Kind::kUserInputMutation, names_[input]};
      default:
        fail("the program writes to '{}', a constant; make it a buffer of the module", spec.target);
    }
  }

  const ExportedProgram& program_;
  const RetraceOptions& options_;
  std::unordered_set<const Operator*> preserved_;
  Ref<ShapeEnv> env_;
  std::vector<std::string> names_;
};

}  // namespace

ExportedProgram retraced(const ExportedProgram& program, const RetraceOptions& options) {
  return Retrace(program, options).run();
}

ExportedProgram ExportedProgram::run_decompositions() const {
  return run_decompositions(aot::core_decompositions());
}
ExportedProgram ExportedProgram::run_decompositions(const Decompositions& table,
                                                    const std::vector<std::string>& preserved) const {
  const bool emits = !ExportConfig::current().do_not_emit_runtime_asserts;
  return retraced(*this, {.decompositions = table, .preserved = preserved, .emit_runtime_asserts = emits});
}

}  // namespace weft
