// The operators over functions that control flow is made of, and what each layer does with them. A gradient
// is the same operator over the pullbacks of the functions.
#include "func/control_flow.h"
#include "func/level.h"
#include "func/vmap_level.h"
#include "ops/table.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/function.h"
#include "weft/base/error.h"
#include "weft/ops/fake.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

const Operator& cond_operator();
const Operator& map_operator();
const Operator& scan_operator();
const Operator& while_operator();

Callable& function_at(Args args, size_t i) {
  Callable* function = callable_in(args[i]);
  require(function != nullptr, "control flow: expected a function, but got {}", args[i].kind_name());
  return *function;
}

ValueList list_at(Args args, size_t i) { return args[i].elements(); }
Value as_tuple(const Value& value) {
  return value.is_sequence() ? Value::tuple(value.elements()) : Value::tuple({value});
}
Value callable_value(ValueFunction f) { return Value(Ref<ValueObject>(make_closure(std::move(f)))); }

ValueList joined(ValueList a, const ValueList& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

SymInts joined_sizes(const SymInt& first, const Tensor& tensor) {
  SymInts sizes;
  sizes.push_back(first);
  for (const SymInt& size : tensor.sizes()) sizes.push_back(size);
  return sizes;
}

bool truth(const Value& pred) {
  return pred.is_tensor() ? pred.to_tensor().item().to_bool() : pred.to_bool();
}

// --- gradients -------------------------------------------------------------------------------------------

bool is_differentiable_tensor(const Value& value) {
  return value.is_tensor() && is_differentiable(value.tensor_ref().dtype());
}

// leaves, then one gradient for each differentiable result, to one gradient for each differentiable leaf.
ValueFunction pullback_of(Ref<Callable> f, size_t leaf_count) {
  return [f, leaf_count](Args args) {
    ValueList leaves(args.begin(), args.begin() + static_cast<ptrdiff_t>(leaf_count));
    func::Tensors primals, grads;
    for (const Value& leaf : leaves)
      if (is_differentiable_tensor(leaf)) primals.push_back(leaf.to_tensor());
    for (const Value& grad : args.subspan(leaf_count)) grads.push_back(grad.to_tensor());
    auto on_primals = [&](const func::Tensors& own) {
      ValueList all = leaves;
      size_t next = 0;
      for (Value& leaf : all)
        if (is_differentiable_tensor(leaf)) leaf = own[next++];
      func::Tensors results;
      Value returned = as_tuple(f->call(all));
      for (const Value& result : returned.elements())
        if (is_differentiable_tensor(result)) results.push_back(result.to_tensor());
      return results;
    };
    auto [results, pull] = func::vjp_of(on_primals, primals);
    func::Tensors found = pull(grads);
    ValueList gradients;
    for (size_t i = 0; i < primals.size(); ++i)
      gradients.emplace_back(found[i].defined() ? found[i] : zeros_like(primals[i]));
    return Value::tuple(std::move(gradients));
  };
}

// Results as tensors, which are all that a custom function gives.
std::vector<Tensor> tensors_of(const Value& results, std::string_view what) {
  std::vector<Tensor> tensors;
  for (const Value& result : results.elements()) {
    require(result.is_tensor(), "{}: its functions must give tensors to be differentiated, but one gives {}",
            what, result.kind_name());
    tensors.push_back(result.to_tensor());
  }
  return tensors;
}

// The tensors among leaves, and the leaves again with others in their places.
std::vector<Tensor> tensors_among(const ValueList& leaves) {
  std::vector<Tensor> tensors;
  for (const Value& leaf : leaves)
    if (leaf.is_tensor()) tensors.push_back(leaf.to_tensor());
  return tensors;
}
ValueList with_tensors(ValueList leaves, std::span<const Tensor> tensors) {
  size_t next = 0;
  for (Value& leaf : leaves)
    if (leaf.is_tensor()) leaf = tensors[next++];
  return leaves;
}

ValueList differentiable_grads(const std::vector<Tensor>& grads) {
  ValueList values;
  for (const Tensor& grad : grads)
    if (grad.defined() && is_differentiable(grad.dtype())) values.emplace_back(grad);
  return values;
}

// One gradient for each tensor among the leaves, from those of the differentiable ones.
std::vector<Tensor> spread(const ValueList& leaves, const ValueList& gradients) {
  std::vector<Tensor> all;
  size_t next = 0;
  for (const Value& leaf : leaves) {
    if (!leaf.is_tensor()) continue;
    all.push_back(is_differentiable_tensor(leaf) ? gradients[next++].to_tensor() : Tensor());
  }
  return all;
}

struct CondFunction final : autograd::CustomFunction {
  std::string type_name() const override { return "Cond"; }
  std::vector<Tensor> forward(autograd::FunctionContext& ctx, const std::vector<Tensor>& tensors) override {
    ctx.save_for_backward(tensors);
    auto [pred, operands] = split(tensors);
    return tensors_of(call(cond_operator(), {pred, on_true, on_false, Value::list(operands)}), "cond");
  }
  std::vector<Tensor> backward(autograd::FunctionContext& ctx, const std::vector<Tensor>& grads) override {
    auto [pred, operands] = split(ctx.saved_tensors());
    auto pull = [&](const Value& branch) {
      return callable_value(pullback_of(Ref<Callable>(callable_in(branch)), operands.size()));
    };
    Value gradients = call(cond_operator(), {pred, pull(on_true), pull(on_false),
                                             Value::list(joined(operands, differentiable_grads(grads)))});
    return spread(leaves, gradients.elements());
  }
  std::pair<Value, ValueList> split(const std::vector<Tensor>& tensors) const {
    ValueList all = with_tensors(leaves, tensors);
    return {all[0], {all.begin() + 1, all.end()}};
  }

  Value on_true, on_false;
  ValueList leaves;  // the condition, then the operands
};

struct MapFunction final : autograd::CustomFunction {
  std::string type_name() const override { return "Map"; }
  std::vector<Tensor> forward(autograd::FunctionContext& ctx, const std::vector<Tensor>& tensors) override {
    ctx.save_for_backward(tensors);
    auto [own_xs, own_args] = split(tensors);
    return tensors_of(call(map_operator(), {body, Value::list(own_xs), Value::list(own_args)}), "map");
  }
  std::vector<Tensor> backward(autograd::FunctionContext& ctx, const std::vector<Tensor>& grads) override {
    auto [own_xs, own_args] = split(ctx.saved_tensors());
    ValueList incoming = differentiable_grads(grads);
    // The body's leaves are a slice of each x, then the arguments; its gradients follow the slices.
    size_t slices = own_xs.size(), fixed = own_args.size(), gradients = incoming.size();
    ValueFunction pull = pullback_of(Ref<Callable>(callable_in(body)), slices + fixed);
    auto step = [pull, slices, fixed, gradients](Args leaves) {
      ValueList ordered(leaves.begin(), leaves.begin() + static_cast<ptrdiff_t>(slices));
      ordered.insert(ordered.end(), leaves.begin() + static_cast<ptrdiff_t>(slices + gradients),
                     leaves.end());
      ordered.insert(ordered.end(), leaves.begin() + static_cast<ptrdiff_t>(slices),
                     leaves.begin() + static_cast<ptrdiff_t>(slices + gradients));
      invariant(ordered.size() == slices + fixed + gradients, "a pullback of {} leaves", ordered.size());
      return pull(ordered);
    };
    Value found = call(map_operator(),
                       {callable_value(step), Value::list(joined(own_xs, incoming)), Value::list(own_args)});
    // What an argument got in each slice is added up.
    ValueList all = joined(own_xs, own_args), summed;
    size_t next = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!is_differentiable_tensor(all[i])) continue;
      Tensor gradient = found.elements()[next++].to_tensor();
      summed.emplace_back(i < own_xs.size() ? gradient : gradient.sum({0}));
    }
    return spread(all, summed);
  }
  std::pair<ValueList, ValueList> split(const std::vector<Tensor>& tensors) const {
    ValueList all = with_tensors(joined(xs, args), tensors);
    return {{all.begin(), all.begin() + static_cast<ptrdiff_t>(xs.size())},
            {all.begin() + static_cast<ptrdiff_t>(xs.size()), all.end()}};
  }

  Value body;
  ValueList xs, args;
};

