// Diagonals as copies, and vectors on a diagonal. The view is `diagonal`.
#include "ops/decompositions/decompositions.h"
#include "ops/support/family.h"
#include "ops/support/fill.h"

namespace weft::ops {
namespace {

// --- diag_embed ------------------------------------------------------------------------------------------

struct Plane {
  size_t rows, columns;  // dims of the result
};
Plane plane_of(const Tensor& self, int64_t dim1, int64_t dim2) {
  require(self.dim() > 0, "diag_embed: expected a tensor with at least one dim, but got {}", describe(self));
  int64_t rank = self.dim() + 1;
  Plane plane{static_cast<size_t>(normalize_dim(dim1, rank)), static_cast<size_t>(normalize_dim(dim2, rank))};
  require(plane.rows != plane.columns, "diagonal dimensions cannot be identical {}, {}", dim1, dim2);
  return plane;
}
TensorSpec diag_embed_meta(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  Plane plane = plane_of(self, dim1, dim2);
  // The lowest offset has no absolute value.
  SymInt length = offset >= 0 ? self.sizes().back() + offset : self.sizes().back() - SymInt(offset);
  SymInts sizes;
  for (size_t d = 0, from = 0; d <= static_cast<size_t>(self.dim()); ++d)
    sizes.push_back(d == plane.rows || d == plane.columns ? length : self.sizes()[from++]);
  return contiguous_spec(sizes, self.dtype(), self.device());
}
// The diagonal of `out` in the plane, as dims of `self`.
Tensor embedded_diagonal(const Tensor& out, const Plane& plane, int64_t offset, const SymInt& length) {
  SymInts sizes, strides;
  for (size_t d = 0; d < static_cast<size_t>(out.dim()); ++d) {
    if (d == plane.rows || d == plane.columns) continue;
    sizes.push_back(out.sizes()[d]);
    strides.push_back(out.strides()[d]);
  }
  const SymInt &row = out.strides()[plane.rows], &column = out.strides()[plane.columns];
  sizes.push_back(length);
  strides.push_back(row + column);
  SymInt start = out.storage_offset() + (offset >= 0 ? column * offset : row * -offset);
  return alias_with(out, std::move(sizes), std::move(strides), std::move(start));
}
void diag_embed_into(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2, const Tensor& out) {
  fill_values(out, 0);
  if (self.plain_numel() == 0) return;
  copy_values(embedded_diagonal(out, plane_of(self, dim1, dim2), offset, self.sizes().back()), self);
}
Batched diag_embed_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  int64_t rank = self.dim();  // of the result that the user sees
  return {diag_embed(self, call.arg<int64_t>(1), normalize_dim(call.arg<int64_t>(2), rank) + 1,
                     normalize_dim(call.arg<int64_t>(3), rank) + 1),
          {0}};
}

// --- diagonal_copy ---------------------------------------------------------------------------------------

// The layout of the diagonal of a tensor of this geometry.
struct Line {
  SymInts sizes, strides;
  SymInt start;
};
Line line_of(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  auto a = static_cast<size_t>(normalize_dim(dim1, self.dim())),
       b = static_cast<size_t>(normalize_dim(dim2, self.dim()));
  require(a != b, "diagonal dimensions cannot be identical {}, {}", dim1, dim2);
  Line line{SymInts(self.sizes()), SymInts(self.strides()), self.storage_offset()};
  SymInt length =
      offset >= 0 ? min(line.sizes[a], line.sizes[b] - offset) : min(line.sizes[a] + offset, line.sizes[b]);
  // Nothing begins anywhere, and the lowest offset has no opposite.
  if (!guard_or(length <= 0, false))
    line.start = line.start + (offset >= 0 ? line.strides[b] * offset : line.strides[a] * -offset);
  SymInt stride = line.strides[a] + line.strides[b];
  for (size_t d : {std::max(a, b), std::min(a, b)}) {
    line.sizes.erase(d);
    line.strides.erase(d);
  }
  line.sizes.push_back(max(length, SymInt(0)));
  line.strides.push_back(stride);
  return line;
}
TensorSpec diagonal_copy_meta(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  return contiguous_spec(line_of(self, offset, dim1, dim2).sizes, self.dtype(), self.device());
}
void diagonal_copy_into(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2, const Tensor& out) {
  if (out.plain_numel() == 0) return;
  Line line = line_of(self, offset, dim1, dim2);
  copy_values(out, alias_with(self, std::move(line.sizes), std::move(line.strides), std::move(line.start)));
}
Batched diagonal_copy_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  int64_t rank = self.dim() - 1;
  return {diagonal_copy(self, call.arg<int64_t>(1), normalize_dim(call.arg<int64_t>(2), rank) + 1,
                        normalize_dim(call.arg<int64_t>(3), rank) + 1),
          {0}};
}

