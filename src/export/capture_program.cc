#include "export/capture_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "aot/layer_scopes.h"
#include "capture/graph_recorder.h"
#include "export/branch_operands.h"
#include "export/constraint_report.h"
#include "export/dead_code.h"
#include "export/declared_sizes.h"
#include "export/grad_mode_regions.h"
#include "export/input_names.h"
#include "export/lift_constants.h"
#include "export/module_state.h"
#include "export/size_solver.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/is_compiling.h"
#include "weft/nn/functional_call.h"
#include "weft/ops/fake.h"
#include "weft/passes/insert_runtime_assertions.h"
#include "weft/sym/text.h"

namespace weft {
namespace {

// How forward calls its arguments; of a graph, how its call or its placeholders do.
std::vector<std::string> declared_names(const Ref<Callable>& forward) {
  std::vector<std::string> names;
  if (const std::optional<GraphModule> graph = graph_module_in(Value(Ref<ValueObject>(forward)))) {
    if (graph->call_spec()) return graph->call_spec()->argument_names;
    for (const Node* placeholder : graph->graph().placeholders()) names.push_back(placeholder->name());
  } else if (const ArgumentNames* declared = forward->argument_names()) {
    for (const ArgumentNames::Entry& entry : declared->entries()) names.push_back(entry.name);
  }
  return names;
}

// The arguments of the call in one order: those by position, then those by name as forward declares them.
struct BoundCall {
  std::vector<std::string> names;
  ValueList values;
  size_t num_positional = 0;

  BoundCall(const std::vector<std::string>& declared, const ValueList& args, const Kwargs& kwargs)
      : values(args), num_positional(args.size()) {
    const auto rest = std::ranges::find_if(
        declared, [](const std::string& name) { return name.starts_with('*') && !name.starts_with("**"); });
    const auto num_single = static_cast<size_t>(rest - declared.begin());
    for (size_t i = 0; i < args.size(); ++i) {
      if (i < num_single) names.push_back(declared[i]);
      else if (rest == declared.end()) names.push_back(fmt::format("arg{}", i));
      else names.push_back(fmt::format("{}_{}", rest->substr(1), i - num_single));
    }
    Kwargs left = kwargs;
    auto take = [&](size_t i) {
      names.push_back(left[i].first);
      values.push_back(left[i].second);
      left.erase(left.begin() + static_cast<ptrdiff_t>(i));
    };
    for (const std::string& name : declared)
      for (size_t i = 0; i < left.size(); ++i)
        if (left[i].first == name) {
          take(i);
          break;
        }
    while (!left.empty()) take(0);
  }

  ValueList positional(const ValueList& all) const {
    return {all.begin(), all.begin() + static_cast<ptrdiff_t>(num_positional)};
  }
  Kwargs named(const ValueList& all) const {
    Kwargs kwargs;
    for (size_t i = num_positional; i < all.size(); ++i) kwargs.emplace_back(names[i], all[i]);
    return kwargs;
  }
  Value as_pair(const ValueList& all) const {
    Dict by_name;
    for (size_t i = num_positional; i < all.size(); ++i) by_name.set(names[i], all[i]);
    return Value::tuple({Value::tuple(positional(all)), Value(by_name)});
  }
};

std::vector<sym::Source> sources_of(const BoundCall& call) {
  std::vector<sym::Source> sources;
  for (size_t i = 0; i < call.values.size(); ++i)
    for (const PathLeaf& leaf : tree_flatten_with_path(call.values[i])) {
      sym::Source source = sym::Source::argument(call.names[i]);
      for (const PathKey& key : leaf.path) source = source.step(to_string(KeyPath{key}));
      sources.push_back(std::move(source));
    }
  return sources;
}

// The environment that example inputs without data live in; null where all have data.
Ref<ShapeEnv> environment_of(const ValueList& leaves) {
  for (const Value& leaf : leaves) {
    if (!leaf.is_tensor() || !leaf.tensor_ref().defined()) continue;
    for (const SymInt& size : leaf.tensor_ref().impl()->sizes())
      if (size.is_symbolic() && size.env()) return Ref<ShapeEnv>(size.env());
  }
  return nullptr;
}

class Capture {
 public:
  Capture(const detail::ModuleToExport& module, const ValueList& args, const ExportOptions& options,
          const ExportConfig& config)
      : module_(module),
        config_(config),
        call_(declared_names(module.forward), args, options.kwargs),
        leaves_(tree_leaves(Value::tuple(call_.values))),
        sources_(sources_of(call_)),
        tensors_(module.module),
        names_(call_.names, call_.values) {
    env_ = environment_of(leaves_);
    if (!env_ && outer_) env_ = outer_->options().shape_env;
    const bool is_shared = static_cast<bool>(env_);
    if (!env_) env_ = ShapeEnv::create({.duck_shape = false});
    if (outer_ && outer_->options().shape_env == env_) fake_.emplace(outer_->converter(), true);
    else fake_.emplace(FakeOptions{.shape_env = env_, .allow_real_inputs = true});
    if (!is_shared &&
        (config.allow_complex_guards_as_runtime_asserts || config.disable_forced_specializations))
      env_->defer_guards([](const sym::Expr* condition) { return !is_expressible(condition); });
    declared_.emplace(*env_, leaf_shapes(options.dynamic_shapes, call_.names, call_.values), leaves_,
                      sources_);
  }

