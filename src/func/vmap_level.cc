#include "func/vmap_level.h"

#include "dispatch/inplace_view.h"
#include "ops/silent_mutation.h"
#include "ops/support/batching.h"
#include "ops/support/type_promotion.h"
#include "weft/base/error.h"

namespace weft {
namespace {

// A call with this level's wrappers taken off.
class UnwrappedCall final : public Batch {
 public:
  UnwrappedCall(const Operator& op, Args args, const VmapLevel& level) : op_(op), size_(level.size()) {
    for (const Value& value : args) {
      dims_.push_back(-1);
      lists_.emplace_back();
      if (value.is_sequence()) {
        ValueList list;
        for (const Value& element : value.elements()) {
          list.push_back(unwrap(element, level));
          if (element.is_tensor()) lists_.back().push_back(dim_of(element, level));
          else if (element.is_none()) lists_.back().push_back(-1);
        }
        args_.push_back(Value::list(std::move(list)));
        continue;
      }
      args_.push_back(unwrap(value, level));
      dims_.back() = dim_of(value, level);
    }
  }
  const Operator& op() const override { return op_; }
  Args args() const override { return args_; }
  int64_t batch_dim(int argument) const override { return dims_[static_cast<size_t>(argument)]; }
  const std::vector<int64_t>& batch_dims(int argument) const override {
    return lists_[static_cast<size_t>(argument)];
  }
  SymInt batch_size() const override { return size_; }

