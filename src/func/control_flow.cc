#include "weft/func/control_flow.h"

#include "func/control_flow.h"
#include "func/control_flow_rules.h"
#include "func/substitution.h"
#include "weft/base/error.h"
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
  size_t own = arguments_.num_leaves();
  invariant(leaves.size() == own + lifted_.size(), "{} leaves for a function of {}", leaves.size(),
            own + lifted_.size());
  Value arguments = tree_unflatten(leaves.first(own), arguments_);
  WholeFunction scope(leaves_);
  Value result;
  if (lifted_.empty()) {
    result = f_(arguments.elements());
  } else {
    auto level = make_ref<SubstitutionLevel>();
    for (size_t i = 0; i < lifted_.size(); ++i) level->replace(lifted_[i], leaves[own + i].to_tensor());
    LevelEntry entry(level);
    result = f_(arguments.elements());
  }
  FlatTree flat = tree_flatten(result);
  if (*result_)
    require(**result_ == flat.spec, "control flow: the functions give different structures: {}",
            difference(**result_, flat.spec));
  *result_ = flat.spec;
  return leaves_ == LeavesAs::kTuple ? Value::tuple(flat.leaves) : Value::list(flat.leaves);
}

namespace func {
namespace {

// Nothing watches: C++ control flow does it.
bool is_plain() {
  const LayerState& state = layer_state();
  return state.active == 0 && state.level_depth == 0;
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

// What several functions close over becomes operands of all. What each of them gives for the leaves, without
// data, goes to `results`.
std::vector<Tensor> lift(std::initializer_list<FlatFunction*> functions, const ValueList& leaves,
                         std::vector<ValueList>& results) {
  std::vector<Tensor> all;
  for (FlatFunction* f : functions) {
    auto run = [&](Args args) {
      Value result = (*f)(args);
      results.push_back(result.elements());
      return result;
    };
    for (const Tensor& tensor : closed_over(run, leaves)) {
      bool is_there = false;
      for (const Tensor& other : all) is_there |= other.is_same(tensor);
      if (!is_there) all.push_back(tensor);
    }
  }
  for (FlatFunction* f : functions) f->lift(all);
  return all;
}

ValueList with(ValueList leaves, const std::vector<Tensor>& lifted) {
  leaves.insert(leaves.end(), lifted.begin(), lifted.end());
  return leaves;
}

}  // namespace

Value cond(const Value& pred, const ValueFunction& on_true, const ValueFunction& on_false,
           const ValueList& operands) {
  check_pred(pred);
  if (is_plain()) return truth(pred) ? on_true(operands) : on_false(operands);
  FlatTree flat = tree_flatten(Value::tuple(operands));
  FlatFunction yes(on_true, flat.spec), no(on_false, flat.spec);
  no.share_result(yes);
  std::vector<ValueList> results;
  std::vector<Tensor> lifted = lift({&yes, &no}, flat.leaves, results);
  flow::check_branches(results[0], results[1]);
  Value result = apply_cond(pred, yes, no, with(flat.leaves, lifted));
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

ValueList slice_of(const ValueList& xs, int64_t i) {
  ValueList slice;
  for (const Value& x : xs) slice.emplace_back(select(x.to_tensor(), 0, i));
  return slice;
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
      ValueList leaves = slice_of(flat_xs, i);
      leaves.insert(leaves.end(), flat_args.begin(), flat_args.end());
      rows.push_back(body(leaves).elements());
    }
    result = stacked(rows);
  } else {
    ValueList first = slice_of(flat_xs, 0);
    first.insert(first.end(), flat_args.begin(), flat_args.end());
    std::vector<ValueList> rows;
    std::vector<Tensor> lifted = lift({&body}, first, rows);
    result = apply_map(body, flat_xs, with(flat_args, lifted));
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
  std::vector<Tensor> lifted;
  if (!is_plain()) {
    ValueList example = carry;
    for (const Value& x : slice_of(flat_xs, 0)) example.push_back(x);
    std::vector<ValueList> results;
    lifted = lift({&body}, example, results);
    flow::check_carry("scan", carry, results[0]);
  }
  Value result = apply_scan(body, carry, flat_xs, {lifted.begin(), lifted.end()});
  return tree_unflatten(result.elements(), body.result_spec());
}

Value while_loop(const ValueFunction& condition, const ValueFunction& body, const ValueList& carried) {
  FlatTree flat = tree_flatten(Value::tuple(carried));
  FlatFunction check(condition, flat.spec), step(body, flat.spec);
  std::vector<Tensor> lifted;
  if (!is_plain()) {
    std::vector<ValueList> results;
    lifted = lift({&check, &step}, flat.leaves, results);
    flow::check_condition(results[0]);
    require(results[1].size() == flat.leaves.size(),
            "while_loop: its body gives {} values for {} that are carried", results[1].size(),
            flat.leaves.size());
    flow::check_carry("while_loop", flat.leaves, results[1]);
  }
  Value result = apply_while(check, step, flat.leaves, {lifted.begin(), lifted.end()});
  return tree_unflatten(result.elements(), flat.spec);
}

}  // namespace func
}  // namespace weft