  ExportedProgram run() {
    const MakeGraphOptions recording_options{.mode = CaptureMode::kSymbolic,
                                             .pre_dispatch = true,
                                             .record_stack_traces = true,
                                             .allow_real_inputs = true,
                                             .shape_env = env_};
    GraphRecorder recorder(recording_options, &module_.module);
    recorder.note_size_values();
    add_state(recorder);
    add_leaves(recorder);
    Value result;
    {
      const detail::CompilingScope compiling;
      const nn::Substitution state(module_.module, substitutes_);
      GraphRecorder::Scope recording(recorder);
      ValueList given = given_arguments();
      result = call(given);
    }
    FlatTree flat = tree_flatten(result);
    check_outputs(flat.leaves, result);
    recorder.graph().output(recorder.as_nodes(Value::tuple(flat.leaves)));
    parts_.graph_module = recorder.finish(/*keep_dead_code=*/true);
    remove_dead_code(parts_.graph_module, *env_);
    if (!config_.allow_rnn) refuse_recurrent_layers();
    check_declared_sizes(*env_, *declared_);
    lift_constants();
    if (!config_.do_not_emit_runtime_asserts)
      insert_runtime_assertions(parts_.graph_module, *env_, Bounds::kConstraints);
    arrange_branches(parts_.graph_module, parts_.inputs.size() - leaves_.size());
    fold_grad_mode_regions(parts_.graph_module, is_grad_enabled());
    return finish(flat.spec);
  }

 private:
  Value call(const ValueList& given) const {
    if (call_.num_positional == given.size()) return module_.forward->call(given);
    return module_.forward->call(call_.positional(given), call_.named(given));
  }

  // --- inputs

  void add_state(GraphRecorder& recorder) {
    auto add = [&](const ModuleTensors::Entry& entry, InputSpec::Kind kind, std::string_view prefix) {
      const Tensor fake =
          is_fake(entry.tensor)
              ? entry.tensor
              : fake_->fake_of(entry.tensor, FakeRequest::fixed(entry.tensor.dim()).without_base());
      substitutes_.emplace_back(entry.name, fake);
      recorder.add_input(names_.of_state(prefix, entry.name), fake);
      parts_.inputs.push_back({.kind = kind, .target = entry.name, .persistent = entry.persistent});
    };
    for (const auto& entry : tensors_.parameters) add(entry, InputSpec::Kind::kParameter, "p_");
    for (const auto& entry : tensors_.buffers) add(entry, InputSpec::Kind::kBuffer, "b_");
  }

  void add_leaves(GraphRecorder& recorder) {
    std::unordered_set<uint64_t> seen;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const Value& leaf = leaves_[i];
      recorder.note_given(leaf);
      Value given = leaf;
      if (leaf.is_tensor() && leaf.tensor_ref().defined()) {
        const Tensor& tensor = leaf.tensor_ref();
        Tensor own = is_fake(tensor) ? tensor : fake_->fake_of(tensor, declared_->request(i));
        // One tensor that is given twice is two inputs.
        if (!seen.insert(own.impl()->serial()).second)
          own = fake_->converter()->convert_again(tensor, declared_->request(i));
        given = own;
      } else if (leaf.kind() == Value::Kind::kInt) {
        given = declared_->number(i);
      }
      const bool is_constant = !given.is_tensor() && given.kind() != Value::Kind::kSymInt;
      parts_.inputs.push_back(
          {.kind = is_constant ? InputSpec::Kind::kConstantInput : InputSpec::Kind::kUserInput,
           .constant = is_constant ? given : Value()});
      recorder.add_input(names_.of_leaves()[i], given);
      given_.push_back(std::move(given));
    }
  }