 private:
  static int64_t dim_of(const Value& value, const Level& level) {
    LevelBox* box = value.is_tensor() ? box_at(value.tensor_ref(), level) : nullptr;
    return box ? box->batch_dim : -1;
  }
  static Value unwrap(const Value& value, const Level& level) {
    LevelBox* box = value.is_tensor() ? box_at(value.tensor_ref(), level) : nullptr;
    return box ? Value(box->value) : value;
  }
  const Operator& op_;
  SymInt size_;
  std::vector<Value> args_;
  std::vector<int64_t> dims_;
  std::vector<std::vector<int64_t>> lists_;
};

bool is_batched(const Value& value, const Level& level) {
  if (value.is_tensor()) return box_at(value.tensor_ref(), level) != nullptr;
  if (!value.is_sequence()) return false;
  for (const Value& element : value.elements())
    if (is_batched(element, level)) return true;
  return false;
}

[[noreturn]] void refuse_unbatched_target(const Operator& op) {
  fail(
      "vmap: {}(self, *extra_args) is not possible because there exists a Tensor in extra_args that has "
      "more elements than `self`. "
      "This happened due to a tensor being vmapped over in extra_args while `self` is not. Use the "
      "out-of-place operator instead",
      op.name());
}

}  // namespace

namespace {

// A call that mutates arguments though its schema does not say so, as batch norm in training: one that is the
// same for the whole batch cannot take what each example would write.
void refuse_unbatched_statistics(const Operator& op, Args args, const Level& level) {
  const Operator* mutating = mutating_equivalent(op, args);
  if (!mutating) return;
  for (size_t i = 0; i < args.size(); ++i)
    if (mutating->info().written[i] && !is_batched(args[i], level))
      fail(
          "vmap: Batch norm got a batched tensor as input while the running_mean or running_var, which will "
          "be updated in place, were not batched. Call eval() on the module, give it no running statistics, "
          "or map over them too");
}

}  // namespace

Batched VmapLevel::run_rule(const Operator& op, Args args) {
  UnwrappedCall call(op, args, *this);
  BelowLevel below(*this);
  if (op.def().batch) return op.def().batch(call);
  if (op.has(Traits::kDataDependent))
    fail(
        "vmap: {} gives sizes or values that depend on data, which differ within a batch; it cannot be used "
        "under vmap",
        op.name());
  return loop_batch(call);
}

Value VmapLevel::wrap_batched(const Operator& op, Args args, const Batched& batched) {
  Ref<Level> self(this);
  size_t next = 0;
  Value wrapped = wrap_results(op, args, batched.result, [&](const Tensor& t) {
    int64_t dim = next < batched.dims.size() ? batched.dims[next++] : 0;
    return Value(dim < 0 ? t : wrap_at(self, t, dim));
  });
  dispatch::note_views(op, args, wrapped);
  return wrapped;
}

namespace {

// Whether the operator itself can write to the whole batch: elements depend on elements only, and nothing is
// broadcast to more than what is written to.
bool may_write_whole_batch(const Operator& op, const UnwrappedCall& call) {
  if (!op.has(Traits::kPointwise)) return false;
  const int64_t rank = logical_rank(call.tensor(0), call.batch_dim(0));
  for (size_t i = 1; i < call.args().size(); ++i) {
    const Value& arg = call.args()[i];
    const int argument = static_cast<int>(i);
    if (arg.is_tensor() && logical_rank(arg.tensor_ref(), call.batch_dim(argument)) > rank) return false;
    if (!call.batch_dims(argument).empty()) return false;
  }
  return true;
}

}  // namespace

// The operator on the whole batch where it can be; else the functional rule, then a copy into the batch that
// is written to.
Value VmapLevel::handle_inplace(const Operator& op, Args args) {
  const Operator& functional = op.functional();
  const Tensor& self = args[0].tensor_ref();
  LevelBox* box = box_at(self, *this);
  if (!box) refuse_unbatched_target(op);
  const bool is_view = functional.has(Traits::kView);  // of the very same memory
  const dispatch::InplaceView view(op, args);
  if (const UnwrappedCall call(op, args, *this); !is_view && may_write_whole_batch(op, call)) {
    BelowLevel below(*this);
    pointwise_batch(call);
    refresh_wrapper(self);
    view.done();
    return args[0];
  }
  Batched batched =
      is_view ? run_rule(functional, args) : run_rule(functional, arguments_to_keep(Ref<Level>(this), args));
  BelowLevel below(*this);
  if (!can_cast(batched.result.to_tensor().dtype(), box->value.dtype())) {
    // A write never changes the category of a type: what the form itself does with each example decides.
    loop_batch(UnwrappedCall(op, args, *this));
  } else {
    Tensor result = batched.result.to_tensor();
    if (batched.dims[0] != box->batch_dim) result = movedim(result, batched.dims[0], box->batch_dim);
    if (is_view) box->value = result;
    else copy_(box->value, result);
  }
  refresh_wrapper(self);
  view.done();
  return args[0];
}

// An operator that writes and has no functional form: its own rule, or itself on each example, whose part of
// the batch it writes to.
Value VmapLevel::handle_writes(const Operator& op, Args args) {
  std::vector<Tensor> written;
  for (size_t i = 0; i < args.size(); ++i)
    if (op.info().written[i])
      map_tensors(args[i], [&](const Tensor& t) {
        if (!box_at(t, *this)) refuse_unbatched_target(op);
        written.push_back(t);
        return Value(t);
      });
  const Batched batched = run_rule(op, args);
  for (const Tensor& wrapper : written) refresh_wrapper(wrapper);
  return wrap_batched(op, args, batched);
}

Value VmapLevel::handle_out(const Operator& op, Args args) {
  dispatch::OutCall call = dispatch::split_out_call(op, args);
  Batched batched = run_rule(op.functional(), call.inputs);
  for (size_t i = 0; i < call.targets.size(); ++i) {
    const Value& result = batched.result.is_sequence() ? batched.result.elements()[i] : batched.result;
    LevelBox* box = box_at(call.targets[i].to_tensor(), *this);
    require(box, "vmap: {}: the out= tensor is not batched but the result is", op.name());
    BelowLevel below(*this);
    copy_(box->value, movedim(result.to_tensor(), batched.dims[i], box->batch_dim));
  }
  return call.result();
}

// A random factory draws once for all, or once for each example in a tensor with the batch dim in front.
Value VmapLevel::random_factory(const Operator& op, Args args) {
  if (randomness_ == func::Randomness::kSame) return call_unbatched(op, args);
  std::vector<Value> sized(args.begin(), args.end());
  const Schema& schema = op.schema();
  std::optional<size_t> at = schema.argument_index("size");
  require(at.has_value(), "vmap: {} cannot draw different numbers for each example", op.name());
  ValueList size{size_};
  for (const Value& s : args[*at].elements()) size.push_back(s);
  sized[*at] = Value::list(std::move(size));
  return wrap_at(Ref<Level>(this), call_unbatched(op, sized).to_tensor(), 0);
}

// The numbers do not depend on the values of the arguments (`rand_like`, `uniform_`): they are drawn for one
// example, and what is written to gets them for every one.
Value VmapLevel::same_numbers(const Operator& op, Args args) {
  dispatch::OutCall call;
  if (op.form() == OpForm::kOut) call = dispatch::split_out_call(op, args);
  else call.inputs.assign(args.begin(), args.end());
  if (op.form() == OpForm::kInplace) call.targets.push_back(args[0]);
  const ValueList example = map_tensors(call.inputs, [&](const Tensor& t) {
    LevelBox* box = box_at(t, *this);
    if (!box) return Value(t);
    BelowLevel below(*this);
    return Value(box->value.select(box->batch_dim, 0));
  });
  const Value drawn = call_unbatched(op.functional(), example);
  if (call.targets.empty()) return drawn;
  const Tensor& target = call.targets[0].tensor_ref();
  LevelBox* box = box_at(target, *this);
  BelowLevel below(*this);
  if (box) copy_(box->value, drawn.to_tensor().unsqueeze(box->batch_dim));
  else copy_(target, drawn.to_tensor());
  if (box) refresh_wrapper(target);
  return call.targets[0];
}

Value VmapLevel::handle_random(const Operator& op, Args args, bool has_batched) {
  if (randomness_ == func::Randomness::kError)
    fail(
        "vmap: called random operation {} while in randomness error mode. Please either use the 'same' or "
        "'different' randomness flags "
        "on vmap or perform the randomness operation out of vmap",
        op.name());
  if (!has_batched) {
    if (op.form() == OpForm::kOut && randomness_ == func::Randomness::kDifferent)
      fail("vmap: {}: the out= tensor is not batched, so it cannot hold different numbers for each example",
           op.name());
    if (op.has(Traits::kFactory)) return random_factory(op, args);
    if (randomness_ == func::Randomness::kSame) return call_unbatched(op, args);
    require(op.form() != OpForm::kInplace,
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like "
            "same randomness. Use the out-of-place form of {}",
            op.name());
    std::vector<Value> batched(args.begin(), args.end());
    for (Value& value : batched)
      if (value.is_tensor()) {
        BelowLevel below(*this);
        value = wrap_at(Ref<Level>(this), with_batch_first(value.tensor_ref(), -1, size_), 0);
        break;
      }
    return wrap_batched(op, args, run_rule(op, batched));
  }
  if (op.form() == OpForm::kInplace && !is_batched(args[0], *this)) refuse_unbatched_target(op);
  if (randomness_ == func::Randomness::kDifferent) return wrap_batched(op, args, run_rule(op, args));
  if (op.has(Traits::kUninitialized)) return same_numbers(op, args);
  fail(
      "vmap: {} with batched arguments draws different numbers for each example; randomness 'same' is not "
      "supported for it",
      op.name());
}

Value VmapLevel::handle(const Operator& op, Args args) {
  if (const HigherOrder* higher_order = op.def().higher_order) return higher_order->vmap(*this, op, args);
  bool has_batched = false;
  for (const Value& value : args) has_batched |= is_batched(value, *this);
  if (op.has(Traits::kRandom)) return handle_random(op, args, has_batched);
  if (!has_batched) return call_unbatched(op, args);
  if (op.form() == OpForm::kOut) return handle_out(op, args);
  if (op.functional().info().is_mutable && !op.has(Traits::kGeometry)) return handle_writes(op, args);
  if (op.info().is_mutable) return handle_inplace(op, args);
  refuse_unbatched_statistics(op, args, *this);
  return wrap_batched(op, args, run_rule(op, args));
}

namespace {

SymInt batch_size_of(const func::Tensors& args, const std::vector<int64_t>& dims) {
  std::optional<SymInt> size;
  for (size_t i = 0; i < args.size(); ++i) {
    if (dims[i] == func::kNoDim) continue;
    SymInt own = args[i].size(dims[i]);
    if (size && !guard_or(*size == own, true))
      fail(
          "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {} and {} for "
          "the mapped dimension",
          size->to_string(), own.to_string());
    size = own;
  }
  if (!size) fail("vmap: at least one argument must be mapped over, but every in_dim is kNoDim");
  return *size;
}

std::vector<int64_t> dims_for(const func::Tensors& args, const std::vector<int64_t>& in_dims) {
  require(in_dims.empty() || in_dims.size() == args.size(), "vmap: {} in_dims for {} arguments",
          in_dims.size(), args.size());
  std::vector<int64_t> dims(args.size(), 0);
  for (size_t i = 0; i < args.size(); ++i) {
    if (!in_dims.empty()) dims[i] = in_dims[i];
    if (dims[i] == func::kNoDim) continue;
    require(args[i].dim() > 0,
            "vmap: Got in_dim={} for argument {}, which is of dimensionality 0 and cannot be mapped over",
            dims[i], i);
    dims[i] = normalize_dim(dims[i], args[i].dim());
  }
  return dims;
}

Tensor unwrap_result(const Tensor& result, const VmapLevel& level, int64_t out_dim) {
  LevelBox* box = box_at(result, level);
  if (out_dim == func::kNoDim) {
    require(!box, "vmap: the function can not return a batched tensor when out_dim is kNoDim, but it did: {}",
            describe(result));
    return result;
  }
  Tensor value = box ? box->value : with_batch_first(result, -1, level.size());
  int64_t from = box ? box->batch_dim : 0, to = normalize_dim(out_dim, value.dim());
  return from == to ? value : movedim(value, from, to);
}

}  // namespace

namespace func {

Transformed vmap_of(Fn f, VmapOptions options) {
  return Transformed([f = std::move(f), options = std::move(options)](const Tensors& args) {
    std::vector<int64_t> dims = dims_for(args, options.in_dims);
    auto level = make_ref<VmapLevel>(batch_size_of(args, dims), options.randomness);
    Tensors results;
    {
      LevelEntry entry(level);
      Tensors wrapped;
      for (size_t i = 0; i < args.size(); ++i)
        wrapped.push_back(dims[i] == kNoDim ? args[i] : wrap_at(level, args[i], dims[i]));
      results = f(wrapped);
    }
    require(options.out_dims.empty() || options.out_dims.size() == results.size(),
            "vmap: {} out_dims for {} results", options.out_dims.size(), results.size());
    Tensors unwrapped;
    for (size_t i = 0; i < results.size(); ++i)
      unwrapped.push_back(
          unwrap_result(results[i], *level, options.out_dims.empty() ? 0 : options.out_dims[i]));
    return unwrapped;
  });
}

}  // namespace func
}  // namespace weft
