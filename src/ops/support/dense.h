#pragma once

#include "ops/structured.h"

// Row-major memory for kernels that want it.

namespace weft {

// `tensor` in row-major memory of `dtype`, broadcast to `sizes`; the tensor itself where it is that already.
inline Tensor dense_as(const Tensor& tensor, SymIntSpan sizes, DType dtype) {
  bool same_sizes = tensor.dim() == static_cast<int64_t>(sizes.size());
  for (size_t d = 0; same_sizes && d < sizes.size(); ++d) same_sizes = tensor.sizes()[d].same_as(sizes[d]);
  if (same_sizes && tensor.dtype() == dtype && tensor.is_contiguous()) return tensor;
  Tensor copy = allocate_contiguous(sizes, dtype);
  copy_values(copy, tensor);
  return copy;
}
inline Tensor dense_as(const Tensor& tensor, DType dtype) { return dense_as(tensor, tensor.sizes(), dtype); }

// Runs `fill` on row-major memory of the sizes and type of `out`: its own, or memory that is copied into it.
template <typename F>
void write_dense(const Tensor& out, F fill) {
  if (out.is_contiguous()) return fill(out);
  Tensor memory = allocate_contiguous(out.sizes(), out.dtype());
  fill(memory);
  copy_values(out, memory);
}

// Row-major memory around a dim: [outer, n, inner]. A 0-dim tensor counts as a vector of one.
struct DimSplit {
  int64_t outer = 1, n = 1, inner = 1;
};
inline DimSplit split_at(const Tensor& tensor, int64_t dim) {
  DimSplit split;
  if (tensor.dim() == 0) return split;
  IntSpan sizes = tensor.plain_sizes();
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    int64_t& part = d < dim ? split.outer : d > dim ? split.inner : split.n;
    part *= sizes[static_cast<size_t>(d)];
  }
  return split;
}

}  // namespace weft
