// Slices and elements written or read by an index.
#include "ops/support/checks.h"
#include "ops/support/family.h"
#include "ops/support/number_range.h"

namespace weft::ops {
namespace {

std::vector<Tensor> places_at(int64_t dim, const Tensor& index) {
  std::vector<Tensor> places(static_cast<size_t>(dim));
  places.push_back(index.dim() == 0 ? unsqueeze(index, 0) : index);
  return places;
}
void check_index(const char* op, const Tensor& self, int64_t dim, const Tensor& index) {
  normalize_dim(dim, self.dim());
  require(index.dtype() == kInt64, "{}(): Expected dtype int64 for index, but got {}", op, describe(index));
  require(index.dim() <= 1, "{}(): Index should have dimension 1 or 0 (got {})", op, index.dim());
}
TensorSpec written_like(const Tensor& self) {
  return {self.dtype(), self.device(), SymInts(self.sizes()), preserved_strides(self)};
}

// --- index_fill ------------------------------------------------------------------------------------------

TensorSpec rows_fill_meta(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  check_index("index_fill_", self, dim, index);
  require(!value.is_complex() || self.is_complex(),
          "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  return written_like(self);
}
Tensor rows_fill_parts(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  const int64_t d = normalize_dim(dim, self.dim());
  Tensor number = scalar_tensor(value, self.dtype(), Layout::kStrided, self.device());
  if (self.dim() == 0) return squeeze(index_put(unsqueeze(self, 0), places_at(0, index), number, false), 0);
  return index_put(self, places_at(d, index), number, false);
}
void rows_fill_into(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                    const Tensor& out) {
  copy_values(out, rows_fill_parts(self, dim, index, value));
}
TensorSpec rows_fill_tensor_meta(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  check_index("index_fill_", self, dim, index);
  require(value.dim() == 0, "Only supports 0-dimension value tensor, but got tensor with {} dimensions.",
          value.dim());
  return written_like(self);
}
Tensor rows_fill_tensor_parts(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  const int64_t d = normalize_dim(dim, self.dim());
  Tensor number = value.to(self.dtype());
  if (self.dim() == 0) return squeeze(index_put(unsqueeze(self, 0), places_at(0, index), number, false), 0);
  return index_put(self, places_at(d, index), number, false);
}
void rows_fill_tensor_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value,
                           const Tensor& out) {
  copy_values(out, rows_fill_tensor_parts(self, dim, index, value));
}

// --- index_copy ------------------------------------------------------------------------------------------

TensorSpec rows_copy_meta(const Tensor& self, int64_t dim_, const Tensor& index, const Tensor& source) {
  const int64_t dim = normalize_dim(dim_, self.dim());
  require(index.dim() < 2, "index_copy_(): Index should have dimension 1 or 0 (got {})", index.dim());
  require(index.dtype() == kInt64, "index_copy_(): Expected a long tensor for index, but got {}",
          describe(index));
  require(self.dtype() == source.dtype(),
          "index_copy_(): self and source expected to have the same dtype, but got (self) {} and (source) {}",
          dtype_name(self.dtype()), dtype_name(source.dtype()));
  require(
      source.dim() == self.dim() || source.dim() == 0 || self.dim() == 0,
      "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
      "dimensionality ({}), destination dimensionality ({})",
      source.dim(), self.dim());
  require(source.dim() > 0 || guard_or(index.numel() == 1, true),
          "index_copy_(): When source is scalar, index should have one element (got {})",
          index.numel().to_string());
  if (source.dim() == 0 || self.dim() == 0) return written_like(self);
  require(guard_or(index.numel() == source.size(dim), true),
          "index_copy_(): Number of indices ({}) should be equal to source.size(dim) ({})",
          index.numel().to_string(), source.size(dim).to_string());
  for (int64_t d = 0; d < self.dim(); ++d)
    require(d == dim || guard_or(self.size(d) == source.size(d), true),
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            "{} at dimension "
            "{} and source slice shape: {} at dimension 0.",
            describe_sizes(self.sizes()), dim, describe_sizes(source.sizes()));
  return written_like(self);
}
Tensor rows_copy_parts(const Tensor& self, int64_t dim_, const Tensor& index, const Tensor& source) {
  const int64_t dim = normalize_dim(dim_, self.dim());
  if (self.dim() == 0)
    return squeeze(index_put(unsqueeze(self, 0), places_at(0, index), reshape(source, {-1}), false), 0);
  return index_put(self, places_at(dim, index), source, false);
}
void rows_copy_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    const Tensor& out) {
  copy_values(out, rows_copy_parts(self, dim, index, source));
}
Grads rows_copy_vjp(const Vjp& v) {
  const auto dim = v.arg<int64_t>(1);
  Tensor index = v.input(2), to_source;
  if (v.wants(3)) {
    to_source = index_select(v.grad(), dim, index);
    to_source = view(to_source, v.sizes(3));
  }
  return {v.wants(0) ? index_fill(v.grad(), dim, index, 0) : Tensor(), Tensor(), to_source};
}

// --- take ------------------------------------------------------------------------------------------------

TensorSpec take_meta(const Tensor& self, const Tensor& index) {
  require(index.dtype() == kInt64, "take(): Expected a long tensor for index, but got {}", describe(index));
  require(!guard_or(self.numel() == 0, false) || guard_or(index.numel() == 0, false),
          "take(): tried to take from an empty tensor");
  return contiguous_spec(index.sizes(), self.dtype(), self.device());
}
Tensor take_parts(const Tensor& self, const Tensor& index_) { return index(reshape(self, {-1}), {index_}); }
void take_into(const Tensor& self, const Tensor& index, const Tensor& out) {
  copy_values(out, take_parts(self, index));
}
Grads take_vjp(const Vjp& v) {
  SymInt count = 1;
  for (const SymInt& size : v.sizes(0)) count = count * size;
  Tensor flat = index_put(new_zeros(v.grad(), SymInts{count}), {v.input(1)}, v.grad(), true);
  return {view(flat, v.sizes(0)), Tensor()};
}

}  // namespace