// --- diag ------------------------------------------------------------------------------------------------

void check_diag(const Tensor& self) {
  require(self.dim() == 1 || self.dim() == 2, "diag(): Supports 1D or 2D tensors. Got {}D", self.dim());
}
Tensor diag_composite(const Tensor& self, int64_t offset) {
  check_diag(self);
  return self.dim() == 1 ? diag_embed(self, offset) : diagonal_copy(self, offset);
}
const Tensor& diag_out_composite(const Tensor& self, int64_t offset, const Tensor& out) {
  check_diag(self);
  return self.dim() == 1 ? diag_embed_out(out, self, offset) : diagonal_copy_out(out, self, offset);
}

}  // namespace

WEFT_OPERATOR(diag_embed) = {
    .schema = "aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    .out =
        "aten::diag_embed.out(Tensor self, int offset=0, int dim1=-2, int dim2=-1, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&diag_embed_meta>(),
    .kernel = structured_exact<&diag_embed_meta, &diag_embed_into>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  return Grads{diagonal(v.grad(), v.arg<int64_t>(1), v.arg<int64_t>(2), v.arg<int64_t>(3))};
                }},
    .batch = diag_embed_batch,
    .decompose = function<&diag_embed_parts>(),
    .samples =
        [] {
          return Samples{{"vector", {f64({3})}},
                         {"upper", {f64({2, 3}), 1}},
                         {"lower_dims", {transposed(f64({2, 3})), -2, 0, 2}},
                         {"swapped", {c128({3}), 1, 1, 0}}};
        },
};

WEFT_OPERATOR(diagonal_copy) = {
    .schema = "aten::diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    .out =
        "aten::diagonal_copy.out(Tensor self, int offset=0, int dim1=0, int dim2=1, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&diagonal_copy_meta>(),
    .kernel = structured_exact<&diagonal_copy_meta, &diagonal_copy_into>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{diagonal_backward(v.grad(), v.sizes(0), v.arg<int64_t>(1), v.arg<int64_t>(2),
                                                 v.arg<int64_t>(3))};
                }},
    .batch = diagonal_copy_batch,
    .decompose = function<&diagonal_copy_parts>(),
    .samples =
        [] {
          return Samples{{"main", {f64({3, 3})}},
                         {"upper", {f64({3, 4}), 1}},
                         {"dims", {f64({2, 3, 3}), -1, 1, 2}},
                         {"outside", {f64({2, 3}), 4}}};
        },
};

WEFT_OPERATOR(diag) = {
    .schema = "aten::diag(Tensor self, int diagonal=0) -> Tensor",
    .out = "aten::diag.out(Tensor self, int diagonal=0, *, Tensor(a!) out) -> Tensor(a!)",
    .composite = {.functional = function<&diag_composite>(), .out = function<&diag_out_composite>()},
    .samples =
        [] {
          return Samples{{"vector", {f64({3})}}, {"matrix", {f64({3, 4}), 1}}, {"lower", {f64({3, 2}), -1}}};
        },
};

}  // namespace weft::ops
