#include "capture/graph_recorder.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "capture/applied_in_graph.h"
#include "dispatch/rule_calls.h"
#include "graph/operator_call.h"
#include "weft/base/error.h"
#include "weft/func/functionalize.h"
#include "weft/ops/extension.h"
#include "weft/ops/fake.h"
#include "weft/ops/functions.h"

namespace weft {

GraphRecorder::GraphRecorder(const MakeGraphOptions& options, const nn::Module* root)
    : GraphWriter(root), options_(options) {
  if (root) paths_ = module_paths(*root->state(), "");
}

Value GraphRecorder::unknown_tensor(const Tensor& tensor) {
  if (const Extension* extension = extension_of(tensor); extension && is_made_of_nodes(tensor))
    fail(
        "make_graph: a {} that the captured function makes of its values cannot be a value of the graph; "
        "give its inner tensors instead ({})",
        extension->type_name(), fmt::join(extension->inner_names(), ", "));
  require(!is_fake(tensor),
          "Unexpected fake tensor: {} is a fake tensor that is no input of the captured function",
          describe(tensor));
  require(
      is_owned_by_root(tensor) || !given_.contains(tensor.storage().get()),
      "make_graph: {} is no input of the captured function, but looks at the memory of one: as a constant "
      "it would keep this run's values. Pass it as an argument, or make the view of the input inside of "
      "the function",
      describe(tensor));
  if (FakeMode::current()) {
    require(
        is_owned_by_root(tensor) || options_.allow_real_inputs,
        "make_graph: {} is a real tensor among fake ones: it is no input of the captured function. Please "
        "convert all Tensors to FakeTensors first: pass it as an argument, capture a module that owns it, or "
        "allow it with allow_real_inputs",
        describe(tensor));
  }
  return value_of(attribute_node(tensor));
}

void GraphRecorder::note_given(const Value& given) {
  if (given.is_tensor() && given.tensor_ref().storage()->has_memory())
    given_.emplace(given.tensor_ref().storage().get(), given.tensor_ref().storage());
}

namespace {

// What a functional tensor stands for, which is what is recorded.
const Tensor& value_below(const Tensor& tensor) {
  const Tensor* inner = func::is_functional(tensor) ? tensor.impl()->box->stands_for() : nullptr;
  return inner ? *inner : tensor;
}

}  // namespace

bool GraphRecorder::is_made_of_nodes(const Tensor& extension) const {
  const std::vector<Tensor> inner = extension_of(extension)->inner_tensors();
  return std::any_of(inner.begin(), inner.end(), [&](const Tensor& tensor) {
    if (!tensor.defined()) return false;
    return node_of(*value_below(tensor).impl()) || (extension_of(tensor) && is_made_of_nodes(tensor));
  });
}

// An input, a constant, or what came of them; not one that the program makes of recorded values.
bool GraphRecorder::takes_whole(const Tensor& extension) const {
  return node_of(*extension.impl()) || !is_made_of_nodes(extension);
}

Tensor GraphRecorder::literal(const Tensor& tensor) {
  const LayerState& state = layer_state();
  if (!(state.active & state.mask & layer_bit())) return tensor;
  attribute_node(tensor);
  const Tensor copy = lift_fresh_copy(tensor);
  // As torch.tensor does, which above autograd can be seen.
  return options_.pre_dispatch ? copy.detach() : copy;
}

void GraphRecorder::annotate(Node& node, const Value& result) {
  GraphWriter::annotate(node, result);
  // Mostly nothing is known but the modules.
  if (!Origin::current() && !options_.record_stack_traces) node.meta().modules = trail_->modules();
  else note_origin(node, origin_of_call(node));
  node.meta().original = original_;
  last_ = &node;
}

Origin GraphRecorder::origin_here() const {
  Origin here{.modules = trail_->modules()};
  const Origin* known = Origin::current();
  const bool has_location = known && (known->trace || !known->source.empty());
  if (options_.record_stack_traces && !has_location)
    here.trace = std::make_shared<const StackTrace>(StackTrace::capture());
  return here;
}

// As origin_here, and what the program called: its calls are numbered by name, also those in branches.
// PyTorch tells methods of tensors from functions; what has a `self` is both, and counts as a method.
Origin GraphRecorder::origin_of_call(const Node& node) {
  Origin here = origin_here();
  const Operator* op = node.target().op();
  const bool is_noted = Origin::current() && !Origin::current()->function.empty();
  if (!options_.record_stack_traces || is_noted || !op || op->def().higher_order) return here;
  const Schema& schema = op->schema();
  const bool is_method = !schema.arguments.empty() && schema.arguments[0].name == "self";
  here.function = fmt::format("{}_{};{}.{}", schema.name, ++(*calls_)[schema.name],
                              is_method ? "method_descriptor" : "builtin_function_or_method", schema.name);
  return here;
}

OriginRef GraphRecorder::origin_of_last_call() const {
  if (!last_) return nullptr;
  const NodeMeta& meta = *last_->meta_or_null();
  return std::make_unique<const Origin>(
      Origin{meta.trace, meta.source, meta.modules, {}, last_->name(), /*is_backward=*/true});
}

std::optional<Value> GraphRecorder::decomposed(const Operator& op, Args args) {
  if (options_.decompositions.empty()) return std::nullopt;
  auto found = options_.decompositions.find(&op);
  std::optional<CompleteCall> on_tensors;
  if (found == options_.decompositions.end()) {
    on_tensors = call_on_tensors(op, args);
    if (!on_tensors) return std::nullopt;
    found = options_.decompositions.find(on_tensors->op);
    if (found == options_.decompositions.end()) return std::nullopt;
    args = on_tensors->args;
  }
  if (!open_.insert(found->first).second) return std::nullopt;
  struct Close {
    GraphRecorder& recorder;
    const Operator* op;
    const Operator* original;
    ~Close() {
      recorder.open_.erase(op);
      recorder.original_ = original;
    }
  } close{*this, found->first, original_};
  if (!original_) original_ = found->first;
  MaskScope here(layer::at_and_below(layer_bit()));
  const dispatch::RuleCalls of_program(false);
  return found->second(args);
}

Value GraphRecorder::handle(const Operator& op, Args args, FunctionRef<Value(Args)> run) {
  const HigherOrder* higher_order = op.def().higher_order;
  if (higher_order && !higher_order->branches) {
    if (options_.keep_custom_functions && &op == &autograd::custom_function_operator())
      return custom_function(args, run);
    // Not one call but what it runs.
    MaskScope here(layer::at_and_below(layer_bit()));
    return higher_order->run(args);
  }
  if (reads_data(op)) {
    if (are_constant(args)) return run(args);  // a part of making the program, not of running it
    check_data_read(op, args);
  }
  if (std::optional<Value> result = decomposed(op, args)) return *std::move(result);
  ValueList nodes;
  nodes.reserve(args.size());
  for (const Value& arg : args) nodes.push_back(as_nodes(arg));
  const std::optional<SymInt> branches_begin = higher_order ? random().here() : std::nullopt;
  flow::KnownResults known;
  if (higher_order) make_branch_graphs(op, args, nodes, known);
  const std::optional<SymInt> random_offset = random().before(op, args);
  Value result = run(args);
  if (higher_order) result = own_results(result);
  // Of the table's operators it is known which read data.
  const bool may_read_data = higher_order || (!op.signature() && !are_constant(args));
  if (may_read_data) refuse_numbers(op, result);
  Node& node = add_call(op, nodes, result);
  random().after(op, args, result, random_offset, node);
  if (branches_begin && random().is_lost()) node.meta().random_offset = branches_begin;
  if (options_.mode == CaptureMode::kReal) note_constants(op, args, result);
  return result;
}

Value GraphRecorder::custom_function(Args args, FunctionRef<Value(Args)> run) {
  ValueList call = {Value(Ref<ValueObject>(
      applied_in_graph(autograd::applied_function(args).function, /*refuses_writes=*/false)))};
  const Value tensors = as_nodes(args[1]);
  for (const Value& tensor : tensors.elements()) call.push_back(tensor);
  const Value results = run(args);
  Node& node = graph().call_function("weft.call", std::move(call));
  const Value given = one_or_tuple(results.elements());
  annotate(node, given);
  track(given, node);
  return results;
}

Value GraphRecorder::handle(const nn::ModuleCall& call) {
  auto found = paths_.find(call.module.get());
  // What is no part of the module that is captured has no place in it.
  if (found == paths_.end()) return call.run(call.args);
  ModuleTrail::Call running(own_trail_, found->second, call.module->class_name);
  return call.run(call.args);
}

void GraphRecorder::grad_mode_changed(bool enabled) {
  if (options_.pre_dispatch) graph().call_function("torch._C._set_grad_enabled", {enabled});
}

// --- numbers out of tensors ------------------------------------------------------------------------------

namespace {

bool gives_tensors(const Operator& op) {
  return std::any_of(op.schema().returns.begin(), op.schema().returns.end(),
                     [](const Return& result) { return result.type.has_tensor(); });
}

}  // namespace

// A call that gives numbers instead of tensors: the program goes on with what the data say.
bool GraphRecorder::reads_data(const Operator& op) const {
  return options_.mode == CaptureMode::kReal && op.has(Traits::kDataDependent) && !gives_tensors(op);
}

bool GraphRecorder::is_literal(const Tensor& tensor) const {
  auto sharing = literals_.find(tensor.storage().get());
  return sharing != literals_.end() && sharing->second.tensors.contains(tensor.impl()->serial());
}

// What does not come from the inputs: tensors of the program, and numbers made from literals.
bool GraphRecorder::are_constant(Args args) const {
  bool constant = true;
  for_each_tensor(args, [&](const Tensor& tensor) {
    const Node* node = node_of(*tensor.impl());
    const bool is_own = !node || node->kind() == NodeKind::kGetAttr;
    constant &= is_own || is_literal(tensor);
  });
  return constant;
}

void GraphRecorder::check_data_read(const Operator& op, Args args) const {
  if (options_.allow_data_reads) return;
  bool have_data = true;  // a fake tensor says itself what can be known of it
  for_each_tensor(args, [&](const Tensor& tensor) { have_data &= !is_fake(tensor); });
  const Schema& schema = op.schema();
  require(
      !have_data,
      "make_graph: It appears that you're trying to get value out of a tracing tensor with {}.{}.{} - "
      "erroring out! It's likely that this is caused by data-dependent control flow or similar. It may be "
      "possible to capture this with CaptureMode::kSymbolic; allow_data_reads makes what this run reads a "
      "constant of the graph",
      schema.ns, schema.name, schema.overload.empty() ? "default" : schema.overload);
}

// Of what literals become, single numbers stay known, as long as nothing else goes into them.
void GraphRecorder::note_constants(const Operator& op, Args args, const Value& result) {
  const bool lifts = op.has(Traits::kLifts);
  if (!lifts && literals_.empty()) return;
  bool constant = lifts && are_constant(args);
  if (!lifts && !op.has(Traits::kRandom) && are_constant(args))
    for_each_tensor(args, [&](const Tensor& tensor) { constant |= is_literal(tensor); });
  auto is_single = [](const Tensor& tensor) { return !tensor.is_symbolic() && tensor.plain_numel() <= 1; };
  auto forget = [&](const Tensor& tensor) { literals_.erase(tensor.storage().get()); };
  if (op.info().is_mutable && !constant)
    for (size_t i = 0; i < args.size(); ++i)
      if (op.info().written[i]) for_each_tensor(args[i], forget);
  if (constant)
    for_each_tensor(result, [&](const Tensor& tensor) {
      if (!is_single(tensor)) return;
      Literals& sharing = literals_[tensor.storage().get()];
      sharing.storage = tensor.storage();
      sharing.tensors.insert(tensor.impl()->serial());
    });
}

// --- operators over functions ----------------------------------------------------------------------------

void GraphRecorder::make_branch_graphs(const Operator& op, Args args, ValueList& nodes,
                                       flow::KnownResults& known) {
  std::vector<Branch> branches;
  {
    MaskScope below(layer::below(layer_bit()));  // what makes examples is no part of the program
    branches = op.def().higher_order->branches(args);
  }
  for (const Branch& branch : branches) {
    Callable& function = *callable_in(args[branch.argument]);
    BranchGraph graph = capture_branch(function, branch);
    Node& node = new_attribute(branch.graph_name, Value(Ref<ValueObject>(graph.module.callable())), "_");
    note_origin(node, origin_here());
    nodes[branch.argument] = value_of(node);
    known.add(function, std::move(graph.results));
  }
}

// The graph of a function that the program runs later, perhaps: on tensors of its own, which have no data,
// since it may be one that this run's data would not lead to.
GraphRecorder::BranchGraph GraphRecorder::capture_branch(Callable& function, const Branch& branch) {
  const ForkRng kept = fork_rng();  // this run of the function is none of the program's
  MakeGraphOptions options = options_;
  options.allow_real_inputs = true;  // the function's own constants: what it closes over is among its inputs
  std::optional<FakeMode> fake;
  if (options_.mode == CaptureMode::kReal) {
    options.mode = CaptureMode::kFake;
    if (!FakeMode::current()) fake.emplace(make_ref<FakeConverter>(ShapeEnv::create()), true);
  }
  GraphRecorder inner(options, nullptr);
  inner.trail_ = trail_;
  inner.calls_ = calls_;
  inner.original_ = original_;
  FakeConverter converter;
  const auto split = branch.inputs.begin() + static_cast<ptrdiff_t>(branch.varying);
  ValueList own = flow::joined(flow::varying(branch.graph_name, {branch.inputs.begin(), split}),
                               {split, branch.inputs.end()});
  for (size_t i = 0; i < own.size(); ++i) {
    own[i] =
        map_tensors(own[i], [&](const Tensor& tensor) { return Value(inner.fake_input(converter, tensor)); });
    inner.add_input(fmt::format("arg{}_1", i), own[i]);
  }
  Value result;
  {
    Scope scope(inner);
    MaskScope here(layer::at_and_below(layer_bit()));
    result = function.call(own);
  }
  inner.graph().output(inner.as_nodes(result));
  if (inner.random().drew()) random().lose();
  return {inner.finish(true), flow::as_tuple(result).elements()};
}

// A function may give an operand back, or one tensor as several results where another function gives several
// tensors. Each result is a tensor of its own, so that each has a node, and the operand stays the node that
// it was.
Value GraphRecorder::own_results(const Value& result) {
  std::unordered_set<uint64_t> seen;
  return map_leaves(result, [&](const Value& leaf) {
    if (leaf.is_tensor() &&
        (node_of(*leaf.tensor_ref().impl()) || !seen.insert(leaf.tensor_ref().impl()->serial()).second)) {
      MaskScope below(layer::below(layer_bit()));
      return Value(alias(leaf.tensor_ref()));
    }
    return leaf;
  });
}

// Numbers that only a run tells must be symbols.
void GraphRecorder::refuse_numbers(const Operator& op, const Value& result) const {
  if (options_.allow_data_reads || FakeMode::current()) return;
  for_each_leaf(result, [&](const Value& leaf) {
    require(!leaf.is_number() || is_symbolic_number(leaf),
            "make_graph: {} gives a number that may depend on the data of this run; capture it with "
            "CaptureMode::kSymbolic, or give a tensor. allow_data_reads makes it a constant of the graph",
            op.schema().name);
  });
}

}  // namespace weft
