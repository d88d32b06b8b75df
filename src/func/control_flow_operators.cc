// The operators over functions that control flow is made of: what they run, and what they give without data.
#include "func/control_flow.h"
#include "func/control_flow_rules.h"
#include "func/regions.h"
#include "ops/table.h"
#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/core/value_walk.h"
#include "weft/ops/fake.h"
#include "weft/ops/functions.h"

namespace weft {

// --- what the rules share ---------------------------------------------------------------------------------

Callable& flow::function_at(Args args, size_t i) {
  Callable* function = callable_in(args[i]);
  require(function != nullptr, "control flow: expected a function, but got {}", args[i].kind_name());
  return *function;
}

ValueList flow::joined(ValueList a, const ValueList& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

ValueList flow::part(Args values, size_t begin, size_t count) {
  Args wanted = values.subspan(begin, count);
  return {wanted.begin(), wanted.end()};
}

ValueList flow::slices(const ValueList& xs, int64_t i) {
  ValueList slice;
  for (const Value& x : xs) slice.emplace_back(select(x.to_tensor(), 0, i));
  return slice;
}

std::vector<Tensor> flow::tensors_among(const ValueList& leaves) {
  std::vector<Tensor> tensors;
  for (const Value& leaf : leaves)
    if (leaf.is_tensor()) tensors.push_back(leaf.to_tensor());
  return tensors;
}

ValueList flow::with_tensors(ValueList leaves, std::span<const Tensor> tensors) {
  size_t next = 0;
  for (Value& leaf : leaves)
    if (leaf.is_tensor()) leaf = tensors[next++];
  return leaves;
}

bool flow::wants_gradient(Args args) {
  if (!is_grad_enabled()) return false;
  for (const Value& arg : args) {
    if (arg.is_tensor() && arg.tensor_ref().requires_grad()) return true;
    if (arg.is_sequence() && wants_gradient(Args(arg.elements()))) return true;
  }
  return false;
}

namespace {

bool is_alike(const Value& a, const Value& b) {
  // Numbers may be symbols on either side.
  if ((a.is_int() && b.is_int()) || (a.is_bool() && b.is_bool()) || (a.is_double() && b.is_double()))
    return true;
  if (a.kind() != b.kind()) return false;
  if (!a.is_tensor()) return true;
  const TensorImpl &x = *a.tensor_ref().impl(), &y = *b.tensor_ref().impl();
  if (x.dtype() != y.dtype() || x.dim() != y.dim()) return false;
  for (size_t d = 0; d < x.sizes().size(); ++d)
    if (!guard_or(x.sizes()[d] == y.sizes()[d], true)) return false;
  return true;
}

std::string type_text(const Value& value) {
  return value.is_tensor() ? describe(value.tensor_ref()).str() : std::string(value.kind_name());
}

}  // namespace

void flow::check_branches(const ValueList& on_true, const ValueList& on_false) {
  require(on_true.size() == on_false.size(), "cond: its functions give {} and {} results", on_true.size(),
          on_false.size());
  for (size_t i = 0; i < on_true.size(); ++i)
    require(is_alike(on_true[i], on_false[i]),
            "cond: result {} is {} in one function and {} in the other; they must be of one type", i,
            type_text(on_true[i]), type_text(on_false[i]));
}

void flow::check_carry(std::string_view what, const ValueList& carried, const ValueList& next) {
  require(next.size() >= carried.size(), "{}: its body gives {} values for {} that are carried", what,
          next.size(), carried.size());
  for (size_t i = 0; i < carried.size(); ++i)
    require(is_alike(carried[i], next[i]),
            "{}: what is carried at {} is {} before a round and {} after it; it must stay of one type", what,
            i, type_text(carried[i]), type_text(next[i]));
}

void flow::check_condition(const ValueList& results) {
  const bool is_one =
      results.size() == 1 &&
      (results[0].is_bool() ||
       (results[0].is_tensor() && guard_or(sym_product(results[0].tensor_ref().impl()->sizes()) == 1, true)));
  std::string given;
  for (const Value& result : results) given += (given.empty() ? "" : ", ") + type_text(result);
  require(is_one, "while_loop: the condition must give a bool or a tensor of one element, but gives {}",
          given.empty() ? "nothing" : given);
}

// --- what is known only when it runs ----------------------------------------------------------------------

Value flow::unknown_number(const char* what, const Value& like) {
  const FakeMode* mode = FakeMode::current();
  require(mode && mode->options().shape_env,
          "{}: a number that it gives is known at run time only; capture it with CaptureMode::kSymbolic, or "
          "use a tensor for it",
          what);
  return unbacked_item(what, like.is_bool()     ? kBool
                             : like.is_int()    ? kInt64
                             : like.is_double() ? kFloat64
                                                : kComplex128);
}

ValueList flow::varying(const char* what, ValueList values) {
  for (Value& value : values)
    if (value.is_number()) value = unknown_number(what, value);
  return values;
}

namespace {
thread_local const flow::KnownResults* innermost_results = nullptr;
}

flow::KnownResults::KnownResults() : outer_(std::exchange(innermost_results, this)) {}
flow::KnownResults::~KnownResults() { innermost_results = outer_; }

const ValueList* flow::KnownResults::find(const Callable& function) {
  for (const KnownResults* scope = innermost_results; scope; scope = scope->outer_)
    for (const auto& [known, results] : scope->entries_)
      if (known == &function) return &results;
  return nullptr;
}

namespace {

using namespace flow;

SymInts joined_sizes(const SymInt& first, const Tensor& tensor) {
  SymInts sizes;
  sizes.push_back(first);
  for (const SymInt& size : tensor.sizes()) sizes.push_back(size);
  return sizes;
}

bool truth(const Value& pred) {
  return pred.is_tensor() ? pred.to_tensor().item().to_bool() : pred.to_bool();
}

// --- differentiation -------------------------------------------------------------------------------------

bool is_captured() { return layer_state().active != 0 || layer_state().level_depth != 0; }

// Outside of captures the tape sees what runs.
template <Value (*differentiate)(Args)>
Value autograd_rule(const Operator& op, Args args, FunctionRef<Value(Args)> call_below) {
  if (!wants_gradient(args)) return call_below(args);
  return is_captured() ? differentiate(args) : op.def().higher_order->run(args);
}
template <Value (*differentiate)(Args)>
Value jvp_rule(Level&, const Operator&, Args args) {
  return differentiate(args);
}

// The stacked form runs inside of a function that has a derivative.
Value differentiate_stacked_while(Args) {
  unsupported("while_loop_stack_output: it has no derivative of its own; differentiate while_loop");
}

// What a function gives for these inputs, without data.
ValueList shapes_of(Callable& function, const ValueList& inputs) {
  const ValueList* known = KnownResults::find(function);
  const Value results = known ? Value::tuple(*known) : as_tuple(function.call(inputs));
  ValueList shapes;
  for (const Value& result : results.elements())
    shapes.push_back(result.is_tensor() ? Value(shape_only(result.to_tensor())) : result);
  return shapes;
}

bool is_same_number(const Value& a, const Value& b) {
  return a.is_int() ? a.to_sym_int().same_as(b.to_sym_int()) : a == b;
}

// --- cond ------------------------------------------------------------------------------------------------

Value run_cond(Args args) {
  return as_tuple(function_at(args, truth(args[0]) ? 1 : 2).call(list_at(args, 3)));
}

std::vector<Branch> cond_branches(Args args) {
  return {{1, "true_graph", list_at(args, 3)}, {2, "false_graph", list_at(args, 3)}};
}

Value fake_cond(Args args) {
  ValueList yes = shapes_of(function_at(args, 1), list_at(args, 3));
  ValueList no = shapes_of(function_at(args, 2), list_at(args, 3));
  check_branches(yes, no);
  for (size_t i = 0; i < yes.size(); ++i)
    if (yes[i].is_number() && !is_same_number(yes[i], no[i])) yes[i] = unknown_number("cond", yes[i]);
  return Value::tuple(std::move(yes));
}

// --- map -------------------------------------------------------------------------------------------------

// How often a function runs over the rows of these tensors.
SymInt row_count(const char* what, const ValueList& xs) {
  require(!xs.empty() && xs[0].is_tensor() && xs[0].tensor_ref().dim() > 0,
          "{}: expected tensors whose rows it goes through, but got {}", what,
          xs.empty() ? "none" : type_text(xs[0]));
  return xs[0].tensor_ref().size(0);
}

Value stack_rows(const char* what, const std::vector<ValueList>& rows) {
  for (const ValueList& row : rows)
    require(row.size() == rows[0].size(), "{}: its function gives {} values for one row and {} for another",
            what, rows[0].size(), row.size());
  ValueList columns;
  for (size_t c = 0; !rows.empty() && c < rows[0].size(); ++c) {
    std::vector<Tensor> column;
    for (const ValueList& row : rows) column.push_back(row[c].to_tensor());
    columns.emplace_back(stack(column, 0));
  }
  return Value::tuple(std::move(columns));
}

// What stacking the results of no rows gives: the function runs on nothing but shapes. Its first inputs are
// `before`, then a row of each x, then `fixed`.
ValueList without_rows(Callable& function, const ValueList& before, const ValueList& xs,
                       const ValueList& fixed) {
  ValueList results, columns;
  {
    FakeMode mode(FakeOptions{.allow_real_inputs = true});
    auto faked = [&](const Tensor& tensor) { return Value(mode.fake_of(tensor.detach())); };
    ValueList rows;
    for (const Value& x : xs) {
      const SymIntSpan sizes = x.tensor_ref().sizes();
      rows.emplace_back(faked(x.tensor_ref()).to_tensor().new_empty(SymInts(sizes.begin() + 1, sizes.end())));
    }
    results =
        as_tuple(function.call(joined(joined(map_tensors(before, faked), rows), map_tensors(fixed, faked))))
            .elements();
  }
  for (size_t i = before.size(); i < results.size(); ++i) {
    const Tensor row = results[i].to_tensor();
    columns.emplace_back(empty(joined_sizes(0, row), row.dtype(), std::nullopt, row.device()));
  }
  return columns;
}

Value run_map(Args args) {
  ValueList xs = list_at(args, 1), fixed = list_at(args, 2);
  int64_t count = row_count("map", xs);
  if (count == 0) return Value::tuple(without_rows(function_at(args, 0), {}, xs, fixed));
  std::vector<ValueList> rows;
  for (int64_t i = 0; i < count; ++i)
    rows.push_back(as_tuple(function_at(args, 0).call(joined(slices(xs, i), fixed))).elements());
  return stack_rows("map", rows);
}

std::vector<Branch> map_branches(Args args) {
  return {{0, "body_graph", joined(slices(list_at(args, 1), 0), list_at(args, 2))}};
}

// With a dim of this size in front.
ValueList stacked_shapes(const ValueList& rows, const SymInt& count) {
  ValueList shapes;
  for (const Value& row : rows) {
    Tensor tensor = row.to_tensor();
    shapes.emplace_back(tensor.unsqueeze(0).expand(joined_sizes(count, tensor)).contiguous());
  }
  return shapes;
}

Value fake_map(Args args) {
  ValueList xs = list_at(args, 1);
  const SymInt count = row_count("map", xs);
  ValueList row = shapes_of(function_at(args, 0), joined(slices(xs, 0), list_at(args, 2)));
  return Value::tuple(stacked_shapes(row, count));
}

// --- scan ------------------------------------------------------------------------------------------------

Value run_scan(Args args) {
  ValueList carry = list_at(args, 1), xs = list_at(args, 2), fixed = list_at(args, 3);
  int64_t count = row_count("scan", xs);
  if (count == 0) return Value::tuple(joined(carry, without_rows(function_at(args, 0), carry, xs, fixed)));
  std::vector<ValueList> rows;
  for (int64_t i = 0; i < count; ++i) {
    ValueList results =
        as_tuple(function_at(args, 0).call(joined(joined(carry, slices(xs, i)), fixed))).elements();
    check_carry("scan", carry, results);
    auto ys = results.begin() + static_cast<ptrdiff_t>(carry.size());
    rows.emplace_back(ys, results.end());
    carry.assign(results.begin(), ys);
  }
  return Value::tuple(joined(carry, stack_rows("scan", rows).elements()));
}

std::vector<Branch> scan_branches(Args args) {
  ValueList inputs = joined(joined(list_at(args, 1), slices(list_at(args, 2), 0)), list_at(args, 3));
  return {{0, "scan_combine_graph", inputs, list_at(args, 1).size()}};
}

Value fake_scan(Args args) {
  ValueList carry = list_at(args, 1), xs = list_at(args, 2);
  const SymInt count = row_count("scan", xs);
  ValueList inputs = joined(joined(varying("scan", carry), slices(xs, 0)), list_at(args, 3));
  ValueList results = shapes_of(function_at(args, 0), inputs);
  check_carry("scan", carry, results);
  auto ys = results.begin() + static_cast<ptrdiff_t>(carry.size());
  ValueList all = varying("scan", {results.begin(), ys});
  return Value::tuple(joined(all, stacked_shapes({ys, results.end()}, count)));
}

// --- while_loop ------------------------------------------------------------------------------------------

// The iterations of a loop: `carried` goes from one to the next.
class Iterations {
 public:
  explicit Iterations(Args args) : carried(list_at(args, 2)), args_(args), fixed_(list_at(args, 3)) {}

  // Runs one if the condition holds.
  bool next() {
    const Value decision = as_tuple(function_at(args_, 0).call(joined(carried, fixed_)));
    check_condition(decision.elements());
    if (!truth(decision.elements()[0])) return false;
    ValueList results = as_tuple(function_at(args_, 1).call(joined(carried, fixed_))).elements();
    require(results.size() == carried.size(), "while_loop: its body gives {} values for {} that are carried",
            results.size(), carried.size());
    carried = std::move(results);
    return true;
  }
  ValueList carried;

 private:
  Args args_;
  ValueList fixed_;
};

Value run_while(Args args) {
  Iterations iterations(args);
  while (iterations.next()) {
  }
  return Value::tuple(std::move(iterations.carried));
}

std::vector<Branch> while_branches(Args args) {
  ValueList inputs = joined(list_at(args, 2), list_at(args, 3));
  const size_t carried = list_at(args, 2).size();
  return {{0, "while_loop_cond_graph", inputs, carried}, {1, "while_loop_body_graph", inputs, carried}};
}

Value fake_while(Args args) {
  ValueList carried = list_at(args, 2);
  ValueList next = shapes_of(function_at(args, 1), joined(varying("while_loop", carried), list_at(args, 3)));
  require(next.size() == carried.size(), "while_loop: its body gives {} values for {} that are carried",
          next.size(), carried.size());
  check_carry("while_loop", carried, next);
  return Value::tuple(varying("while_loop", next));
}

// What each iteration gave, stacked; one entry of what there was where there is none.
Value run_stacked_while(Args args) {
  Iterations iterations(args);
  std::vector<ValueList> given;
  while (iterations.next()) given.push_back(iterations.carried);
  if (given.empty()) given.push_back(iterations.carried);
  return stack_rows("while_loop", given);
}

Value fake_stacked_while(Args args) {
  ValueList iteration = fake_while(args).elements();
  FakeMode* mode = FakeMode::current();
  require(mode && mode->options().shape_env,
          "while_loop: its gradient needs what every round gave, and how many there are depends on data; "
          "capture it with CaptureMode::kSymbolic or kReal, or detach what it carries");
  SymInt count =
      mode->options().shape_env->create_unbacked_int(sym::Source::computed("the rounds of a while_loop"));
  check_size_like(count);
  check(count >= 1, "a while_loop keeps at least one entry");
  return Value::tuple(stacked_shapes(iteration, count));
}

// --- the operators ---------------------------------------------------------------------------------------

constexpr HigherOrder kCondRules = {.seen_by = kSeenBy,
                                    .run = run_cond,
                                    .autograd = autograd_rule<differentiate_cond>,
                                    .vmap = vmap_cond,
                                    .jvp = jvp_rule<differentiate_cond>,
                                    .branches = cond_branches,
                                    .fake = fake_cond,
                                    .node_name = "conditional"};  // as in PyTorch's graphs
constexpr HigherOrder kMapRules = {.seen_by = kSeenBy,
                                   .run = run_map,
                                   .autograd = autograd_rule<differentiate_map>,
                                   .vmap = vmap_map,
                                   .jvp = jvp_rule<differentiate_map>,
                                   .branches = map_branches,
                                   .fake = fake_map};
constexpr HigherOrder kScanRules = {.seen_by = kSeenBy,
                                    .run = run_scan,
                                    .autograd = autograd_rule<differentiate_scan>,
                                    .vmap = vmap_scan,
                                    .jvp = jvp_rule<differentiate_scan>,
                                    .branches = scan_branches,
                                    .fake = fake_scan};
constexpr HigherOrder kWhileRules = {.seen_by = kSeenBy,
                                     .run = run_while,
                                     .autograd = autograd_rule<differentiate_while>,
                                     .vmap = vmap_while,
                                     .jvp = jvp_rule<differentiate_while>,
                                     .branches = while_branches,
                                     .fake = fake_while};
constexpr HigherOrder kStackedWhileRules = {.seen_by = kSeenBy,
                                            .run = run_stacked_while,
                                            .autograd = autograd_rule<differentiate_stacked_while>,
                                            .vmap = vmap_while,
                                            .jvp = jvp_rule<differentiate_stacked_while>,
                                            .branches = while_branches,
                                            .fake = fake_stacked_while};

constinit const OpDef kCond = {
    .schema = "higher_order::cond(Any pred, Any true_fn, Any false_fn, Any[] operands) -> Any[]",
    .higher_order = &kCondRules};
constinit const OpDef kMap = {.schema = "higher_order::map_impl(Any f, Any[] xs, Any[] pos_args) -> Any[]",
                              .higher_order = &kMapRules};
constinit const OpDef kScan = {
    .schema = "higher_order::scan(Any combine_fn, Any[] init, Any[] xs, Any[] additional_inputs) -> Any[]",
    .higher_order = &kScanRules};
constinit const OpDef kWhile = {.schema =
                                    "higher_order::while_loop(Any cond_fn, Any body_fn, Any[] "
                                    "carried_inputs, Any[] additional_inputs) -> Any[]",
                                .higher_order = &kWhileRules};
constinit const OpDef kStackedWhile = {.schema =
                                           "higher_order::while_loop_stack_output(Any cond_fn, Any body_fn, "
                                           "Any[] carried_inputs, Any[] additional_inputs) -> Any[]",
                                       .higher_order = &kStackedWhileRules};

std::span<const Operator> operators() {
  static const Operator all[] = {
      {&kCond, kCond.schema, OpForm::kFunctional, nullptr},
      {&kMap, kMap.schema, OpForm::kFunctional, nullptr},
      {&kScan, kScan.schema, OpForm::kFunctional, nullptr},
      {&kWhile, kWhile.schema, OpForm::kFunctional, nullptr},
      {&kStackedWhile, kStackedWhile.schema, OpForm::kFunctional, nullptr},
      {&out_dtype_definition(), out_dtype_definition().schema, OpForm::kFunctional, nullptr},
      {&auto_functionalized_definition(), auto_functionalized_definition().schema, OpForm::kFunctional,
       nullptr},
      {&grad_mode_region_definition(), grad_mode_region_definition().schema, OpForm::kFunctional, nullptr},
      {&autocast_region_definition(), autocast_region_definition().schema, OpForm::kFunctional, nullptr},
      {&associative_scan_definition(), associative_scan_definition().schema, OpForm::kFunctional, nullptr},
  };
  return all;
}

}  // namespace

const Operator& cond_operator() { return operators()[0]; }
const Operator& map_operator() { return operators()[1]; }
const Operator& scan_operator() { return operators()[2]; }
const Operator& while_operator() { return operators()[3]; }
const Operator& stacked_while_operator() { return operators()[4]; }
const Operator& out_dtype_operator() { return operators()[5]; }
const Operator& auto_functionalized_operator() { return operators()[6]; }

std::span<const Operator> detail::operators_over_functions() { return operators(); }

}  // namespace weft
