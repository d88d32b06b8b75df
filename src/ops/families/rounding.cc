// Rounding to whole numbers and to decimals.
#include <cmath>

#include "ops/support/family.h"

namespace weft::ops {
namespace {

Grads flat_vjp(const Vjp& v) { return {zeros_like(v.grad())}; }

TensorSpec decimals_meta(const Tensor& self, int64_t decimals) {
  require(is_floating(self.dtype()) || decimals == 0, "\"round_vml_cpu\" not implemented for '{}'",
          dtype_name(self.dtype()));
  return pointwise_spec({&self}, self.dtype());
}
// Every step is rounded to the tensor's own type.
void decimals_into(const Tensor& self, int64_t decimals, const Tensor& out) {
  if (decimals == 0) return copy_values(out, round(self));
  const Scalar power(std::pow(10.0, static_cast<double>(std::abs(decimals))));
  copy_values(out, decimals < 0 ? round(self / power) * power : round(self * power) / power);
}
Samples rounding_samples() {
  return {{"plain", {f64({3, 4})}},
          {"transposed", {transposed(f64({3, 4}))}},
          {"scalar", {f64({})}},
          {"f32", {f32({5})}},
          {"integers", {i64({3})}}};
}

}  // namespace

WEFT_OPERATOR(round) = {
    .schema = "aten::round(Tensor self) -> Tensor",
    .inplace = "aten::round_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::round.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kRound>::meta_function(),
    .kernel = Unary<cpu::kRound>::exact_kernels(),
    .lower = Unary<cpu::kRound>::lower_rule(),
    .vjp = {.rule = flat_vjp},
    .batch = pointwise_batch,
    .samples = rounding_samples,
};

WEFT_OPERATOR(round_decimals) = {
    .schema = "aten::round.decimals(Tensor self, *, int decimals) -> Tensor",
    .inplace = "aten::round_.decimals(Tensor(a!) self, *, int decimals) -> Tensor(a!)",
    .out = "aten::round.decimals_out(Tensor self, *, int decimals, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&decimals_meta>(),
    .kernel = structured_exact<&decimals_meta, &decimals_into>(),
    .lower = not_lowered("every step is rounded to the type of the tensor"),
    .vjp = {.rule = flat_vjp},
    .batch = pointwise_batch,
    .samples =
        [] { return Samples{{"tenths", {f64({3, 4}), 1}}, {"tens", {make({4}, kFloat32, -90, 90), -1}}}; },
};

WEFT_OPERATOR(trunc) = {
    .schema = "aten::trunc(Tensor self) -> Tensor",
    .inplace = "aten::trunc_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::trunc.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kTrunc>::meta_function(),
    .kernel = Unary<cpu::kTrunc>::exact_kernels(),
    .lower = Unary<cpu::kTrunc>::lower_rule(),
    .vjp = {.rule = flat_vjp},
    .batch = pointwise_batch,
    .samples = rounding_samples,
};

}  // namespace weft::ops
