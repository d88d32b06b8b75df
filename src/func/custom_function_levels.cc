// Custom autograd functions under vmap and jvp: each level applies a function of its own to the tensors below
// it.
#include "autograd/function.h"
#include "func/transpose.h"
#include "func/vmap_level.h"
#include "ops/support/batching.h"
#include "weft/base/error.h"

namespace weft {
namespace {

using autograd::AppliedFunction;
using autograd::CustomFunction;
using autograd::FunctionContext;
using func::Tensors;

// A tensor with the dim that a vmap level hides; -1 for one that is the same for the whole batch.
struct Unwrapped {
  Tensor value;
  int64_t dim = -1;
};
Unwrapped unwrap(const Tensor& tensor, const Level& level) {
  LevelBox* box = box_at(tensor, level);
  return box ? Unwrapped{box->value, box->batch_dim} : Unwrapped{tensor, -1};
}
Tensor wrap(const Ref<Level>& level, const Tensor& value, int64_t dim) {
  return !value.defined() || dim < 0 ? value : wrap_at(level, value, dim);
}

// A function of one example, as a function of batches with a derivative of its own: forward and backward each
// run the function's own under a level.
class BatchedFunction final : public CustomFunction {
 public:
  BatchedFunction(Ref<CustomFunction> function, const VmapLevel& level, std::vector<int64_t> dims)
      : function_(std::move(function)),
        size_(level.size()),
        randomness_(level.randomness()),
        input_dims_(std::move(dims)) {}
  std::string type_name() const override { return function_->type_name(); }

  Tensors forward(FunctionContext& ctx, const Tensors& tensors) override {
    auto level = make_ref<VmapLevel>(size_, randomness_);
    FunctionContext inner;
    inner.needs_ = ctx.needs_;
    Tensors wrapped, results, values;
    {
      LevelEntry entry(level);
      for (size_t i = 0; i < tensors.size(); ++i) wrapped.push_back(wrap(level, tensors[i], input_dims_[i]));
      results = function_->forward(inner, wrapped);
    }
    for (const Tensor& result : results) {
      Unwrapped one = unwrap(result, *level);
      values.push_back(one.dim == 0 ? one.value : with_batch_first(one.value, one.dim, size_));
    }
    // What forward said, about the batches: results that had to be moved are still the same results.
    saved_dims_.clear();
    for (const Tensor& saved : inner.saved_) {
      bool is_result = index_in(saved, results) < results.size();
      saved_dims_.push_back(is_result ? 0 : unwrap(saved, *level).dim);
    }
    ctx = inner.translated([&](const Tensor& tensor) {
      size_t result = index_in(tensor, results);
      return result < results.size() ? values[result] : unwrap(tensor, *level).value;
    });
    return values;
  }

  Tensors backward(FunctionContext& ctx, const Tensors& grads) override {
    auto level = make_ref<VmapLevel>(size_, randomness_);
    Tensors saved = ctx.saved_tensors(), wrapped_grads, given;
    FunctionContext inner = ctx;
    inner.node_ = nullptr;
    {
      LevelEntry entry(level);
      for (size_t i = 0; i < saved.size(); ++i) saved[i] = wrap(level, saved[i], saved_dims_[i]);
      for (const Tensor& grad : grads) wrapped_grads.push_back(wrap(level, grad, 0));
      inner.saved_ = saved;
      given = function_->backward(inner, wrapped_grads);
    }
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i].defined()) given[i] = fit(unwrap(given[i], *level), input_dims_[i]);
    return given;
  }

  const std::vector<int64_t>& saved_dims() const { return saved_dims_; }

 private:
  static size_t index_in(const Tensor& tensor, const Tensors& list) {
    size_t i = 0;
    while (i < list.size() && !list[i].is_same(tensor)) ++i;
    return i;
  }
  // The gradient of an input that is the same for all examples is the sum of theirs.
  Tensor fit(const Unwrapped& grad, int64_t input_dim) const {
    if (input_dim < 0) return grad.dim < 0 ? grad.value * size_ : sum(grad.value, {grad.dim});
    Tensor first = with_batch_first(grad.value, grad.dim, size_);
    return movedim(first, 0, input_dim);
  }

  Ref<CustomFunction> function_;
  SymInt size_;
  func::Randomness randomness_;
  std::vector<int64_t> input_dims_, saved_dims_;
};