// --- rules that are alike --------------------------------------------------------------------------------

bool is_captured() { return layer_state().active != 0 || layer_state().level_depth != 0; }

bool wants_gradient(Args args) {
  if (!is_grad_enabled()) return false;
  for (const Value& arg : args) {
    if (arg.is_tensor() && arg.tensor_ref().requires_grad()) return true;
    if (arg.is_sequence() && wants_gradient(Args(arg.elements()))) return true;
  }
  return false;
}

Value tuple_of(const std::vector<Tensor>& tensors) { return Value::tuple({tensors.begin(), tensors.end()}); }

// Outside of captures the tape sees what runs.
template <typename Differentiate>
Value autograd_rule(const Operator& op, Args args, FunctionRef<Value(Args)> call_below,
                    const Differentiate& differentiate) {
  if (!wants_gradient(args)) return call_below(args);
  if (is_captured()) return differentiate();
  return op.def().higher_order->run(args);
}

Value differentiate_cond(Args args) {
  auto function = make_ref<CondFunction>();
  function->on_true = args[1];
  function->on_false = args[2];
  function->leaves = joined({args[0]}, list_at(args, 3));
  std::vector<Tensor> tensors = tensors_among(function->leaves);
  return tuple_of(autograd::apply_function(function, tensors));
}
Value differentiate_map(Args args) {
  auto function = make_ref<MapFunction>();
  function->body = args[0];
  function->xs = list_at(args, 1);
  function->args = list_at(args, 2);
  std::vector<Tensor> tensors = tensors_among(joined(function->xs, function->args));
  return tuple_of(autograd::apply_function(function, tensors));
}

