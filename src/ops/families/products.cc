// Products of elements.
#include "ops/support/family.h"
#include "ops/support/reduction.h"

namespace weft::ops {
namespace {

using MaybeType = std::optional<DType>;

DType product_type(const Tensor& self, const MaybeType& dtype) {
  return dtype ? *dtype : self.dtype() <= kInt64 ? kInt64 : self.dtype();
}
TensorSpec product_spec(const Tensor& self, uint64_t mask, bool keepdim, const MaybeType& dtype) {
  return contiguous_spec(reduced_sizes(self.sizes(), mask, keepdim), product_type(self, dtype),
                         self.device());
}
ReductionCall product_call(const Tensor& self, uint64_t mask, bool keepdim, const MaybeType& dtype) {
  const DType type = product_type(self, dtype);
  return {&cpu::kProd, type <= kInt64 ? kInt64 : type, mask, keepdim};
}
uint64_t mask_of(const Tensor& self, int64_t dim) { return dim_mask(IntSpan(Ints{dim}), self.dim()); }

TensorSpec prod_meta(const Tensor& self, MaybeType dtype) {
  return product_spec(self, dim_mask({}, self.dim()), false, dtype);
}
ReductionCall prod_lower(const Tensor& self, MaybeType dtype) {
  return product_call(self, dim_mask({}, self.dim()), false, dtype);
}
TensorSpec prod_dim_meta(const Tensor& self, int64_t dim, bool keepdim, MaybeType dtype) {
  return product_spec(self, mask_of(self, dim), keepdim, dtype);
}
ReductionCall prod_dim_lower(const Tensor& self, int64_t dim, bool keepdim, MaybeType dtype) {
  return product_call(self, mask_of(self, dim), keepdim, dtype);
}
using Prod = LoweredReduction<&prod_lower>;
using ProdDim = LoweredReduction<&prod_dim_lower>;
// Without a type of its own, the product is made in the type of the target.
const Tensor& prod_dim_out_kernel(const Tensor& self, int64_t dim, bool keepdim, MaybeType dtype,
                                  const Tensor& out) {
  if (dtype) check_out_type(OutType::kExact, {*dtype, self.device(), {}, {}}, out);
  return StructuredForms<&prod_dim_meta, &ProdDim::into>::out(self, dim, keepdim, out.dtype(), out);
}

// Of each element the product of the others: the quotient, but for zeros. One zero is left with the product
// of what is not zero, more than one makes all of them zero.
Tensor product_of_others(const Tensor& self, Ints dims) {
  Tensor is_zero = self == 0, filled = masked_fill(self, is_zero, 1);
  Tensor zeros_in = self.dim() == 0 ? is_zero.to(kInt64) : sum(is_zero, dims, true);
  Tensor product = filled;
  for (int64_t dim : dims) product = prod(product, dim, true);
  Tensor of_rest = where(zeros_in == 0, product / filled, Scalar(0));
  return where(is_zero, where(zeros_in == 1, product, Scalar(0)), of_rest);
}
Grads prod_vjp(const Vjp& v) {
  Tensor self = v.input(0).to(v.grad().dtype());
  Ints dims;
  for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  return {v.grad() * conj_of(product_of_others(self, dims))};
}
Grads prod_dim_vjp(const Vjp& v) {
  Tensor self = v.input(0).to(v.grad().dtype());
  if (self.dim() == 0) return {v.grad()};
  const int64_t dim = normalize_dim(v.arg<int64_t>(1), self.dim());
  Tensor grad = v.arg<bool>(2) ? v.grad() : unsqueeze(v.grad(), dim);
  return {grad * conj_of(product_of_others(self, Ints{dim}))};
}
Batched prod_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  return {prod(reshape(self, {self.size(0), -1}), 1, false, call.arg<MaybeType>(1)), {0}};
}

}  // namespace

WEFT_OPERATOR(prod) = {
    .schema = "aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    .out = "aten::prod.out(Tensor self, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kReduction,
    .meta = function<&prod_meta>(),
    .kernel = structured_exact<&prod_meta, &Prod::into>(),
    .lower = lowering<&prod_lower>(),
    .vjp = {.saves = inputs(0), .rule = prod_vjp},
    .batch = prod_batch,
    .samples =
        [] { return Samples{{"all", {f64({2, 3})}}, {"scalar", {f64({})}}, {"integers", {i64({3}, 1, 5)}}}; },
};

WEFT_OPERATOR(prod_dim_int) = {
    .schema =
        "aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    .out =
        "aten::prod.int_out(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) "
        "out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kReduction,
    .meta = function<&prod_dim_meta>(),
    .kernel = with_out<&prod_dim_out_kernel>(structured<&prod_dim_meta, &ProdDim::into>()),
    .lower = lowering<&prod_dim_lower>(),
    .vjp = {.saves = inputs(0), .rule = prod_dim_vjp},
    .batch = dim_batch<1>,
    .samples = [] { return Samples{{"rows", {f64({2, 3}), 1}}, {"keep", {f64({2, 3}), 0, true}}}; },
};

}  // namespace weft::ops
