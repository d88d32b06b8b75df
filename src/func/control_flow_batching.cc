// The operators over functions under vmap: the same operator below the level, over functions that run at the
// level. Where examples diverge, all take each branch, and every example keeps its own results by a mask.
#include "func/control_flow_rules.h"
#include "func/substitution.h"
#include "func/vmap_level.h"
#include "ops/support/batching.h"
#include "weft/base/error.h"
#include "weft/ops/fake.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using namespace flow;

// Values of below a level, each with the dim that the level hides; -1 for what is the same for all examples.
struct Unwrapped {
  ValueList values;
  std::vector<int64_t> dims;
};

Unwrapped unwrapped(const ValueList& operands, const Level& level) {
  Unwrapped below;
  for (const Value& operand : operands) {
    LevelBox* box = operand.is_tensor() ? box_at(operand.tensor_ref(), level) : nullptr;
    below.dims.push_back(box ? box->batch_dim : -1);
    below.values.push_back(box ? Value(box->value) : operand);
  }
  return below;
}

// Moves the hidden dims to `dim`. Called below the level.
void move_batch(Unwrapped& operands, int64_t dim) {
  for (size_t i = 0; i < operands.values.size(); ++i) {
    if (operands.dims[i] < 0) continue;
    operands.values[i] = movedim(operands.values[i].to_tensor(), operands.dims[i], dim);
    operands.dims[i] = dim;
  }
}

std::vector<int64_t> joined_dims(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
// Where the batch is in a slice along dim 0 of what has it at dim 1.
std::vector<int64_t> slice_dims(std::vector<int64_t> dims) {
  for (int64_t& dim : dims) dim = dim < 0 ? -1 : dim - 1;
  return dims;
}
std::vector<int64_t> front_dims(const std::vector<bool>& is_batched) {
  std::vector<int64_t> dims;
  for (bool batched : is_batched) dims.push_back(batched ? 0 : -1);
  return dims;
}

// One call of a function at a level like `like`, from wherever its operator runs: other levels may have come
// and gone in between, so that the call has a level of its own.
struct CallAtLevel {
  CallAtLevel(const VmapLevel& like, Callable& function, Args args, const std::vector<int64_t>& dims)
      : level(make_ref<VmapLevel>(like.size(), like.randomness())) {
    LevelEntry entry(level);
    ValueList wrapped;
    for (size_t i = 0; i < args.size(); ++i)
      wrapped.push_back(dims[i] < 0 ? args[i] : Value(wrap_at(level, args[i].to_tensor(), dims[i])));
    results = as_tuple(function.call(wrapped)).elements();
  }
  bool differs(const Value& result) const {
    return result.is_tensor() && box_at(result.tensor_ref(), *level) != nullptr;
  }
  Tensor with_batch_in_front(const Tensor& result) const {
    LevelBox* box = box_at(result, *level);
    return with_batch_first(box ? box->value : result, box ? box->batch_dim : -1, level->size());
  }

  Ref<VmapLevel> level;
  ValueList results;
};

// A function of one example as one of batches, for calls below the level. Results have the batch in front,
// but for those that are the same for all where `is_batched` says so.
Value batched_function(VmapLevel& level, const Value& function, std::vector<int64_t> dims,
                       std::vector<bool> is_batched = {}) {
  return callable_value([self = Ref<VmapLevel>(&level), f = Ref<Callable>(callable_in(function)),
                         dims = std::move(dims), is_batched = std::move(is_batched)](Args args) {
    CallAtLevel call(*self, *f, args, dims);
    ValueList fronted;
    for (const Value& result : call.results) {
      const bool is_same = !result.is_tensor() || (!is_batched.empty() && !is_batched[fronted.size()]);
      fronted.push_back(is_same ? result : Value(call.with_batch_in_front(result.to_tensor())));
    }
    return Value::tuple(std::move(fronted));
  });
}

// Which results of a function differ between examples: found on tensors without data, by a run that leaves
// nothing behind.
std::vector<bool> which_differ(VmapLevel& level, const Value& function, const ValueList& inputs,
                               const std::vector<int64_t>& dims) {
  std::optional<FakeMode> fake;
  std::optional<sym::Trial> trial;
  // With a ShapeEnv, since iterations of a loop and numbers out of tensors are symbols.
  if (!FakeMode::current()) fake.emplace(make_ref<FakeConverter>(ShapeEnv::create()), true);
  else if (const Ref<ShapeEnv>& env = FakeMode::current()->options().shape_env) trial.emplace(*env);
  MaskScope quiet(kUnrecorded);
  FakeConverter converter;
  ValueList own;
  for (const Value& input : inputs)
    own.push_back(input.is_tensor() ? Value(converter.convert(input.tensor_ref())) : input);
  CallAtLevel call(level, *callable_in(function), own, dims);
  std::vector<bool> differ;
  for (const Value& result : call.results) differ.push_back(call.differs(result));
  return differ;
}

// What is carried differs between examples if it does so at first, or after an iteration.
std::vector<bool> which_carried_differ(VmapLevel& level, const Value& body, const Unwrapped& carried,
                                       const ValueList& others, const std::vector<int64_t>& other_dims,
                                       std::vector<bool>& results) {
  std::vector<bool> differ;
  Unwrapped example = carried;
  for (int64_t dim : carried.dims) differ.push_back(dim >= 0);
  for (bool grows = true; grows;) {
    results =
        which_differ(level, body, joined(example.values, others), joined_dims(example.dims, other_dims));
    require(results.size() >= differ.size(), "vmap: a body of {} results carries {} values", results.size(),
            differ.size());
    grows = false;
    for (size_t i = 0; i < differ.size(); ++i) {
      if (differ[i] || !results[i]) continue;
      differ[i] = grows = true;
      example.values[i] = with_batch_first(example.values[i].to_tensor(), -1, level.size());
      example.dims[i] = 0;
    }
  }
  return differ;
}

// Called below the level.
void put_batch_in_front(Unwrapped& carried, const std::vector<bool>& differ, const SymInt& size) {
  for (size_t i = 0; i < differ.size(); ++i) {
    if (!differ[i]) continue;
    require(carried.values[i].is_tensor(),
            "vmap: a loop whose rounds differ between examples must carry tensors, but one is {}",
            carried.values[i].kind_name());
    carried.values[i] = with_batch_first(carried.values[i].to_tensor(), carried.dims[i], size);
    carried.dims[i] = 0;
  }
}

Value wrapped(const Ref<Level>& level, const Value& results, const std::vector<int64_t>& dims) {
  ValueList all;
  for (size_t i = 0; i < results.elements().size(); ++i) {
    const Value& result = results.elements()[i];
    const bool is_same = dims[i] < 0 || !result.is_tensor();
    all.push_back(is_same ? result : Value(wrap_at(level, result.to_tensor(), dims[i])));
  }
  return Value::tuple(std::move(all));
}

// Inputs of functions that run for masked-out examples too: a write would reach these.
class UnwrittenInputs {
 public:
  explicit UnwrittenInputs(Args inputs) {
    for (const Value& input : inputs)
      if (input.is_tensor()) versions_.emplace_back(input.tensor_ref(), input.tensor_ref().version());
  }
  void check(const char* what) const {
    for (const auto& [tensor, version] : versions_)
      require(
          tensor.version() == version,
          "vmap: {}: examples go different ways, and a function writes to its input; return the new value "
          "instead, or write to a clone",
          what);
  }

 private:
  std::vector<std::pair<Tensor, uint32_t>> versions_;
};

Tensor as_condition(const Tensor& t) { return t.dtype() == kBool ? t : t != 0; }

}  // namespace