Value cond_autograd(const Operator& op, Args args, FunctionRef<Value(Args)> call_below) {
  return autograd_rule(op, args, call_below, [&] { return differentiate_cond(args); });
}
Value map_autograd(const Operator& op, Args args, FunctionRef<Value(Args)> call_below) {
  return autograd_rule(op, args, call_below, [&] { return differentiate_map(args); });
}
Value loop_autograd(const Operator& op, Args args, FunctionRef<Value(Args)> call_below) {
  return autograd_rule(op, args, call_below, [&]() -> Value {
    unsupported("{}: its gradient cannot be captured yet; detach its operands, or capture under NoGrad",
                op.name());
  });
}
Value cond_jvp(Level&, const Operator&, Args args) { return differentiate_cond(args); }
Value map_jvp(Level&, const Operator&, Args args) { return differentiate_map(args); }
Value no_jvp(Level&, const Operator& op, Args) {
  unsupported("{}: forward-mode derivatives of loops are not supported", op.name());
}
Value no_vmap(Level&, const Operator& op, Args) {
  unsupported("vmap: {} inside of vmap is not supported; write the batch dim into its functions", op.name());
}

// What a function gives, without data.
ValueList shapes_of(const Value& results) {
  ValueList shapes;
  Value all = as_tuple(results);
  for (const Value& result : all.elements())
    shapes.push_back(result.is_tensor() ? Value(shape_only(result.to_tensor())) : result);
  return shapes;
}

void check_same_type(std::string_view what, const Value& a, const Value& b, size_t i) {
  bool alike = a.kind() == b.kind();
  if (alike && a.is_tensor()) {
    const Tensor &x = a.tensor_ref(), &y = b.tensor_ref();
    alike = x.dtype() == y.dtype() && x.dim() == y.dim();
    for (int64_t d = 0; alike && d < x.dim(); ++d) alike = guard_or(x.size(d) == y.size(d), true);
  }
  require(alike, "{}: result {} is {} in one function and {} in the other; they must be of one type", what, i,
          a.to_string(), b.to_string());
}

// --- cond ------------------------------------------------------------------------------------------------

Value run_cond(Args args) {
  return as_tuple(function_at(args, truth(args[0]) ? 1 : 2).call(list_at(args, 3)));
}

std::vector<Branch> cond_branches(Args args) {
  return {{1, "true_graph", list_at(args, 3)}, {2, "false_graph", list_at(args, 3)}};
}

Value fake_cond(Args args) {
  ValueList yes = shapes_of(function_at(args, 1).call(list_at(args, 3)));
  ValueList no = shapes_of(function_at(args, 2).call(list_at(args, 3)));
  require(yes.size() == no.size(), "cond: its functions give {} and {} results", yes.size(), no.size());
  for (size_t i = 0; i < yes.size(); ++i) check_same_type("cond", yes[i], no[i], i);
  return Value::tuple(std::move(yes));
}

// A function under the level: batched operands hidden, results with the batch dim in front.
Value batched_branch(const Ref<Level>& level, const Value& branch, std::vector<int64_t> dims, SymInt size) {
  Ref<Callable> function(callable_in(branch));
  return callable_value([level, function, dims = std::move(dims), size](Args args) {
    ValueList wrapped;
    for (size_t i = 0; i < args.size(); ++i)
      wrapped.push_back(dims[i] < 0 ? args[i] : Value(wrap_at(level, args[i].to_tensor(), dims[i])));
    Value results;
    {
      LayerStateScope saved;
      layer_state().level_depth = level->depth;
      layer_state().active |= layer::kLevels;
      layer_state().mask |= layer::kLevels;
      results = as_tuple(function->call(wrapped));
    }
    ValueList fronted;
    for (const Value& result : results.elements()) {
      Tensor tensor = result.to_tensor();
      LevelBox* box = box_at(tensor, *level);
      fronted.emplace_back(box ? movedim(box->value, box->batch_dim, 0)
                               : tensor.unsqueeze(0).expand(joined_sizes(size, tensor)));
    }
    return Value::tuple(std::move(fronted));
  });
}

