#pragma once

#include "weft/dispatch/op_def.h"

// Batching rules that families of operators share. A rule moves batch dims to the front, where they can be
// treated as one more dimension.

namespace weft {

// The tensor with its batch dim first; as it is when it has none (`dim` < 0).
Tensor batch_first(const Tensor& tensor, int64_t dim);
// The same, and with a batch dim of the batch's size in any case (expanded).
Tensor with_batch_first(const Tensor& tensor, int64_t dim, const SymInt& batch_size);
// The rank that the user sees.
int64_t logical_rank(const Tensor& tensor, int64_t batch_dim);

// Pointwise operators: batch dims to the front, ranks made equal behind them, then the operator itself. Two
// operands are cast to the type that they have in common for the user.
Batched pointwise_batch(const Batch& call);
// A call that a rule makes: arguments without wrappers, and the batch dim of each, -1 for none.
Batched call_pointwise(const Operator& op, std::vector<Value> args, const std::vector<int64_t>& dims);
// The same for results that are truth values.
Batched comparison_batch(const Batch& call);
// The same for operands of which each keeps its type: a mask beside what it chooses from.
Batched aligned_batch(const Batch& call);
// Operators of one tensor and a `dim` argument at `dim_argument`: the dim is counted behind the batch dim.
Batched call_with_dim_shifted(const Batch& call, int dim_argument);
template <int dim_argument = 1>
Batched dim_batch(const Batch& call) {
  return call_with_dim_shifted(call, dim_argument);
}
// The same for a list of dims; no list means all dims that the user sees.
Batched call_with_dims_shifted(const Batch& call, int dims_argument);
template <int dims_argument = 1>
Batched dims_batch(const Batch& call) {
  return call_with_dims_shifted(call, dims_argument);
}
// One example after the other, results stacked: right for every operator without randomness, slow.
Batched loop_batch(const Batch& call);

}  // namespace weft