  ValueList given_arguments() const {
    return tree_unflatten(given_, tree_structure(Value::tuple(call_.values))).elements();
  }

  static void check_outputs(const ValueList& leaves, const Value& result) {
    for (const PathLeaf& leaf : tree_flatten_with_path(result))
      require(
          !leaf.value.is_object(),
          "export: a program gives tensors, numbers, strings, None and containers of them, but the result{} "
          "is {}",
          leaf.path.empty() ? "" : " at " + to_string(leaf.path), leaf.value.kind_name());
    (void)leaves;
  }

  void refuse_recurrent_layers() const {
    for (const Node& node : parts_.graph_module.graph())
      if (const Operator* op = node.target().op(); op && op->has(Traits::kRecurrent))
        unsupported(
            "export: '{}' is a recurrent layer, and ExportConfig::allow_rnn is false (TorchDynamo purposely "
            "graph "
            "breaks on RNN, GRU, LSTMs); set it to true to export such layers",
            node.name());
  }

  // What the graph reads besides becomes an input.
  void lift_constants() {
    nn::NamedTensors named;
    for (const auto& entry : tensors_.constants) named.emplace_back(entry.name, entry.tensor);
    ConstantLifter lifter(named, tensors_.all_other);
    const size_t num_state = substitutes_.size();
    const std::vector<InputSpec> specs = lifter.lift(parts_.graph_module, num_state);
    parts_.inputs.insert(parts_.inputs.begin() + static_cast<ptrdiff_t>(num_state), specs.begin(),
                         specs.end());
    parts_.constants = lifter.literals();
  }

  // --- the program

  ExportedProgram finish(const TreeSpec& result) {
    parts_.state = tensors_.state;
    parts_.constants.insert(parts_.constants.begin(), tensors_.all_other.begin(), tensors_.all_other.end());
    parts_.outputs.resize(result.num_leaves());
    parts_.call.arguments = tree_structure(call_.as_pair(call_.values));
    parts_.call.result = result;
    parts_.call.names = call_.names;
    parts_.example_inputs = call_.as_pair(call_.values);
    parts_.is_training_dialect = true;
    if (!env_->symbols().empty()) parts_.shape_env = env_;
    add_ranges();
    add_guards();
    return ExportedProgram::make(std::move(parts_));
  }

  // Every size that varies, by itself and as what it follows from; every value that data tell.
  void add_ranges() {
    std::unordered_set<const sym::Expr*> seen;
    auto add = [&](const sym::Expr* expr, sym::ValueRange range) {
      if (!expr->is_constant() && seen.insert(expr).second) parts_.ranges.push_back({expr, range});
    };
    for (const DeclaredSizes::Root& root : declared_->roots()) add(root.symbol, root.dim.range());
    for (const DeclaredSizes::Use& use : declared_->uses()) {
      if (!use.size.is_symbolic()) continue;
      if (use.spec.dim()) add(use.size.expr(), use.spec.dim()->range());
      else add(use.size.expr(), env_->range(use.size.expr()));
    }
    for (const sym::Symbol& symbol : env_->symbols())
      if (symbol.backing == sym::Backing::kUnbacked && symbol.type == sym::Type::kInt)
        add(symbol.expr, symbol.range);
  }

  // What a declaration says is checked as such; what was found out of sizes with hints is a guard.
  void add_guards() {
    for (const sym::Guard& guard : env_->guards()) {
      const auto symbols = env_->free_symbols(guard.condition);
      const bool is_found = std::ranges::any_of(
          symbols, [&](const sym::Symbol* symbol) { return declared_->hinted(symbol->expr) != nullptr; });
      if (is_found) parts_.guards.push_back(sym::source_text(guard.condition));
    }
  }

  const detail::ModuleToExport& module_;
  const ExportConfig& config_;
  BoundCall call_;
  ValueList leaves_;
  std::vector<sym::Source> sources_;
  ModuleTensors tensors_;
  InputNames names_;
  Ref<ShapeEnv> env_;
  const FakeMode* const outer_ = FakeMode::current();
  // Before the mode, which is active in it.
  aot::CompileScope scope_;
  std::optional<FakeMode> fake_;
  std::optional<DeclaredSizes> declared_;
  nn::NamedTensors substitutes_;  // by the names of the state
  ValueList given_;               // for each leaf of the arguments
  ExportedProgram::Parts parts_;
};

}  // namespace

ExportedProgram capture_program(const detail::ModuleToExport& module, const ValueList& args,
                                const ExportOptions& options, const ExportConfig& config) {
  return Capture(module, args, options, config).run();
}

}  // namespace weft
