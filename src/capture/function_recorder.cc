#include "capture/function_recorder.h"

#include "func/captured_function.h"
#include "func/control_flow_rules.h"
#include "weft/base/error.h"
#include "weft/base/random.h"
#include "weft/ops/autocast.h"
#include "weft/ops/fake.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

// A captured function as those who call it see it: it remembers what it gave when it was captured.
class CapturedGraph final : public Callable {
 public:
  CapturedGraph(GraphModule module, ValueList results, bool draws)
      : module_(std::move(module)), results_(std::move(results)), draws_(draws) {}
  Value call(Args args) override { return module_.call(args); }
  const ValueList& results() const noexcept { return results_; }
  // Whether it takes random numbers.
  bool draws() const noexcept { return draws_; }

 private:
  GraphModule module_;
  ValueList results_;
  bool draws_;
};

// The innermost level while a function runs: sees all of its calls, and all tensors as they are.
class FunctionLevel final : public Level {
 public:
  explicit FunctionLevel(FunctionRecorder& recorder) : recorder_(recorder) {}
  const char* name() const override { return "function capture"; }
  bool sees_everything() const override { return true; }
  bool decomposes() const override { return false; }
  bool sees_ended() const override { return true; }
  Value handle(const Operator& op, Args args) override { return recorder_.record(*this, op, args); }

 private:
  FunctionRecorder& recorder_;
};

const Recorder* recorder_around() {
  const Recorder* lower = Recorder::current(Recorder::Position::kLower);
  return lower ? lower : Recorder::current(Recorder::Position::kUpper);
}

Ref<ShapeEnv> current_env() {
  const FakeMode* mode = FakeMode::current();
  return mode ? mode->options().shape_env : nullptr;
}

}  // namespace

FunctionRecorder::FunctionRecorder(const ValueList& leaves)
    : GraphWriter(nullptr), around_(recorder_around()), env_(current_env()) {
  sizes().on_unknown([this](const sym::Expr* expr) -> Node& {
    const Value number = expr->type() == sym::Type::kInt    ? Value(SymInt::from_expr(expr))
                         : expr->type() == sym::Type::kBool ? Value(SymBool::from_expr(expr))
                                                            : Value(SymFloat::from_expr(expr));
    return add_closed_over(number, number);
  });
  for (const Value& leaf : leaves) {
    leaves_.push_back(leaf.is_tensor() ? Value(fake_input(converter_, leaf.tensor_ref())) : leaf);
    last_input_ = &add_input(fmt::format("arg{}_1", leaves_.size() - 1), leaves_.back());
  }
}

// --- running the function --------------------------------------------------------------------------------

void FunctionRecorder::run(const ValueFunction& function) {
  const ForkRng kept = fork_rng();  // nothing is drawn by a run that only looks
  Value result;
  {
    LayerStateScope saved;
    // No other transform is concerned: what reaches the layers are tensors of this run. Nobody else records
    // or counts it.
    constexpr uint32_t unconcerned =
        layer::kRecorderLower | layer::kFunctionalizeUpper | layer::kFunctionalizeLower | layer::kModes;
    layer_state().level_depth = 0;
    layer_state().mask = (layer::kAll | layer::kNotLayers) & ~unconcerned;
    layer_state().active &= ~unconcerned;  // the history of a view is made with the whole stack
    RecorderScope recording(*this, Position::kUpper);
    LiteralScope literals(*this);
    LevelEntry entry(make_ref<FunctionLevel>(*this));
    skip_assertions();
    result = function(leaves_);
    write_assertions();
  }
  graph().output(as_nodes(result));
  results_ = without_data(result).elements();
}

void FunctionRecorder::skip_assertions() {
  if (env_) seen_assertions_ = env_->runtime_asserts().size();
}

// What the code checks of sizes that come from data is no call of an operator, and would be lost.
void FunctionRecorder::write_assertions() {
  while (env_ && seen_assertions_ < env_->runtime_asserts().size()) {
    const sym::Guard& assertion = env_->runtime_asserts()[seen_assertions_++];
    graph().call_function("aten::_assert_scalar", {as_nodes(assertion.as_bool()), assertion.message});
  }
}

Value FunctionRecorder::without_data(const Value& value) const {
  return map_tensors(value, [&](const Tensor& tensor) {
    for (const Tensor& own : {tensor, living(tensor)})
      if (auto fake = fakes_.find(own.impl()->serial()); fake != fakes_.end()) return Value(fake->second);
    return Value(living(tensor));
  });
}

namespace {

bool casts_now() {
  const LayerState& state = layer_state();
  return state.active & state.mask & layer::kAutocast;
}

// Functions among the arguments that were captured a moment ago.
void note_known_results(Args args, flow::KnownResults& known) {
  for (const Value& arg : args)
    if (auto* captured = dynamic_cast<CapturedGraph*>(callable_in(arg)))
      known.add(*captured, captured->results());
}

// Of a function that was not captured here nobody knows.
bool functions_draw(const Operator& op, Args args) {
  if (!op.def().higher_order) return false;
  return std::any_of(args.begin(), args.end(), [](const Value& arg) {
    auto* captured = dynamic_cast<CapturedGraph*>(callable_in(arg));
    return captured ? captured->draws() : callable_in(arg) != nullptr;
  });
}

}  // namespace

