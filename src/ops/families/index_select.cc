// Whole slices picked and added by index along a dim.
#include "ops/decompositions/decompositions.h"
#include "ops/support/checks.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"
#include "ops/support/index_offsets.h"
#include "ops/support/number_range.h"

namespace weft::ops {
namespace {

TensorSpec index_select_meta(const Tensor& self, int64_t dim, const Tensor& index) {
  int64_t d = normalize_dim(dim, self.dim());
  require(index.dim() <= 1, "index_select(): Index is supposed to be a vector, but it is {}",
          describe(index));
  check_index_type("index_select", index);
  require(self.dim() > 0 || guard_or(index.numel() == 1, true),
          "index_select(): Index to scalar can have only 1 value, got {} value(s)",
          index.is_symbolic() ? 0 : index.plain_numel());
  SymInts sizes(self.sizes());
  if (self.dim() > 0) sizes[static_cast<size_t>(d)] = index.numel();
  return contiguous_spec(sizes, self.dtype(), self.device());
}
// The offsets of the slices of `tensor` that the index selects.
struct NamedSlices {
  std::vector<int64_t> at;
  OffsetsAround around;

  NamedSlices(const Tensor& tensor, int64_t d, const Tensor& index)
      : around(tensor, d, tensor.dim() == 0 ? IntSpan() : tensor.plain_sizes()) {
    int64_t size = tensor.dim() == 0 ? 1 : tensor.plain_sizes()[static_cast<size_t>(d)];
    int64_t stride = tensor.dim() == 0 ? 1 : tensor.plain_strides()[static_cast<size_t>(d)];
    Tensor positions = dense_as(index, kInt64);
    const int64_t* values = positions.data<int64_t>();
    check_positions(values, positions.plain_numel(), size, [&](int64_t wrong) {
      fail("index out of range in self: {} for dimension {} with size {}", wrong, d, size);
    });
    for (int64_t i = 0; i < positions.plain_numel(); ++i) at.push_back(values[i] * stride);
  }
  cpu::IndexedPlaces places() const { return {around.before, at, around.after}; }
};
void index_select_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  NamedSlices named(self, normalize_dim(dim, self.dim()), index);
  write_dense(out, [&](const Tensor& dense) {
    cpu::gather_indexed(named.places(), static_cast<const char*>(self.raw_data()),
                        static_cast<char*>(dense.raw_data()), item_size(self.dtype()));
  });
}
TensorSpec index_add_meta(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                          const Scalar&) {
  normalize_dim(dim, self.dim());
  require(index.dim() <= 1, "index_add_(): Index is supposed to be a vector, but it is {}", describe(index));
  check_index_type("index_add_", index);
  require(self.dtype() == source.dtype(),
          "index_add_(): self ({}) and source ({}) must have the same scalar type", dtype_name(self.dtype()),
          dtype_name(source.dtype()));
  if (self.dim() > 0 && source.dim() > 0 && !guard_or(source.size(dim) == index.numel(), true))
    fail("index_add_(): Number of indices should be equal to source.size(dim): source {}, index {}",
         describe(source), describe(index));
  if (source.dim() != self.dim())
    fail(
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape "
        "= {} source.shape = {}",
        describe_sizes(self.sizes()), describe_sizes(source.sizes()));
  for (int64_t i = 0; i < self.dim(); ++i)
    if (i != normalize_dim(dim, self.dim()) && !guard_or(self.size(i) == source.size(i), true))
      fail(
          "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
          "self.shape = {} source.shape = {}",
          describe_sizes(self.sizes()), describe_sizes(source.sizes()));
  return contiguous_spec(self.sizes(), self.dtype(), self.device());
}
// source * alpha, or where it may be used as it is, the source: dense, and not in memory that is written to.
Tensor scaled_source(const Tensor& source, const Scalar& alpha, const Tensor& out) {
  require_fits(alpha, source.dtype());
  bool as_it_is = alpha.equals_number(1);
  if (as_it_is && source.storage() != out.storage()) return dense_as(source, source.dtype());
  Tensor scaled = allocate_contiguous(source.sizes(), source.dtype());
  if (as_it_is) copy_values(scaled, source);
  else {
    Tensor factor = wrapped_number(alpha);
    run_pointwise(cpu::kMul, source.dtype(), scaled, {&source, &factor});
  }
  return scaled;
}
void index_add_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    const Scalar& alpha, const Tensor& out) {
  check_apart(out, index);
  check_apart(out, source);
  NamedSlices named(out, normalize_dim(dim, self.dim()), index);
  Tensor from = scaled_source(source, alpha, out);
  if (!out.is_same(self)) copy_values(out, self);
  cpu::accumulate_indexed(named.places(), static_cast<char*>(out.raw_data()),
                          static_cast<const char*>(from.raw_data()), false, out.dtype());
}
Tensor index_select_backward_composite(const Tensor& grad, SymIntSpan self_sizes, int64_t dim,
                                       const Tensor& index) {
  return index_add(new_zeros(grad, self_sizes), dim, index, grad);
}

