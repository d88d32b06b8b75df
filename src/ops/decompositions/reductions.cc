// Arithmetic, reductions and matrix products of few terms by core operators.
#include "ops/decompositions/decompositions.h"
#include "ops/decompositions/steps.h"
#include "ops/support/derivatives.h"
#include "ops/support/pointwise.h"
#include "ops/support/shapes.h"
#include "weft/base/error.h"
#include "weft/ops/functions.h"
#include "weft/ops/operators.h"

namespace weft::ops {
namespace {

using MaybeType = std::optional<DType>;
using MaybeScalar = std::optional<Scalar>;
using Pair = std::tuple<Tensor, Tensor>;

OneOrMore<OptionalSpan<IntSpan>> given(OptionalIntSpan dims) { return dims; }

}  // namespace

Tensor rsub_scalar_parts(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return sub(wrapped_number(other), self, alpha);
}
Tensor clamp_min_parts(const Tensor& self, const Scalar& min) { return clamp(self, min); }
Tensor clamp_max_parts(const Tensor& self, const Scalar& max) { return clamp(self, std::nullopt, max); }
Tensor floor_divide_parts(const Tensor& self, const Tensor& other) { return div(self, other, "floor"); }
Tensor floor_divide_scalar_parts(const Tensor& self, const Scalar& other) {
  return div(self, other, "floor");
}
Tensor sgn_parts(const Tensor& self) {
  if (!self.is_complex()) return sign(self);
  Tensor size = abs(self), is_zero = size == 0;
  return where(is_zero, Scalar(0), self / size);
}

// --- reductions ------------------------------------------------------------------------------------------

namespace {
// Everything holds where nothing fails. Of bytes, the answer is a byte.
Tensor typed_like(const Tensor& self, const Tensor& truth) {
  return self.dtype() == kUInt8 ? truth.to(kUInt8) : truth;
}
}  // namespace
Tensor all_parts(const Tensor& self) {
  return typed_like(self, logical_not(any(logical_not(self), OptionalIntSpan(), false)));
}
Tensor all_dim_parts(const Tensor& self, int64_t dim, bool keepdim) {
  return typed_like(self, logical_not(any(logical_not(self), dim, keepdim)));
}
Tensor all_dims_parts(const Tensor& self, OptionalIntSpan dim, bool keepdim) {
  return typed_like(self, logical_not(any(logical_not(self), dim, keepdim)));
}
Tensor sum_parts(const Tensor& self, MaybeType dtype) { return sum(self, IntSpan(), false, dtype); }

Tensor norm_scalar_parts(const Tensor& self, const Scalar& p) { return linalg_vector_norm(self, p); }
Tensor norm_dtype_parts(const Tensor& self, const MaybeScalar& p, DType dtype) {
  return linalg_vector_norm(self, p.value_or(Scalar(2)), OptionalIntSpan(), false, dtype);
}
Tensor norm_dim_parts(const Tensor& self, const MaybeScalar& p, IntSpan dim, bool keepdim) {
  return linalg_vector_norm(self, p.value_or(Scalar(2)), dim, keepdim);
}
Tensor norm_dim_dtype_parts(const Tensor& self, const MaybeScalar& p, IntSpan dim, bool keepdim,
                            DType dtype) {
  return linalg_vector_norm(self, p.value_or(Scalar(2)), dim, keepdim, dtype);
}
Tensor std_parts(const Tensor& self, OptionalIntSpan dim, const MaybeScalar& correction, bool keepdim) {
  const Steps steps(self);
  Tensor variance = var(steps.in(self), given(dim), correction, keepdim);
  return Steps(self.is_complex() ? real_type(self.dtype()) : self.dtype()).out(sqrt(variance));
}
Pair std_mean_parts(const Tensor& self, OptionalIntSpan dim, const MaybeScalar& correction, bool keepdim) {
  const Steps steps(self);
  auto [variance, mean] = var_mean(steps.in(self), given(dim), correction, keepdim);
  Tensor deviation = sqrt(variance);
  return {Steps(self.is_complex() ? real_type(self.dtype()) : self.dtype()).out(deviation), steps.out(mean)};
}
Tensor softmax_backward_parts(const Tensor& grad, const Tensor& output, int64_t dim, DType) {
  const Steps steps(grad);
  Tensor g = steps.in(grad), y = steps.in(output), product = g * y;
  Tensor total = sum(product, IntSpan(Ints{dim}), true);
  return contiguous(steps.out(product - y * total));
}
Tensor log_softmax_backward_parts(const Tensor& grad, const Tensor& output, int64_t dim, DType) {
  const Steps steps(grad);
  Tensor g = steps.in(grad), shares = exp(steps.in(output)), total = sum(g, IntSpan(Ints{dim}), true);
  return contiguous(steps.out(g - shares * total));
}

// --- matrix products -------------------------------------------------------------------------------------

Tensor dot_parts(const Tensor& self, const Tensor& tensor) {
  const Steps steps(self, tensor);
  Tensor a = steps.in(self), b = steps.in(tensor);
  return steps.out(sum(a * b));
}
Tensor mv_parts(const Tensor& self, const Tensor& vec) {
  const Steps steps(self, vec);
  Tensor a = steps.in(self), b = steps.in(vec);
  return steps.out(sum(a * b, IntSpan(Ints{1})));
}
Tensor baddbmm_parts(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta_,
                     const Scalar& alpha_) {
  const Steps steps(self, batch1, batch2);
  // Factors of integers are integers.
  const bool is_whole = is_integral(self.dtype()) || self.dtype() == kBool;
  const Scalar beta = is_whole ? Scalar(beta_.to_int()) : beta_,
               alpha = is_whole ? Scalar(alpha_.to_int()) : alpha_;
  auto scaled = [](const Tensor& t, const Scalar& by) { return by.equals_number(1) ? t : t * by; };
  Tensor start = steps.in(self), a = steps.in(batch1), b = steps.in(batch2);
  Tensor product = scaled(bmm(a, b), alpha);
  if (beta.equals_number(0)) return steps.out(product);
  return steps.out(scaled(start, beta) + product);
}

// --- indices ---------------------------------------------------------------------------------------------

Tensor index_add_parts(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                       const Scalar& alpha) {
  const int64_t d = normalize_dim(dim, self.dim());
  Tensor added = alpha.equals_number(1) ? source : source * alpha;
  const bool is_number = self.dim() == 0;
  std::vector<Tensor> places(static_cast<size_t>(d));
  places.push_back(index.dim() == 0 ? unsqueeze(index, 0) : index);
  if (is_number) return squeeze(index_put(unsqueeze(self, 0), places, added, true), IntSpan(Ints{0}));
  return index_put(self, places, added, true);
}
// Lookups outside of the table, and those of the padding row, add nothing to a row that exists.
Tensor embedding_dense_backward_parts(const Tensor& grad_, const Tensor& indices, const SymInt& rows,
                                      const SymInt& padding, bool scale_by_frequency) {
  const Steps steps(grad_);
  Tensor grad = steps.in(grad_);
  const Scalar first(-rows), last(rows - 1);
  Tensor is_inside = indices >= 0;
  is_inside = bitwise_and(is_inside, indices < Scalar(rows));
  Tensor places = indices.dtype() == kInt64 ? indices : indices.to(kInt64);
  auto added_up = [&](const Tensor& into, const Tensor& is_counted, const Tensor& values) {
    Tensor row = clamp(places, first, last), kept = masked_fill(values, bitwise_not(is_counted), 0);
    return index_put(into, {row}, kept, true);
  };
  if (scale_by_frequency) {
    Tensor zeros = full({rows}, 0, places.dtype(), Layout::kStrided, grad.device());
    Tensor counts = added_up(zeros, is_inside, ones_like(places));
    Tensor own = index(counts, {clamp(places, Scalar(0), last)});
    grad = grad / unsqueeze(masked_fill(own, bitwise_not(is_inside), 1), -1);
  }
  Tensor is_counted = bitwise_and(is_inside, indices != Scalar(padding));
  for (int64_t d = indices.dim(); d < grad.dim(); ++d) is_counted = unsqueeze(is_counted, -1);
  SymInts sizes{rows};
  for (const SymInt& size : grad.sizes().subspan(static_cast<size_t>(indices.dim()))) sizes.push_back(size);
  Tensor table = full(sizes, 0, grad.dtype(), Layout::kStrided, grad.device());
  return steps.out(added_up(table, is_counted, grad));
}
// Each element of the result is one of the input: which one, the quotient of the sizes tells.
Tensor upsample_nearest2d_parts(const Tensor& self, SymIntSpan output_size, std::optional<double> scales_h,
                                std::optional<double> scales_w) {
  const Steps steps(self);
  Tensor image = steps.in(self);
  auto source = [&](size_t d, std::optional<double> scale) {
    const SymInt from = self.sizes()[d + 2], to = output_size[d];
    const Scalar ratio = scale ? Scalar(1.0 / *scale) : Scalar(sym_float(from) / sym_float(to));
    Tensor numbers = arange(0, Scalar(to), 1, kFloat32, std::nullopt, self.device());
    return ((numbers + 0.0) * ratio).to(kInt64);
  };
  Tensor rows = unsqueeze(source(0, scales_h), -1), columns = source(1, scales_w);
  Tensor picked = index(image, {Tensor(), Tensor(), rows, columns});
  return steps.out(contiguous(picked, suggested_format(self)));
}

}  // namespace weft::ops
