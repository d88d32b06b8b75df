#pragma once

#include "weft/ops/extension.h"

// Sparse gradients: values at indices of the first dims, zeros elsewhere, as one tensor. The gradient of a
// table of which a batch looks up few rows has a row for each lookup (`embedding` and `embedding_bag` with
// sparse = true).
//
//   Tensor grad = table.grad();  // after a backward pass
//   if (is_sparse(grad)) use(sparse_indices(grad), sparse_values(grad));
//
// They take sums with sparse and dense tensors, factors, copies and conversions; anything else is an error:
// ask for their dense form. Gradients that are recorded or transformed (`create_graph`, weft::func, captures)
// are dense, but for those of a function that is compiled ahead of time.

namespace weft {

// Indices of [dims, count], values of [count, the sizes of the other dims]. An index may occur several times:
// its values add up.
Tensor sparse_tensor(const Tensor& indices, const Tensor& values, SymIntSpan sizes);
bool is_sparse(const Tensor& tensor);
Tensor sparse_indices(const Tensor& tensor);
Tensor sparse_values(const Tensor& tensor);
// All elements; a dense tensor is itself.
Tensor to_dense(const Tensor& tensor);
// The same with each index once, in ascending order.
Tensor coalesce(const Tensor& tensor);

// Whether the gradient of a table of `count` rows that comes of this one may be sparse: nobody records or
// transforms it, or who records takes it.
bool may_be_sparse(const Tensor& grad, const SymInt& count);

// While one is open, the thread records gradients below functionalize and takes extensions apart: sparse ones
// are welcome.
class SparseGradientScope {
 public:
  explicit SparseGradientScope(bool welcome = true);
  ~SparseGradientScope();
  SparseGradientScope(const SparseGradientScope&) = delete;
  SparseGradientScope& operator=(const SparseGradientScope&) = delete;

 private:
  bool before_;
};

// The gradient of a table of `count` rows: row indices[i] gets rows[i], unless it is the padding row; where
// asked for, divided by how often the row was looked up.
Tensor sparse_rows_gradient(const Tensor& rows, const Tensor& indices, const SymInt& count,
                            const SymInt& padding, bool scale_by_frequency);

}  // namespace weft
