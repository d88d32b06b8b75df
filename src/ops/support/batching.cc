#include "ops/support/batching.h"

#include "ops/support/shapes.h"
#include "ops/support/type_promotion.h"
#include "weft/base/error.h"
#include "weft/core/value_walk.h"
#include "weft/dispatch/operator.h"
#include "weft/ops/functions.h"

namespace weft {

Tensor batch_first(const Tensor& tensor, int64_t dim) {
  if (!tensor.defined() || dim <= 0) return tensor;
  return movedim(tensor, dim, 0);
}

Tensor with_batch_first(const Tensor& tensor, int64_t dim, const SymInt& batch_size) {
  if (dim >= 0) return batch_first(tensor, dim);
  SymInts sizes{batch_size};
  for (const SymInt& size : tensor.sizes()) sizes.push_back(size);
  return expand(tensor, sizes);
}

int64_t logical_rank(const Tensor& tensor, int64_t batch_dim) {
  return tensor.dim() - (batch_dim >= 0 ? 1 : 0);
}

namespace {

// Per-example tensors without dims are light in type promotion, which their batches are not. Where that makes
// a difference, the two operands are cast to the type that they have in common for the user.
void promote_as_seen(std::vector<Value>& args, const std::vector<int64_t>& dims, bool compares) {
  std::vector<size_t> operands;
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].is_tensor() && args[i].tensor_ref().defined()) operands.push_back(i);
  if (operands.size() != 2) return;
  const Tensor a = args[operands[0]].to_tensor(), b = args[operands[1]].to_tensor();
  auto is_light = [&](size_t operand) { return dims[operand] >= 0 && args[operand].tensor_ref().dim() == 1; };
  if (is_light(operands[0]) == is_light(operands[1])) return;
  if (compares && a.dtype() == b.dtype()) return;
  const bool first = is_light(operands[0]);
  // Of an empty batch there is no example. Taking one is a call, as in PyTorch's graphs, but for comparisons.
  const Tensor& light = first ? a : b;
  const bool has_example = !compares && !guard_or(light.size(0) == 0, false);
  const Tensor example = has_example ? select(light, 0, 0) : allocate_contiguous({}, light.dtype());
  const DType type = common_type(example, first ? b : a);
  if (type == common_type(a, b)) return;
  for (size_t operand : operands)
    if (!(args[operand].tensor_ref().flags() & tensor_flag::kWrappedNumber))
      args[operand] = args[operand].tensor_ref().to(type);
}

Batched call_aligned(const Operator& op, std::vector<Value> args, const std::vector<int64_t>& dims) {
  int64_t rank = 0;
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].is_tensor()) rank = std::max(rank, logical_rank(args[i].tensor_ref(), dims[i]));
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_tensor() || dims[i] < 0) continue;
    Tensor tensor = batch_first(args[i].tensor_ref(), dims[i]);
    // Missing dims go behind the batch dim, where broadcasting will not put them.
    if (tensor.dim() - 1 < rank) {
      SymInts padded(tensor.sizes());
      while (static_cast<int64_t>(padded.size()) - 1 < rank) padded.insert(1, 1);
      tensor = view(tensor, padded);
    }
    args[i] = tensor;
  }
  return {weft::call(op, args), {0}};
}

std::vector<int64_t> dims_of(const Batch& call) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < call.args().size(); ++i) dims.push_back(call.batch_dim(static_cast<int>(i)));
  return dims;
}

}  // namespace

Batched call_pointwise(const Operator& op, std::vector<Value> args, const std::vector<int64_t>& dims) {
  // A write never changes a type.
  if (op.form() == OpForm::kFunctional) promote_as_seen(args, dims, false);
  return call_aligned(op, std::move(args), dims);
}

Batched comparison_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  const std::vector<int64_t> dims = dims_of(call);
  if (call.op().form() == OpForm::kFunctional) promote_as_seen(args, dims, true);
  return call_aligned(call.op(), std::move(args), dims);
}

Batched pointwise_batch(const Batch& call) {
  return call_pointwise(call.op(), {call.args().begin(), call.args().end()}, dims_of(call));
}

Batched aligned_batch(const Batch& call) {
  return call_aligned(call.op(), {call.args().begin(), call.args().end()}, dims_of(call));
}