Batched index_select_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0)),
         index = batch_first(call.tensor(2), call.batch_dim(2));
  int64_t rank = logical_rank(self, call.batch_dim(0)), d = normalize_dim(call.arg<int64_t>(1), rank);
  bool both = call.batch_dim(0) >= 0 && call.batch_dim(2) >= 0;
  if (both || rank == 0 || logical_rank(index, call.batch_dim(2)) == 0) return loop_batch(call);
  if (call.batch_dim(2) < 0) return {index_select(self, d + 1, index), {0}};
  // All examples pick from one tensor: the batch is more slices.
  Tensor picked = index_select(self, d, reshape(index, {-1}));
  SymInts sizes(picked.sizes());
  sizes[static_cast<size_t>(d)] = index.size(0);
  sizes.insert(static_cast<size_t>(d) + 1, index.size(1));
  return {reshape(picked, sizes), {d}};
}

}  // namespace

WEFT_OPERATOR(index_select) = {
    .schema = "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor",
    .out = "aten::index_select.out(Tensor self, int dim, Tensor index, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&index_select_meta>(),
    .kernel = structured_apart<&index_select_meta, &index_select_into, OutType::kExact>(),
    .vjp = {.saves = inputs(2) | sizes(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{
                      index_add(new_zeros(v.grad(), v.sizes(0)), v.arg<int64_t>(1), v.input(2), v.grad()),
                      Tensor()};
                }},
    .batch = index_select_batch,
    .samples =
        [] {
          return Samples{{"rows", {f64({3, 4}), 0, i64({5}, 0, 3)}},
                         {"columns", {f64({3, 4}), -1, i64({2}, 0, 4)}}};
        },
};

WEFT_OPERATOR(index_select_backward) = {
    .schema =
        "aten::index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor",
    .composite = {.functional = function<&index_select_backward_composite>()},
    .samples = [] { return Samples{{"rows", {f64({5, 4}), Value::list({3, 4}), 0, i64({5}, 0, 3)}}}; },
};

WEFT_OPERATOR(index_add) = {
    .schema =
        "aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    .inplace =
        "aten::index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> "
        "Tensor(a!)",
    .out =
        "aten::index_add.out(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1, "
        "Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&index_add_meta>(),
    .kernel = structured_exact<&index_add_meta, &index_add_into, true>(),
    .vjp = {.saves = inputs(2) | sizes(3),
            .rule =
                [](const Vjp& v) {
                  Tensor source =
                      index_select(v.grad(), v.arg<int64_t>(1), v.input(2)) * conj_of(v.arg<Scalar>(4));
                  return Grads{v.grad(), Tensor(), view(source, v.sizes(3))};
                }},
    .batch = loop_batch,
    .decompose = function<&index_add_parts>(),
    .samples =
        [] {
          return Samples{{"rows", {f64({3, 4}), 0, i64({2}, 0, 3), f64({2, 4})}},
                         {"scaled", {f64({3}), 0, i64({2}, 0, 3), f64({2}), 0.5}}};
        },
};

}  // namespace weft::ops