WEFT_OPERATOR(index_fill_scalar) = {
    .schema = "aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    .inplace =
        "aten::index_fill_.int_Scalar(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)",
    .out =
        "aten::index_fill.int_Scalar_out(Tensor self, int dim, Tensor index, Scalar value, *, Tensor(a!) "
        "out) -> Tensor(a!)",
    .meta = function<&rows_fill_meta>(),
    .kernel = structured_exact<&rows_fill_meta, &rows_fill_into>(),
    .vjp = {.saves = inputs(2),
            .rule =
                [](const Vjp& v) {
                  return Grads{index_fill(v.grad(), v.arg<int64_t>(1), v.input(2), 0), Tensor()};
                }},
    .batch = loop_batch,
    .decompose = function<&rows_fill_parts>(),
    .samples =
        [] {
          return Samples{{"rows", {f64({3, 4}), 0, i64({2}, 0, 3), 1.5}},
                         {"columns", {i64({3, 4}), 1, i64({2}, 0, 4), 7}}};
        },
};

WEFT_OPERATOR(index_fill_tensor) = {
    .schema = "aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    .inplace =
        "aten::index_fill_.int_Tensor(Tensor(a!) self, int dim, Tensor index, Tensor value) -> Tensor(a!)",
    .out =
        "aten::index_fill.int_Tensor_out(Tensor self, int dim, Tensor index, Tensor value, *, Tensor(a!) "
        "out) -> Tensor(a!)",
    .meta = function<&rows_fill_tensor_meta>(),
    .kernel = structured_exact<&rows_fill_tensor_meta, &rows_fill_tensor_into>(),
    .vjp = {.saves = inputs(2),
            .rule =
                [](const Vjp& v) {
                  return Grads{index_fill(v.grad(), v.arg<int64_t>(1), v.input(2), 0), Tensor(),
                               sum(v.grad() - index_fill(v.grad(), v.arg<int64_t>(1), v.input(2), 0))};
                }},
    .batch = loop_batch,
    .decompose = function<&rows_fill_tensor_parts>(),
    .samples = [] { return Samples{{"rows", {f64({3, 4}), 0, i64_list({0, 2}), f64({})}}}; },
};

WEFT_OPERATOR(index_copy) = {
    .schema = "aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    .inplace = "aten::index_copy_(Tensor(a!) self, int dim, Tensor index, Tensor source) -> Tensor(a!)",
    .out =
        "aten::index_copy.out(Tensor self, int dim, Tensor index, Tensor source, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .meta = function<&rows_copy_meta>(),
    .kernel = structured_exact<&rows_copy_meta, &rows_copy_into>(),
    .vjp = {.saves = inputs(2) | sizes(3), .rule = rows_copy_vjp},
    .batch = loop_batch,
    .decompose = function<&rows_copy_parts>(),
    .samples = [] { return Samples{{"rows", {f64({3, 4}), 0, i64_list({2, 0}), f64({2, 4})}}}; },
};

WEFT_OPERATOR(take) = {
    .schema = "aten::take(Tensor self, Tensor index) -> Tensor",
    .out = "aten::take.out(Tensor self, Tensor index, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&take_meta>(),
    .kernel = structured_apart<&take_meta, &take_into, OutType::kExact>(),
    .vjp = {.saves = inputs(1) | sizes(0), .rule = take_vjp},
    .batch = loop_batch,
    .decompose = function<&take_parts>(),
    .samples = [] { return Samples{{"flat", {f64({2, 3}), i64({2, 2}, 0, 6)}}}; },
};

}  // namespace weft::ops