Value vmap_cond(Level& level, const Operator& op, Args args) {
  auto& vmap = static_cast<VmapLevel&>(level);
  const Value& pred = args[0];
  if (pred.is_tensor() && box_at(pred.tensor_ref(), level)) {
    // Each example has its own condition: both functions run, and each example takes its results.
    const UnwrittenInputs operands(list_at(args, 3));
    const ValueList yes = as_tuple(function_at(args, 1).call(list_at(args, 3))).elements();
    const ValueList no = as_tuple(function_at(args, 2).call(list_at(args, 3))).elements();
    operands.check("cond");
    ValueList chosen;
    const Tensor takes_first = as_condition(pred.to_tensor().reshape(SymIntSpan()));
    for (size_t i = 0; i < yes.size(); ++i)
      chosen.push_back(yes[i].is_none() ? Value()
                                        : Value(where(takes_first, yes[i].to_tensor(), no[i].to_tensor())));
    return Value::tuple(std::move(chosen));
  }
  Unwrapped operands = unwrapped(list_at(args, 3), level);
  Value results;
  {
    BelowLevel scope(level);
    const Value inner[] = {pred, batched_function(vmap, args[1], operands.dims),
                           batched_function(vmap, args[2], operands.dims), Value::list(operands.values)};
    results = dispatch::redispatch(op, inner);
  }
  return wrapped(Ref<Level>(&level), results, std::vector<int64_t>(results.elements().size(), 0));
}

