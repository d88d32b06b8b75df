// Truth of elements: exclusive or, infinities, signs.
#include <limits>

#include "ops/support/family.h"

namespace weft::ops {
namespace {

TensorSpec xor_meta(const Tensor& self, const Tensor& other) {
  return pointwise_spec({&self, &other}, kBool);
}
void xor_into(const Tensor& self, const Tensor& other, const Tensor& out) {
  copy_values(out, (self != 0) != (other != 0));
}

TensorSpec truth_meta(const Tensor& self) { return pointwise_spec({&self}, kBool); }
void isinf_into(const Tensor& self, const Tensor& out) {
  const Scalar infinity(std::numeric_limits<double>::infinity());
  if (self.is_complex())
    copy_values(out, logical_or(abs(real(self)) == infinity, abs(imag(self)) == infinity));
  else if (is_floating(self.dtype())) copy_values(out, abs(self) == infinity);
  else copy_values(out, self != self);
}

TensorSpec signbit_meta(const Tensor& self) {
  require(!self.is_complex(), "signbit is not implemented for complex tensors.");
  return pointwise_spec({&self}, kBool);
}
// Zeros and NaNs have a sign too: 1 with that sign is below zero.
void signbit_into(const Tensor& self, const Tensor& out) {
  if (!is_floating(self.dtype()))
    return copy_values(out, self.dtype() == kBool ? zeros(self.sizes(), kBool) : self < 0);
  Tensor one = allocate_contiguous(self.sizes(), self.dtype()),
         ones_like_self = ones(self.sizes(), self.dtype());
  run_pointwise(cpu::kCopySign, self.dtype(), one, {&ones_like_self, &self});
  copy_values(out, one < 0);
}

Samples logical_samples() {
  return {{"plain", {f64({3, 4})}}, {"integers", {i64({4})}}, {"transposed", {transposed(f64({3, 4}))}}};
}

}  // namespace

WEFT_OPERATOR(logical_xor) = {
    .schema = "aten::logical_xor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::logical_xor_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::logical_xor.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kCommutative | Traits::kNotDifferentiable,
    .meta = function<&xor_meta>(),
    .kernel = structured<&xor_meta, &xor_into>(),
    .lower = not_lowered("it is three calls: two comparisons with zero, and one of them"),
    .batch = pointwise_batch,
    .samples =
        [] {
          return Samples{{"bool", {boolean({2, 3}), boolean({2, 3})}},
                         {"mixed", {i64({3}, -1, 2), boolean({3})}}};
        },
};

WEFT_OPERATOR(isinf) = {
    .schema = "aten::isinf(Tensor self) -> Tensor",
    .out = "aten::isinf.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = function<&truth_meta>(),
    .kernel = structured<&truth_meta, &isinf_into>(),
    .lower = not_lowered("it is a magnitude and a comparison"),
    .batch = pointwise_batch,
    .samples = logical_samples,
};

WEFT_OPERATOR(signbit) = {
    .schema = "aten::signbit(Tensor self) -> Tensor",
    .out = "aten::signbit.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise | Traits::kNotDifferentiable,
    .meta = function<&signbit_meta>(),
    .kernel = structured_exact<&signbit_meta, &signbit_into>(),
    .lower = not_lowered("it is a sign and a comparison"),
    .batch = pointwise_batch,
    .samples = logical_samples,
};

}  // namespace weft::ops