// Calls `function` below `level`; what forward says comes back in the AppliedFunction.
Tensors apply_below(const Level& level, const Operator& op, AppliedFunction& applied,
                    const Tensors& tensors) {
  BelowLevel below(level);
  const Value args[] = {Value(Ref<ValueObject>(&applied)), Value::list_of(tensors)};
  return autograd::tensor_list(dispatch::redispatch(op, args));
}

}  // namespace

Value layers::vmap_custom_function(Level& level, const Operator& op, Args args) {
  auto& vmap = static_cast<VmapLevel&>(level);
  AppliedFunction& applied = autograd::applied_function(args);
  Tensors tensors = autograd::tensor_list(args[1]), values;
  std::vector<int64_t> dims;
  for (const Tensor& tensor : tensors) {
    Unwrapped one = unwrap(tensor, level);
    values.push_back(one.value);
    dims.push_back(one.dim);
  }
  auto batched = make_ref<AppliedFunction>(make_ref<BatchedFunction>(applied.function, vmap, dims));
  batched->needs = applied.needs;
  Tensors results = apply_below(level, op, *batched, values);
  Ref<Level> self(&level);
  for (Tensor& result : results) result = wrap(self, result, 0);
  const Tensors& saved = batched->context.saved_;
  const auto& saved_dims = static_cast<BatchedFunction&>(*batched->function).saved_dims();
  applied.context = batched->context.translated([&](const Tensor& inner) {
    Tensor own = autograd::own_tensor_for(inner, {&tensors, &results});
    if (!own.is_same(inner)) return own;
    for (size_t i = 0; i < saved.size(); ++i)
      if (saved[i].is_same(inner)) return wrap(self, inner, saved_dims[i]);
    return own;
  });
  return Value::list_of(results);
}

namespace {

// The tangents of the results: by the function's own rule, or by transposing its backward, which is linear.
Tensors tangents_of(AppliedFunction& applied, const Tensors& results, const Tensors& tangents) {
  FunctionContext context = applied.context;
  if (auto given = applied.function->jvp(context, tangents)) {
    require(given->size() == results.size(), "function {}: jvp returned {} tangents for {} results",
            applied.function->type_name(), given->size(), results.size());
    return *given;
  }
  std::vector<bool> carried;
  for (const Tensor& result : results) {
    const Tensors& constant = context.non_differentiable_;
    bool marked =
        std::any_of(constant.begin(), constant.end(), [&](const Tensor& t) { return t.is_same(result); });
    carried.push_back(!marked && result.defined() && is_differentiable(result.dtype()));
  }
  auto pull = [&](const Tensors& gradients) {
    Tensors all = gradients;
    for (size_t i = 0; context.materialize_grads_ && i < all.size(); ++i)
      if (!all[i].defined() && results[i].defined()) all[i] = zeros_like(results[i]);
    FunctionContext fresh = context;
    return applied.function->backward(fresh, all);
  };
  return transpose_pullback(pull, results, carried, tangents);
}

}  // namespace

Value layers::jvp_custom_function(Level& level, const Operator& op, Args args) {
  AppliedFunction& applied = autograd::applied_function(args);
  Tensors tensors = autograd::tensor_list(args[1]), values, tangents;
  for (const Tensor& tensor : tensors) {
    LevelBox* box = box_at(tensor, level);
    values.push_back(box ? box->value : tensor);
    tangents.push_back(box ? box->tangent : Tensor());
  }
  applied.needs.assign(tensors.size(), false);
  for (size_t i = 0; i < tensors.size(); ++i) applied.needs[i] = tangents[i].defined();
  Tensors results = apply_below(level, op, applied, values);
  if (!applied.context.dirty_.empty())
    unsupported("function {}: a function that writes to its inputs has no forward-mode derivative",
                applied.type_name());
  Tensors result_tangents;
  {
    BelowLevel below(level);
    result_tangents = tangents_of(applied, results, tangents);
  }
  Ref<Level> self(&level);
  for (size_t i = 0; i < results.size(); ++i)
    if (result_tangents[i].defined()) results[i] = wrap_at(self, results[i], -1, result_tangents[i]);
  applied.context = applied.context.translated(
      [&](const Tensor& inner) { return autograd::own_tensor_for(inner, {&tensors, &results}); });
  return Value::list_of(results);
}

}  // namespace weft
