// Views, copies of views and the operators of their derivatives by few general ones.
#include "ops/decompositions/decompositions.h"
#include "ops/support/shapes.h"
#include "weft/base/error.h"
#include "weft/ops/functions.h"
#include "weft/ops/operators.h"

namespace weft::ops {
namespace {

Ints counted(int64_t count) {
  Ints dims;
  for (int64_t d = 0; d < count; ++d) dims.push_back(d);
  return dims;
}
Tensor zeros_beside(const Tensor& like, SymIntSpan sizes) {
  return full(sizes, 0, like.dtype(), Layout::kStrided, like.device());
}

}  // namespace

Tensor detach_parts(const Tensor& self) { return alias(self); }
Tensor unsafe_view_parts(const Tensor& self, SymIntSpan size) { return view(self, size); }

Tensor transpose_parts(const Tensor& self, int64_t dim0, int64_t dim1) {
  const int64_t a = normalize_dim(dim0, self.dim()), b = normalize_dim(dim1, self.dim());
  if (a == b) return alias(self);
  Ints dims = counted(self.dim());
  std::swap(dims[static_cast<size_t>(a)], dims[static_cast<size_t>(b)]);
  return permute(self, dims);
}
Tensor t_parts(const Tensor& self) {
  require(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is {}D", self.dim());
  return self.dim() == 2 ? permute(self, {1, 0}) : alias(self);
}
Tensor squeeze_parts(const Tensor& self) { return squeeze(self, IntSpan(counted(self.dim()))); }
Tensor squeeze_dim_parts(const Tensor& self, int64_t dim) {
  normalize_dim(dim, self.dim());
  return squeeze(self, IntSpan(Ints{dim}));
}

std::vector<Tensor> split_parts(const Tensor& self, const SymInt& split_size, int64_t dim) {
  const SymInt size = self.size(dim);
  const int64_t length = guard_int(split_size), whole = guard_int(size);
  require(length > 0 || whole == 0, "split: split_size must be positive for a dim of {}, but it is {}", whole,
          length);
  SymInts lengths;
  for (int64_t start = 0; start < whole; start += length) lengths.push_back(std::min(length, whole - start));
  if (lengths.empty()) lengths.push_back(0);
  return split_with_sizes(self, lengths, dim);
}
std::vector<Tensor> unbind_parts(const Tensor& self, int64_t dim) {
  const int64_t d = normalize_dim(dim, self.dim()), count = guard_int(self.size(d));
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < count; ++i) parts.push_back(slice(self, d, i, i + 1));
  for (Tensor& part : parts) part = squeeze(part, IntSpan(Ints{d}));
  return parts;
}

Tensor diagonal_copy_parts(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  return clone(diagonal(self, offset, dim1, dim2), MemoryFormat::kContiguous);
}
Tensor stacked_parts(TensorSpan tensors, int64_t dim) {
  require(!tensors.empty(), "stack expects a non-empty list of tensors");
  const int64_t d = normalize_dim(dim, tensors[0].dim() + 1);
  if (d == tensors[0].dim()) {
    std::vector<Tensor> columns;
    for (const Tensor& tensor : tensors) columns.push_back(unsqueeze(tensor, d));
    return cat(columns, d);
  }
  SymInts sizes(tensors[0].sizes());
  sizes.insert(static_cast<size_t>(d), static_cast<int64_t>(tensors.size()));
  return view(cat(tensors, d), sizes);
}

// --- putting a part back ---------------------------------------------------------------------------------

// One row of a dim is told by its number.
Tensor select_scatter_parts(const Tensor& self, const Tensor& src, int64_t dim, const SymInt& index) {
  const int64_t d = normalize_dim(dim, self.dim());
  SymInts shape(static_cast<size_t>(self.dim()), 1);
  shape[static_cast<size_t>(d)] = -1;
  const SymInt row = guard_or(index < 0, false) ? index + self.size(d) : index;
  Tensor numbers = arange(0, Scalar(self.size(d)), 1, std::nullopt, std::nullopt, self.device());
  Tensor is_row = view(numbers, shape) == Scalar(row);
  return where(is_row, expand(unsqueeze(src, d), self.sizes()), self);
}
Tensor select_backward_parts(const Tensor& grad, SymIntSpan sizes, int64_t dim, const SymInt& index) {
  return select_scatter(zeros_beside(grad, sizes), grad, dim, index);
}
Tensor slice_backward_parts(const Tensor& grad, SymIntSpan sizes, int64_t dim, const SymInt& start,
                            const SymInt& end, const SymInt& step) {
  return slice_scatter(zeros_beside(grad, sizes), grad, dim, start, end, step);
}
Tensor diagonal_backward_parts(const Tensor& grad, SymIntSpan sizes, int64_t offset, int64_t dim1,
                               int64_t dim2) {
  return diagonal_scatter(zeros_beside(grad, sizes), grad, offset, dim1, dim2);
}

// The elements stand in a new dim, and where their two numbers differ by the offset.
Tensor diag_embed_parts(const Tensor& self, int64_t offset_, int64_t dim1, int64_t dim2) {
  int64_t first = normalize_dim(dim1, self.dim() + 1), second = normalize_dim(dim2, self.dim() + 1),
          offset = offset_;
  require(first != second, "diagonal dimensions cannot be identical {}, {}", dim1, dim2);
  if (first > second) {
    std::swap(first, second);
    offset = -offset;
  }
  Tensor line = self;
  SymInt length = self.size(-1);
  if (offset != 0) {
    const int64_t added = offset < 0 ? -offset : offset;
    SymInts sizes(self.sizes());
    sizes[sizes.size() - 1] = added;
    Tensor zeros = zeros_beside(self, sizes);
    line = offset > 0 ? cat({zeros, self}, -1) : cat({self, zeros}, -1);
    length = length + added;
  }
  Tensor square = movedim(unsqueeze(line, first), -1, second);
  auto numbers = [&](const SymInt& from, const SymInt& to) {
    return arange(Scalar(from), Scalar(to), 1, kInt64, std::nullopt, self.device());
  };
  Tensor columns = numbers(0, length), rows = numbers(offset, length + offset);
  SymInts shape(static_cast<size_t>(square.dim()), 1);
  shape[static_cast<size_t>(first)] = length;
  shape[static_cast<size_t>(second)] = length;
  Tensor is_on = view(columns == unsqueeze(rows, -1), shape);
  if (self.dtype() == kBool) return logical_and(is_on, square);
  return contiguous(where(is_on, square, Scalar(0)));
}

}  // namespace weft::ops
