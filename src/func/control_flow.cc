#include "weft/func/control_flow.h"

#include "func/captured_function.h"
#include "func/control_flow.h"
#include "func/control_flow_rules.h"
#include "weft/base/error.h"
#include "weft/dispatch/recorder.h"
#include "weft/ops/functions.h"

namespace weft {

// --- flat functions --------------------------------------------------------------------------------------

namespace {

// How many functions that are captured whole this thread is inside of.
thread_local int whole_functions = 0;

struct WholeFunction {
  explicit WholeFunction(LeavesAs leaves) : is_whole(leaves == LeavesAs::kTuple) {
    whole_functions += is_whole;
  }
  ~WholeFunction() { whole_functions -= is_whole; }
  WholeFunction(const WholeFunction&) = delete;
  bool is_whole;
};

}  // namespace

LeavesAs leaves_of_map() { return whole_functions > 0 ? LeavesAs::kTuple : LeavesAs::kList; }

FlatFunction::FlatFunction(ValueFunction f, TreeSpec arguments, LeavesAs leaves)
    : f_(std::move(f)),
      arguments_(std::move(arguments)),
      leaves_(leaves),
      result_(std::make_shared<std::optional<TreeSpec>>()) {}

Value FlatFunction::operator()(Args leaves) const {
  Value arguments = tree_unflatten(leaves, arguments_);
  WholeFunction scope(leaves_);
  FlatTree flat = tree_flatten(f_(arguments.elements()));
  if (*result_)
    require(**result_ == flat.spec, "control flow: the functions give different structures: {}",
            difference(**result_, flat.spec));
  *result_ = flat.spec;
  return leaves_ == LeavesAs::kTuple ? Value::tuple(flat.leaves) : Value::list(flat.leaves);
}

namespace func {
namespace {

// Nobody wants to keep it: C++ control flow does it.
bool is_plain() {
  const LayerState& state = layer_state();
  if (state.level_depth > 0 || (state.active & ~layer::kRecorderUpper)) return false;
  const Recorder* recorder = Recorder::current(Recorder::Position::kUpper);
  return !(state.active & layer::kRecorderUpper) || !recorder->keeps_control_flow();
}

bool truth(const Value& pred) {
  if (pred.is_tensor()) return pred.to_tensor().item().to_bool();
  return pred.to_bool();
}

void check_pred(const Value& pred) {
  if (pred.is_bool()) return;
  require(pred.is_tensor(), "cond: the condition must be a bool or a tensor of one element, but is {}",
          pred.kind_name());
  require(guard_or(pred.to_tensor().numel() == 1, true),
          "cond: the condition must be a tensor of one element, but is {}", describe(pred.to_tensor()));
}

Value value_of(const Ref<Callable>& graph) { return Value(Ref<ValueObject>(graph)); }

}  // namespace

Value cond(const Value& pred, const ValueFunction& on_true, const ValueFunction& on_false,
           const ValueList& operands) {
  check_pred(pred);
  if (is_plain()) return truth(pred) ? on_true(operands) : on_false(operands);
  FlatTree flat = tree_flatten(Value::tuple(operands));
  FlatFunction yes(on_true, flat.spec), no(on_false, flat.spec);
  no.share_result(yes);
  const ValueFunction both[] = {yes, no};
  CapturedFunctions captured = capture_functions(both, flat.leaves, 0, [](const auto& functions) {
    flow::check_branches(functions[0].results, functions[1].results);
  });
  Value result = call(cond_operator(),
                      {pred, value_of(captured.functions[0].graph), value_of(captured.functions[1].graph),
                       Value::list(flow::joined(flat.leaves, captured.closed_over))});
  return tree_unflatten(result.elements(), yes.result_spec());
}

namespace {

SymInt count_of(const ValueList& xs, const char* what) {
  require(!xs.empty(), "{}: there is nothing to go over", what);
  std::optional<SymInt> count;
  for (const Value& x : xs) {
    require(x.is_tensor() && x.tensor_ref().dim() > 0,
            "{}: expected tensors with at least one dim to go over, but got {}", what, x.to_string());
    SymInt own = x.tensor_ref().size(0);
    require(!count || guard_or(*count == own, true), "{}: the first dims of the tensors differ: {} and {}",
            what, count.value_or(0).to_string(), own.to_string());
    count = own;
  }
  require(guard_or(*count > 0, true),
          "{}: the first dim of the tensors is empty, so there is no call to learn from", what);
  return *count;
}

Value stacked(const std::vector<ValueList>& rows) {
  ValueList columns;
  for (size_t c = 0; c < rows[0].size(); ++c) {
    std::vector<Tensor> column;
    for (const ValueList& row : rows) column.push_back(from_value<Tensor>(row[c]));
    columns.emplace_back(stack(column, 0));
  }
  return Value::tuple(std::move(columns));
}

}  // namespace

Value map(const ValueFunction& f, const Value& xs, const ValueList& args) {
  ValueList arguments{xs};
  arguments.insert(arguments.end(), args.begin(), args.end());
  FlatTree flat = tree_flatten(Value::tuple(arguments));
  size_t mapped = flat.spec.children()[0].num_leaves();
  ValueList flat_xs(flat.leaves.begin(), flat.leaves.begin() + static_cast<ptrdiff_t>(mapped));
  ValueList flat_args(flat.leaves.begin() + static_cast<ptrdiff_t>(mapped), flat.leaves.end());
  SymInt count = count_of(flat_xs, "map");
  FlatFunction body(f, flat.spec, leaves_of_map());
  Value result;
  if (is_plain()) {
    std::vector<ValueList> rows;
    for (int64_t i = 0, n = count; i < n; ++i) {
      rows.push_back(body(flow::joined(flow::slices(flat_xs, i), flat_args)).elements());
    }
    result = stacked(rows);
  } else {
    const ValueFunction functions[] = {body};
    CapturedFunctions captured = capture_functions(
        functions, flow::joined(flow::slices(flat_xs, 0), flat_args), 0, [](const auto&) {});
    result = call(map_operator(), {value_of(captured.functions[0].graph), Value::list(flat_xs),
                                   Value::list(flow::joined(flat_args, captured.closed_over))});
  }
  return tree_unflatten(result.elements(), body.result_spec());
}

Value scan(const ValueFunction& f, const Value& init, const Value& xs) {
  FlatTree flat = tree_flatten(Value::tuple({init, xs}));
  size_t carried = flat.spec.children()[0].num_leaves();
  ValueList carry(flat.leaves.begin(), flat.leaves.begin() + static_cast<ptrdiff_t>(carried));
  ValueList flat_xs(flat.leaves.begin() + static_cast<ptrdiff_t>(carried), flat.leaves.end());
  count_of(flat_xs, "scan");
  FlatFunction body(f, flat.spec);
  Value function = flow::callable_value(body);
  ValueList closed_over;
  if (!is_plain()) {
    const ValueFunction functions[] = {body};
    CapturedFunctions captured =
        capture_functions(functions, flow::joined(carry, flow::slices(flat_xs, 0)), carried,
                          [&](const auto& given) { flow::check_carry("scan", carry, given[0].results); });
    function = value_of(captured.functions[0].graph);
    closed_over = captured.closed_over;
  }
  Value result =
      call(scan_operator(), {function, Value::list(carry), Value::list(flat_xs), Value::list(closed_over)});
  return tree_unflatten(result.elements(), body.result_spec());
}

Value while_loop(const ValueFunction& condition, const ValueFunction& body, const ValueList& carried) {
  FlatTree flat = tree_flatten(Value::tuple(carried));
  FlatFunction check(condition, flat.spec), step(body, flat.spec);
  Value more = flow::callable_value(check), loop_body = flow::callable_value(step);
  ValueList closed_over;
  if (!is_plain()) {
    const ValueFunction both[] = {check, step};
    auto check_iteration = [&](const auto& given) {
      const ValueList& next = given[1].results;
      flow::check_condition(given[0].results);
      require(next.size() == flat.leaves.size(),
              "while_loop: its body gives {} values for {} that are carried", next.size(),
              flat.leaves.size());
      flow::check_carry("while_loop", flat.leaves, next);
    };
    CapturedFunctions captured = capture_functions(both, flat.leaves, flat.leaves.size(), check_iteration);
    more = value_of(captured.functions[0].graph);
    loop_body = value_of(captured.functions[1].graph);
    closed_over = captured.closed_over;
  }
  Value result =
      call(while_operator(), {more, loop_body, Value::list(flat.leaves), Value::list(closed_over)});
  return tree_unflatten(result.elements(), flat.spec);
}

}  // namespace func
}  // namespace weft
