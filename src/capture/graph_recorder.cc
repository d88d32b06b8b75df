#include "capture/graph_recorder.h"

#include <algorithm>

#include "graph/operator_call.h"
#include "weft/base/error.h"
#include "weft/ops/fake.h"
#include "weft/ops/functions.h"

namespace weft {

GraphRecorder::GraphRecorder(const MakeGraphOptions& options, const nn::Module* root)
    : GraphWriter(root), options_(options) {
  if (root) paths_ = module_paths(*root->state(), "");
}

Value GraphRecorder::unknown_tensor(const Tensor& tensor) {
  require(!is_fake(tensor), "make_graph: {} is a fake tensor that is no input of the captured function",
          describe(tensor));
  if (FakeMode::current()) {
    require(
        is_owned_by_root(tensor) || options_.allow_real_inputs,
        "make_graph: {} is a real tensor among fake ones: it is no input of the captured function. Pass it "
        "as an argument, capture a module that owns it, or allow it with allow_real_inputs",
        describe(tensor));
    twins_[tensor.impl()->serial()] = shape_only(tensor);
  }
  return value_of(attribute_node(tensor));
}

Tensor GraphRecorder::literal(const Tensor& tensor) {
  const LayerState& state = layer_state();
  if (!(state.active & state.mask & layer_bit())) return tensor;
  if (FakeMode::current()) twins_[tensor.impl()->serial()] = shape_only(tensor);
  attribute_node(tensor);
  return lift_fresh_copy(tensor);
}

void GraphRecorder::annotate(Node& node, const Value& result) {
  GraphWriter::annotate(node, result);
  node.meta().modules = trail_->modules();
  node.meta().original = original_;
  if (options_.record_stack_traces)
    node.meta().trace = std::make_shared<const StackTrace>(StackTrace::capture());
}

Value GraphRecorder::for_below(const Value& value) {
  if (twins_.empty()) return value;
  return map_leaves(value, [&](const Value& leaf) {
    if (!leaf.is_tensor()) return leaf;
    auto twin = twins_.find(leaf.tensor_ref().impl()->serial());
    return twin == twins_.end() ? leaf : Value(twin->second);
  });
}

ValueList GraphRecorder::for_below(Args args) {
  ValueList below;
  below.reserve(args.size());
  for (const Value& arg : args) below.push_back(for_below(arg));
  return below;
}

// A call that gives one of its arguments back gives the program's own tensor, not what stood for it below.
Value GraphRecorder::instead_of_twins(const Operator& op, Args args, Args below, const Value& result) {
  if (!op.info().is_mutable) return result;
  return map_leaves(result, [&](const Value& leaf) {
    for (size_t i = 0; i < args.size(); ++i)
      if (leaf.is_tensor() && below[i].is_tensor() && leaf.tensor_ref().is_same(below[i].tensor_ref()))
        return args[i];
    return leaf;
  });
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
  return found->second(args);
}

Value GraphRecorder::handle(const Operator& op, Args args, FunctionRef<Value(Args)> run) {
  const HigherOrder* higher_order = op.def().higher_order;
  if (higher_order && !higher_order->branches) {
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
  if (higher_order) make_branch_graphs(op, args, nodes);
  const std::optional<SymInt> random_offset = random().before(op, args);
  Value result;
  if (twins_.empty()) {
    result = run(args);
  } else {
    ValueList below = for_below(args);
    result = instead_of_twins(op, args, below, run(below));
  }
  Node& node = add_call(op, nodes, result);
  random().after(op, args, result, random_offset, node);
  if (branches_begin && random().is_lost()) node.meta().random_offset = branches_begin;
  if (options_.mode == CaptureMode::kReal) note_constants(op, args, result);
  return result;
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

// What does not come from the inputs: tensors of the program, and numbers made from literals.
bool GraphRecorder::are_constant(Args args) const {
  bool constant = true;
  for_each_tensor(args, [&](const Tensor& tensor) {
    const Node* node = node_of(*tensor.impl());
    const bool is_own = !node || node->kind() == NodeKind::kGetAttr;
    constant &= is_own || literals_.contains(tensor.impl()->serial());
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
    for_each_tensor(args,
                    [&](const Tensor& tensor) { constant |= literals_.contains(tensor.impl()->serial()); });
  auto is_single = [](const Tensor& tensor) { return !tensor.is_symbolic() && tensor.plain_numel() <= 1; };
  auto forget = [&](const Tensor& tensor) {
    std::erase_if(literals_, [&](const auto& entry) { return entry.second == tensor.storage(); });
  };
  if (op.info().is_mutable && !constant)
    for (size_t i = 0; i < args.size(); ++i)
      if (op.info().written[i]) for_each_tensor(args[i], forget);
  if (constant)
    for_each_tensor(result, [&](const Tensor& tensor) {
      if (is_single(tensor)) literals_[tensor.impl()->serial()] = tensor.storage();
    });
}

// --- operators over functions ----------------------------------------------------------------------------

void GraphRecorder::make_branch_graphs(const Operator& op, Args args, ValueList& nodes) {
  std::vector<Branch> branches;
  {
    MaskScope below(layer::below(layer_bit()));  // what makes examples is no part of the program
    branches = op.def().higher_order->branches(for_below(args));
  }
  for (const Branch& branch : branches) {
    GraphModule graph = capture_branch(*callable_in(args[branch.argument]), branch.inputs);
    Node& node = new_attribute(branch.graph_name, Value(Ref<ValueObject>(graph.callable())), "_");
    nodes[branch.argument] = value_of(node);
  }
}

// The graph of a function that the program runs later, perhaps: it works on tensors of its own.
GraphModule GraphRecorder::capture_branch(Callable& function, Args inputs) {
  const ForkRng kept = fork_rng();  // this run of the function is none of the program's
  GraphRecorder inner(options_, nullptr);
  inner.trail_ = trail_;
  inner.original_ = original_;
  ValueList own;
  for (size_t i = 0; i < inputs.size(); ++i) {
    own.push_back(map_leaves(for_below(inputs[i]), [&](const Value& leaf) {
      if (!leaf.is_tensor()) return leaf;
      if (is_fake(leaf.tensor_ref())) return Value(shape_only(leaf.tensor_ref()));
      MaskScope below(0);
      return Value(leaf.tensor_ref().clone());
    }));
    inner.add_input(fmt::format("arg{}_1", i), own.back());
  }
  Value result;
  {
    Scope scope(inner);
    MaskScope here(layer::at_and_below(layer_bit()));
    result = function.call(own);
  }
  inner.graph().output(inner.as_nodes(result));
  if (inner.random().drew()) random().lose();
  return inner.finish(true);
}

}  // namespace weft