Value vmap_map(Level& level, const Operator& op, Args args) {
  auto& vmap = static_cast<VmapLevel&>(level);
  Unwrapped xs = unwrapped(list_at(args, 1), level), fixed = unwrapped(list_at(args, 2), level);
  Value results;
  {
    BelowLevel scope(level);
    move_batch(xs, 1);
    Value body = batched_function(vmap, args[0], joined_dims(slice_dims(xs.dims), fixed.dims));
    const Value inner[] = {body, Value::list(xs.values), Value::list(fixed.values)};
    results = dispatch::redispatch(op, inner);
  }
  return wrapped(Ref<Level>(&level), results, std::vector<int64_t>(results.elements().size(), 1));
}

Value vmap_scan(Level& level, const Operator& op, Args args) {
  auto& vmap = static_cast<VmapLevel&>(level);
  Unwrapped init = unwrapped(list_at(args, 1), level), xs = unwrapped(list_at(args, 2), level),
            fixed = unwrapped(list_at(args, 3), level);
  Value results;
  std::vector<int64_t> dims;
  {
    BelowLevel scope(level);
    move_batch(xs, 1);
    std::vector<int64_t> others = joined_dims(slice_dims(xs.dims), fixed.dims);
    ValueList example;
    {
      MaskScope quiet(kUnrecorded);
      example = joined(slices(xs.values, 0), fixed.values);
    }
    std::vector<bool> body_results;
    std::vector<bool> differ = which_carried_differ(vmap, args[0], init, example, others, body_results);
    put_batch_in_front(init, differ, vmap.size());
    for (size_t i = 0; i < body_results.size(); ++i) {
      bool is_carried = i < differ.size();
      if (is_carried) body_results[i] = differ[i];
      dims.push_back(!body_results[i] ? -1 : is_carried ? 0 : 1);
    }
    Value body = batched_function(vmap, args[0], joined_dims(front_dims(differ), others), body_results);
    const Value inner[] = {body, Value::list(init.values), Value::list(xs.values), Value::list(fixed.values)};
    results = dispatch::redispatch(op, inner);
  }
  return wrapped(Ref<Level>(&level), results, dims);
}

namespace {

// Of shape [batch]: whether each example goes on.
Tensor goes_on(const Value& condition) { return as_condition(condition.to_tensor().flatten()); }

// A masked iteration: examples that have ended keep what they have.
Value masked_body(const Value& condition, const Value& body, size_t carried) {
  return callable_value([more = Ref<Callable>(callable_in(condition)),
                         step = Ref<Callable>(callable_in(body)), carried](Args leaves) {
    Tensor mask = goes_on(as_tuple(more->call(leaves)).elements()[0]);
    const UnwrittenInputs inputs(leaves);
    ValueList next = as_tuple(step->call(leaves)).elements(), chosen;
    inputs.check("while_loop");
    for (size_t i = 0; i < carried; ++i) {
      Tensor now = next[i].to_tensor(), own = mask;
      while (own.dim() < now.dim()) own = own.unsqueeze(-1);
      chosen.emplace_back(where(own, now, leaves[i].to_tensor()));
    }
    return Value::tuple(std::move(chosen));
  });
}

}  // namespace

Value vmap_while(Level& level, const Operator& op, Args args) {
  auto& vmap = static_cast<VmapLevel&>(level);
  Unwrapped carried = unwrapped(list_at(args, 2), level), fixed = unwrapped(list_at(args, 3), level);
  size_t count = carried.values.size();
  Value results;
  std::vector<bool> differ;
  {
    BelowLevel scope(level);
    std::vector<bool> body_results;
    differ = which_carried_differ(vmap, args[1], carried, fixed.values, fixed.dims, body_results);
    put_batch_in_front(carried, differ, vmap.size());
    std::vector<int64_t> dims = joined_dims(front_dims(differ), fixed.dims);
    ValueList all = joined(carried.values, fixed.values);
    bool own_conditions = which_differ(vmap, args[0], all, dims).at(0);
    if (own_conditions) {
      differ.assign(count, true);
      put_batch_in_front(carried, differ, vmap.size());
      dims = joined_dims(front_dims(differ), fixed.dims);
    }
    Value condition = batched_function(vmap, args[0], dims, {own_conditions});
    Value body = batched_function(vmap, args[1], dims, differ);
    if (own_conditions) {
      body = masked_body(condition, body, count);
      // As long as one goes on.
      condition = callable_value([f = Ref<Callable>(callable_in(condition))](Args leaves) {
        return Value::tuple({any(goes_on(as_tuple(f->call(leaves)).elements()[0]))});
      });
    }
    const Value inner[] = {condition, body, Value::list(carried.values), Value::list(fixed.values)};
    results = dispatch::redispatch(op, inner);
  }
  // The stacked form has its iterations in front.
  int64_t dim = &op == &stacked_while_operator() ? 1 : 0;
  std::vector<int64_t> dims;
  for (bool batched : differ) dims.push_back(batched ? dim : -1);
  return wrapped(Ref<Level>(&level), results, dims);
}

}  // namespace weft
