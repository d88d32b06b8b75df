// Reductions made of others: logarithms of sums, traces, counts.
#include <limits>

#include "ops/support/family.h"
#include "ops/support/reduction.h"

namespace weft::ops {
namespace {

// --- logsumexp -------------------------------------------------------------------------------------------

DType logsumexp_type(const Tensor& self) { return float_type(self.dtype()); }
TensorSpec logsumexp_meta(const Tensor& self, IntSpan dim, bool keepdim) {
  return contiguous_spec(reduced_sizes(self.sizes(), dim_mask(dim, self.dim()), keepdim),
                         logsumexp_type(self), self.device());
}
// The largest element goes out of the exponentials, so that they stay numbers.
Tensor logsumexp_parts(const Tensor& self_, IntSpan dim, bool keepdim) {
  Tensor self = self_.to(logsumexp_type(self_));
  if (guard_or(self.numel() == 0, false)) return log(sum(exp(self), dim, keepdim));
  Tensor largest = amax(self.is_complex() ? real(self) : self, dim, true);
  Tensor is_endless = abs(largest) == Scalar(std::numeric_limits<double>::infinity());
  Tensor kept = where(is_endless, Scalar(0.0), largest), outside = kept;
  if (!keepdim && self.dim() > 0) {
    Ints dims;
    const uint64_t mask = dim_mask(dim, self.dim());
    for (int64_t d = 0; d < self.dim(); ++d)
      if (mask >> d & 1) dims.push_back(d);
    outside = squeeze(kept, IntSpan(dims));
  }
  return log(sum(exp(self - kept), dim, keepdim)) + outside;
}
void logsumexp_into(const Tensor& self, IntSpan dim, bool keepdim, const Tensor& out) {
  const DType type = logsumexp_type(self);
  const bool is_narrow = item_size(type) == 2;
  copy_values(out, logsumexp_parts(is_narrow ? self.to(kFloat32) : self, dim, keepdim));
}
Grads logsumexp_vjp(const Vjp& v) {
  auto dims = boxing::Unboxed<IntSpan>(v.arg(1));
  Tensor self = v.input(0);
  Tensor grad = restore_reduced(v.grad(), self.sizes(), dims.get(), v.arg<bool>(2)),
         result = restore_reduced(v.output(), self.sizes(), dims.get(), v.arg<bool>(2));
  return {grad * conj_of(exp(self - result))};
}

// --- trace -----------------------------------------------------------------------------------------------

DType trace_type(const Tensor& self) { return self.dtype() <= kInt64 ? kInt64 : self.dtype(); }
TensorSpec trace_meta(const Tensor& self) {
  require(self.dim() == 2, "trace: expected a matrix, but got tensor with dim {}", self.dim());
  require(self.dtype() != kBool, "\"trace\" not implemented for 'Bool'");
  return contiguous_spec({}, trace_type(self), self.device());
}
Tensor trace_parts(const Tensor& self) {
  require(self.dim() == 2, "trace: expected a matrix, but got tensor with dim {}", self.dim());
  return sum(diagonal_copy(self));
}
void trace_into(const Tensor& self, const Tensor& out) { copy_values(out, trace_parts(self)); }
Grads trace_vjp(const Vjp& v) {
  Tensor start = new_zeros(v.grad(), v.sizes(0));
  SymInt length = min(v.sizes(0)[0], v.sizes(0)[1]);
  return {diagonal_scatter(start, expand(v.grad(), {length}))};
}
Batched trace_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  require(self.dim() == 3, "trace: expected a matrix, but got tensor with dim {}", self.dim() - 1);
  return {sum(diagonal(self, 0, 1, 2), {1}), {0}};
}

// --- count_nonzero ---------------------------------------------------------------------------------------

TensorSpec count_dims_meta(const Tensor& self, IntSpan dim) {
  return contiguous_spec(reduced_sizes(self.sizes(), dim_mask(dim, self.dim()), false), kInt64,
                         self.device());
}
Tensor count_dims_parts(const Tensor& self, IntSpan dim) { return sum(self != 0, dim); }
void count_dims_into(const Tensor& self, IntSpan dim, const Tensor& out) {
  copy_values(out, count_dims_parts(self, dim));
}
TensorSpec count_meta(const Tensor& self, std::optional<int64_t> dim) {
  return dim ? count_dims_meta(self, IntSpan(Ints{*dim})) : count_dims_meta(self, {});
}
Tensor count_parts(const Tensor& self, std::optional<int64_t> dim) {
  return dim ? count_dims_parts(self, IntSpan(Ints{*dim})) : count_dims_parts(self, {});
}
void count_into(const Tensor& self, std::optional<int64_t> dim, const Tensor& out) {
  copy_values(out, count_parts(self, dim));
}
Batched count_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  auto dim = call.arg<std::optional<int64_t>>(1);
  Ints dims;
  if (dim) dims.push_back(normalize_dim(*dim, self.dim() - 1) + 1);
  else
    for (int64_t d = 1; d < self.dim(); ++d) dims.push_back(d);
  return {dims.empty() ? (self != 0).to(kInt64) : count_nonzero(self, IntSpan(dims)), {0}};
}

}  // namespace

WEFT_OPERATOR(logsumexp) = {
    .schema = "aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    .out =
        "aten::logsumexp.out(Tensor self, int[1] dim, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    .meta = function<&logsumexp_meta>(),
    .kernel = structured<&logsumexp_meta, &logsumexp_into>(),
    .vjp = {.saves = inputs(0) | outputs(0), .rule = logsumexp_vjp},
    .batch = dims_batch<1>,
    .decompose = function<&logsumexp_parts>(),
    .samples =
        [] {
          return Samples{{"rows", {f64({3, 4}), ints({1})}},
                         {"keep", {f64({3, 4}), ints({0, 1}), true}},
                         {"f32", {f32({3}), ints({0})}}};
        },
};

WEFT_OPERATOR(trace) = {
    .schema = "aten::trace(Tensor self) -> Tensor",
    .out = "aten::trace.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&trace_meta>(),
    .kernel = structured_exact<&trace_meta, &trace_into>(),
    .vjp = {.saves = sizes(0), .rule = trace_vjp},
    .batch = trace_batch,
    .decompose = function<&trace_parts>(),
    .samples = [] { return Samples{{"wide", {f64({2, 3})}}, {"integers", {i64({3, 3})}}}; },
};

WEFT_OPERATOR(count_nonzero) = {
    .schema = "aten::count_nonzero(Tensor self, int? dim=None) -> Tensor",
    .out = "aten::count_nonzero.out(Tensor self, int? dim=None, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kNotDifferentiable,
    .meta = function<&count_meta>(),
    .kernel = structured_exact<&count_meta, &count_into>(),
    .batch = count_batch,
    .decompose = function<&count_parts>(),
    .samples = [] { return Samples{{"all", {i64({3, 4}, -1, 2)}}, {"rows", {i64({3, 4}, -1, 2), 1}}}; },
};

WEFT_OPERATOR(count_nonzero_dims) = {
    .schema = "aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
    .out = "aten::count_nonzero.dim_IntList_out(Tensor self, int[] dim, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kNotDifferentiable,
    .meta = function<&count_dims_meta>(),
    .kernel = structured_exact<&count_dims_meta, &count_dims_into>(),
    .batch = dims_batch<1>,
    .decompose = function<&count_dims_parts>(),
    .samples = [] { return Samples{{"rows", {i64({3, 4}, -1, 2), ints({1})}}}; },
};

}  // namespace weft::ops