namespace {

Batched in_front(const Value& result) {
  size_t count = result.is_sequence() ? result.elements().size() : 1;
  return {result, std::vector<int64_t>(count, 0)};
}

// Takes away the dim that a 0-dim argument was given for the call, where a result still has it.
Value without_lent_dim(const Value& result) {
  return map_tensors(result,
                     [](const Tensor& tensor) { return tensor.dim() > 1 ? squeeze(tensor, -1) : tensor; });
}

}  // namespace

Batched call_with_dim_shifted(const Batch& call, int dim_argument) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  int64_t rank = self.dim() - 1;
  auto at = static_cast<size_t>(dim_argument);
  int64_t dim = normalize_dim(args[at].to_int(), rank);
  bool was_scalar = rank == 0;
  if (was_scalar) self = unsqueeze(self, -1);
  args[0] = self;
  args[at] = dim + 1;
  Batched batched = in_front(weft::call(call.op(), args));
  if (was_scalar) batched.result = without_lent_dim(batched.result);
  return batched;
}

Batched call_with_dims_shifted(const Batch& call, int dims_argument) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  int64_t rank = self.dim() - 1;
  auto at = static_cast<size_t>(dims_argument);
  ValueList dims;
  bool all = args[at].is_none() || (args[at].is_sequence() && args[at].elements().empty());
  if (all)
    for (int64_t d = 0; d < rank; ++d) dims.push_back(d + 1);
  else if (args[at].is_sequence())
    for (const Value& dim : args[at].elements()) dims.push_back(normalize_dim(dim.to_int(), rank) + 1);
  else dims.push_back(normalize_dim(args[at].to_int(), rank) + 1);
  if (rank == 0) {
    self = unsqueeze(self, -1);
    dims = {1};
  }
  args[0] = self;
  args[at] = Value::list(dims);
  Batched batched = in_front(weft::call(call.op(), args));
  if (rank == 0) batched.result = without_lent_dim(batched.result);
  return batched;
}

namespace {

// Example `i`; without a number, one of the same sizes that stands for the examples of an empty batch.
Value example(const Value& value, int64_t dim, std::optional<int64_t> i) {
  if (dim < 0) return value;
  if (i) return select(value.to_tensor(), dim, *i);
  SymInts sizes;
  for (int64_t d = 0; d < value.tensor_ref().dim(); ++d)
    if (d != dim) sizes.push_back(value.tensor_ref().size(d));
  return new_zeros(value.tensor_ref(), sizes);
}

// An empty batch of results like this one.
Value none_of(const Value& result) {
  return map_tensors(result, [](const Tensor& tensor) {
    SymInts sizes{0};
    for (const SymInt& size : tensor.sizes()) sizes.push_back(size);
    return new_empty(tensor, sizes);
  });
}

ValueList arguments_of_example(const Batch& call, std::optional<int64_t> i) {
  ValueList args;
  for (size_t k = 0; k < call.args().size(); ++k) {
    const Value& value = call.args()[k];
    auto argument = static_cast<int>(k);
    if (value.is_tensor()) {
      args.push_back(example(value, call.batch_dim(argument), i));
    } else if (value.is_sequence() && !call.batch_dims(argument).empty()) {
      ValueList list;
      for (size_t e = 0; e < value.elements().size(); ++e) {
        const Value& element = value.elements()[e];
        list.push_back(element.is_tensor() ? example(element, call.batch_dims(argument)[e], i) : element);
      }
      args.push_back(Value::list(std::move(list)));
    } else {
      args.push_back(value);
    }
  }
  return args;
}

Value stack_results(const std::vector<Value>& results) {
  if (results[0].is_sequence()) {
    ValueList stacked;
    for (size_t k = 0; k < results[0].elements().size(); ++k) {
      std::vector<Value> column;
      for (const Value& result : results) column.push_back(result.elements()[k]);
      stacked.push_back(stack_results(column));
    }
    return results[0].is_list() ? Value::list(std::move(stacked)) : Value::tuple(std::move(stacked));
  }
  if (!results[0].is_tensor()) return results[0];
  std::vector<Tensor> tensors;
  for (const Value& result : results) tensors.push_back(result.to_tensor());
  return stack(tensors, 0);
}

}  // namespace

Batched loop_batch(const Batch& call) {
  int64_t count = guard_int(call.batch_size());
  if (count == 0) return in_front(none_of(weft::call(call.op(), arguments_of_example(call, std::nullopt))));
  std::vector<Value> results;
  for (int64_t i = 0; i < count; ++i) results.push_back(weft::call(call.op(), arguments_of_example(call, i)));
  return in_front(stack_results(results));
}

}  // namespace weft