Value FunctionRecorder::record(const Level& level, const Operator& op, Args args) {
  write_assertions();
  ValueList cast;
  if (casts_now()) {
    // The graph has the casts: when it runs, the region of the program that makes them has ended.
    std::optional<ValueList> arguments = detail::autocast_arguments(op, args);
    if (!arguments) return op.kernel().boxed(args);
    cast = std::move(*arguments);
    args = cast;
  }
  ValueList nodes, below;
  for (const Value& arg : args) {
    const bool is_function = op.def().higher_order && op.def().higher_order->branches && callable_in(arg);
    nodes.push_back(is_function ? value_of(new_attribute("function", arg, "_")) : as_nodes(arg));
    below.push_back(without_data(arg));
  }
  const std::optional<SymInt> random_offset = random().before(op, below);
  flow::KnownResults known;
  note_known_results(args, known);
  Value result;
  {
    BelowLevel scope(level);
    MaskScope no_casts(~layer::kAutocast);
    result = dispatch::redispatch(op, below);
  }
  skip_assertions();  // those that the operator made, it makes again
  Node& node = add_call(op, nodes, result);
  random().after(op, below, result, random_offset, node);
  if (functions_draw(op, args)) {
    // How many numbers they take, only a run tells.
    node.meta().random_offset = random().here();
    random().note_unknown_draws();
  }
  return result;
}

void FunctionRecorder::grad_mode_changed(bool enabled) {
  graph().call_function("torch._C._set_grad_enabled", {enabled});
}

Tensor FunctionRecorder::literal(const Tensor& tensor) {
  if (!(layer_state().mask & layer::kLevels)) return tensor;
  attribute_node(tensor);
  return lift_fresh_copy(tensor);
}

// --- what it uses without being given it -----------------------------------------------------------------

Node& FunctionRecorder::add_closed_over(const Value& value, const Value& without_data) {
  Graph::InsertScope after_inputs(graph(), last_input_ ? last_input_->next() : graph().front());
  last_input_ = &add_input(fmt::format("arg{}_1", leaves_.size() + closed_over_.size()), without_data);
  closed_over_.push_back({value, last_input_});
  return *last_input_;
}

Value FunctionRecorder::unknown_tensor(const Tensor& tensor) {
  // A transform that the function itself called has ended, and kept a value of the function: func::grad does.
  if (Node* node = node_of(*living(tensor).impl())) return value_of(*node);
  const Tensor fake = fake_input(converter_, tensor);
  Node& node = add_closed_over(tensor, fake);
  track(tensor, node);
  fakes_.emplace(tensor.impl()->serial(), fake);
  return value_of(node);
}

void FunctionRecorder::annotate(Node& node, const Value& result) {
  GraphWriter::annotate(node, result);
  note_origin(node, around_ ? around_->origin_here() : Origin());
}

ValueList FunctionRecorder::closed_over() const {
  ValueList values;
  for (const ClosedOver& entry : closed_over_) values.push_back(entry.value);
  return values;
}

namespace {

// What makes a tensor or a symbolic number the one that it is.
const void* identity_of(const Value& value) {
  if (value.is_tensor()) return &*value.tensor_ref().impl();
  if (value.kind() == Value::Kind::kSymInt) return value.to_sym_int().expr();
  if (value.kind() == Value::Kind::kSymBool) return value.to_sym_bool().expr();
  return value.to_sym_float().expr();
}

}  // namespace

GraphModule FunctionRecorder::finish(const ValueList& closed_over) {
  std::unordered_map<const void*, Node*> own;
  for (const ClosedOver& entry : closed_over_) own.emplace(identity_of(entry.value), entry.node);
  Node* first = last_input_ ? last_input_->next() : graph().front();
  for (const Value& value : closed_over) {
    if (auto found = own.find(identity_of(value)); found != own.end()) {
      found->second->move_before(*first);
      continue;
    }
    Graph::InsertScope before_calls(graph(), first);
    graph().placeholder("unused");
  }
  return GraphWriter::finish(/*keep_dead_code=*/true);
}

// --- all functions of an operator ------------------------------------------------------------------------

namespace {

// The recorder of the function that this thread is inside of; null for none.
thread_local FunctionRecorder* innermost_function = nullptr;

struct InsideScope {
  explicit InsideScope(FunctionRecorder& recorder) : outer(std::exchange(innermost_function, &recorder)) {}
  ~InsideScope() { innermost_function = outer; }
  InsideScope(const InsideScope&) = delete;
  FunctionRecorder* outer;
};

}  // namespace

CapturedFunctions capture_functions(std::span<const ValueFunction> functions, const ValueList& leaves,
                                    size_t varying, ResultCheck check) {
  std::optional<FakeMode> fake;
  std::optional<sym::Trial> trial;
  if (!FakeMode::current()) fake.emplace(make_ref<FakeConverter>(ShapeEnv::create()), true);
  // Functions that run inside of others use the results of these: all are forgotten together.
  else if (const Ref<ShapeEnv>& env = FakeMode::current()->options().shape_env; env && !innermost_function)
    trial.emplace(*env);

  const auto split = leaves.begin() + static_cast<ptrdiff_t>(varying);
  const ValueList given =
      flow::joined(flow::varying("control flow", {leaves.begin(), split}), {split, leaves.end()});
  std::vector<std::unique_ptr<FunctionRecorder>> recorders;
  std::unordered_set<const void*> seen;
  CapturedFunctions captured;
  for (const ValueFunction& function : functions) {
    recorders.push_back(std::make_unique<FunctionRecorder>(given));
    {
      InsideScope inside(*recorders.back());
      recorders.back()->run(function);
    }
    for (const Value& value : recorders.back()->closed_over())
      if (seen.insert(identity_of(value)).second) captured.closed_over.push_back(value);
  }
  for (const auto& recorder : recorders)
    captured.functions.push_back({make_ref<CapturedGraph>(recorder->finish(captured.closed_over),
                                                          recorder->results(), recorder->draws()),
                                  recorder->results()});
  check(captured.functions);
  if (trial) trial->keep_conditions();
  if (innermost_function) innermost_function->skip_assertions();
  return captured;
}

}  // namespace weft