Value vmap_cond(Level& level, const Operator& op, Args args) {
  auto& vmap = static_cast<VmapLevel&>(level);
  Ref<Level> self(&level);
  Value pred = args[0];
  if (pred.is_tensor() && box_at(pred.tensor_ref(), level)) {
    // Each example has its own condition: both functions run, and each example takes its results.
    Value yes = as_tuple(function_at(args, 1).call(list_at(args, 3)));
    Value no = as_tuple(function_at(args, 2).call(list_at(args, 3)));
    ValueList chosen;
    for (size_t i = 0; i < yes.elements().size(); ++i)
      chosen.emplace_back(
          where(pred.to_tensor(), yes.elements()[i].to_tensor(), no.elements()[i].to_tensor()));
    return Value::tuple(std::move(chosen));
  }
  std::vector<int64_t> dims;
  ValueList below;
  for (const Value& operand : list_at(args, 3)) {
    LevelBox* box = operand.is_tensor() ? box_at(operand.tensor_ref(), level) : nullptr;
    dims.push_back(box ? box->batch_dim : -1);
    below.push_back(box ? Value(box->value) : operand);
  }
  Value results;
  {
    Value yes = batched_branch(self, args[1], dims, vmap.size());
    Value no = batched_branch(self, args[2], dims, vmap.size());
    BelowLevel scope(level);
    const Value inner[] = {pred, yes, no, Value::list(below)};
    results = dispatch::redispatch(op, inner);
  }
  ValueList wrapped;
  for (const Value& result : results.elements()) wrapped.emplace_back(wrap_at(self, result.to_tensor(), 0));
  return Value::tuple(std::move(wrapped));
}

// --- map -------------------------------------------------------------------------------------------------

ValueList slices(const ValueList& xs, int64_t i) {
  ValueList slice;
  for (const Value& x : xs) slice.emplace_back(select(x.to_tensor(), 0, i));
  return slice;
}

Value stack_rows(const std::vector<ValueList>& rows) {
  ValueList columns;
  for (size_t c = 0; !rows.empty() && c < rows[0].size(); ++c) {
    std::vector<Tensor> column;
    for (const ValueList& row : rows) column.push_back(row[c].to_tensor());
    columns.emplace_back(stack(column, 0));
  }
  return Value::tuple(std::move(columns));
}

Value run_map(Args args) {
  ValueList xs = list_at(args, 1), fixed = list_at(args, 2);
  int64_t count = xs.at(0).to_tensor().size(0);
  std::vector<ValueList> rows;
  for (int64_t i = 0; i < count; ++i)
    rows.push_back(as_tuple(function_at(args, 0).call(joined(slices(xs, i), fixed))).elements());
  return stack_rows(rows);
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
  Value row = as_tuple(function_at(args, 0).call(joined(slices(xs, 0), list_at(args, 2))));
  return Value::tuple(stacked_shapes(row.elements(), xs.at(0).to_tensor().size(0)));
}

// --- scan ------------------------------------------------------------------------------------------------

Value run_scan(Args args) {
  ValueList carry = list_at(args, 1), xs = list_at(args, 2), fixed = list_at(args, 3);
  int64_t count = xs.at(0).to_tensor().size(0);
  std::vector<ValueList> rows;
  for (int64_t i = 0; i < count; ++i) {
    ValueList results =
        as_tuple(function_at(args, 0).call(joined(joined(carry, slices(xs, i)), fixed))).elements();
    auto ys = results.begin() + static_cast<ptrdiff_t>(carry.size());
    rows.emplace_back(ys, results.end());
    carry.assign(results.begin(), ys);
  }
  return Value::tuple(joined(carry, stack_rows(rows).elements()));
}

std::vector<Branch> scan_branches(Args args) {
  ValueList inputs = joined(joined(list_at(args, 1), slices(list_at(args, 2), 0)), list_at(args, 3));
  return {{0, "scan_combine_graph", inputs}};
}

Value fake_scan(Args args) {
  ValueList carry = list_at(args, 1), xs = list_at(args, 2);
  ValueList results =
      shapes_of(function_at(args, 0).call(joined(joined(carry, slices(xs, 0)), list_at(args, 3))));
  for (size_t i = 0; i < carry.size(); ++i) check_same_type("scan", carry[i], results[i], i);
  auto ys = results.begin() + static_cast<ptrdiff_t>(carry.size());
  ValueList all(results.begin(), ys);
  return Value::tuple(joined(all, stacked_shapes({ys, results.end()}, xs.at(0).to_tensor().size(0))));
}

// --- while_loop ------------------------------------------------------------------------------------------

Value run_while(Args args) {
  ValueList carried = list_at(args, 2), fixed = list_at(args, 3);
  while (truth(as_tuple(function_at(args, 0).call(joined(carried, fixed))).elements()[0])) {
    ValueList next = as_tuple(function_at(args, 1).call(joined(carried, fixed))).elements();
    require(next.size() == carried.size(), "while_loop: its body gives {} values for {} that are carried",
            next.size(), carried.size());
    carried = std::move(next);
  }
  return Value::tuple(std::move(carried));
}

std::vector<Branch> while_branches(Args args) {
  ValueList inputs = joined(list_at(args, 2), list_at(args, 3));
  return {{0, "while_loop_cond_graph", inputs}, {1, "while_loop_body_graph", inputs}};
}

Value fake_while(Args args) {
  ValueList carried = list_at(args, 2);
  ValueList next = shapes_of(function_at(args, 1).call(joined(carried, list_at(args, 3))));
  require(next.size() == carried.size(), "while_loop: its body gives {} values for {} that are carried",
          next.size(), carried.size());
  for (size_t i = 0; i < carried.size(); ++i) check_same_type("while_loop", carried[i], next[i], i);
  return Value::tuple(std::move(next));
}

// --- the operators ---------------------------------------------------------------------------------------

constexpr uint32_t kSeenBy = layer::kLevels | layer::kFunctionalizeUpper | layer::kRecorderUpper |
                             layer::kAutograd | layer::kFunctionalizeLower | layer::kRecorderLower |
                             layer::kFake;

constexpr HigherOrder kCondRules = {.seen_by = kSeenBy,
                                    .run = run_cond,
                                    .autograd = cond_autograd,
                                    .vmap = vmap_cond,
                                    .jvp = cond_jvp,
                                    .branches = cond_branches,
                                    .fake = fake_cond};
constexpr HigherOrder kMapRules = {.seen_by = kSeenBy,
                                   .run = run_map,
                                   .autograd = map_autograd,
                                   .vmap = no_vmap,
                                   .jvp = map_jvp,
                                   .branches = map_branches,
                                   .fake = fake_map};
constexpr HigherOrder kScanRules = {.seen_by = kSeenBy,
                                    .run = run_scan,
                                    .autograd = loop_autograd,
                                    .vmap = no_vmap,
                                    .jvp = no_jvp,
                                    .branches = scan_branches,
                                    .fake = fake_scan};
constexpr HigherOrder kWhileRules = {.seen_by = kSeenBy,
                                     .run = run_while,
                                     .autograd = loop_autograd,
                                     .vmap = no_vmap,
                                     .jvp = no_jvp,
                                     .branches = while_branches,
                                     .fake = fake_while};

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

std::span<const Operator> operators() {
  static const Operator all[] = {
      {&kCond, kCond.schema, OpForm::kFunctional, nullptr},
      {&kMap, kMap.schema, OpForm::kFunctional, nullptr},
      {&kScan, kScan.schema, OpForm::kFunctional, nullptr},
      {&kWhile, kWhile.schema, OpForm::kFunctional, nullptr},
  };
  return all;
}
const Operator& cond_operator() { return operators()[0]; }
const Operator& map_operator() { return operators()[1]; }
const Operator& scan_operator() { return operators()[2]; }
const Operator& while_operator() { return operators()[3]; }

Value value_of(const FlatFunction& f) { return Value(Ref<ValueObject>(f.callable())); }

}  // namespace

std::span<const Operator> detail::operators_over_functions() { return operators(); }

Value apply_cond(const Value& pred, const FlatFunction& on_true, const FlatFunction& on_false,
                 const ValueList& operands) {
  return call(cond_operator(), {pred, value_of(on_true), value_of(on_false), Value::list(operands)});
}
Value apply_map(const FlatFunction& body, const ValueList& xs, const ValueList& args) {
  return call(map_operator(), {value_of(body), Value::list(xs), Value::list(args)});
}
Value apply_scan(const FlatFunction& body, const ValueList& init, const ValueList& xs,
                 const ValueList& args) {
  return call(scan_operator(), {value_of(body), Value::list(init), Value::list(xs), Value::list(args)});
}
Value apply_while(const FlatFunction& condition, const FlatFunction& body, const ValueList& carried,
                  const ValueList& args) {
  return call(while_operator(),
              {value_of(condition), value_of(body), Value::list(carried), Value::list(args)});
}

}  // namespace weft
