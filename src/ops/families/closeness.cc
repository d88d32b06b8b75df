// Whether values are finite, close to each other, or equal.
#include "ops/support/family.h"
#include "ops/support/reduction.h"
#include "weft/ops/fake.h"

namespace weft::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor isfinite_composite(const Tensor& self) {
  if (self.is_complex()) return logical_and(isfinite(real(self)), isfinite(imag(self)));
  if (!self.is_floating_point()) return ones_like(self, kBool);
  return logical_and(self == self, abs(self) != kInfinity);
}

// |self - other| <= atol + |rtol * other|, or equal.
Tensor isclose_composite(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  require(self.dtype() == other.dtype(), "{} did not match {}", dtype_name(self.dtype()),
          dtype_name(other.dtype()));
  require(rtol >= 0, "rtol must be greater than or equal to zero, but got {}", rtol);
  require(atol >= 0, "atol must be greater than or equal to zero, but got {}", atol);
  Tensor close = self == other;
  bool is_exact = self.dtype() <= kInt64;
  if (equal_nan && !is_exact) logical_or_(close, logical_and(isnan(self), isnan(other)));
  // Without tolerance the inequality could only add what rounding makes equal.
  if (rtol == 0 && atol == 0) return close;
  // Differences of integers are real numbers: those of unsigned ones would wrap.
  Tensor a = self.dtype() == kBool ? self.to(kFloat32) : self, b = is_exact ? other.to(kFloat32) : other;
  Tensor allowed = abs(b * rtol) + atol, error = abs(a - b);
  return logical_or_(close, logical_and(isfinite(error), error <= allowed));
}

// --- answers that are C++ values -------------------------------------------------------------------------

bool every(const Tensor& truth) {
  Tensor all = allocate_contiguous({}, kBool);
  run_reduction(cpu::kAll, kBool, truth, dim_mask(IntSpan(), truth.dim()), {&all});
  return *all.data<bool>();
}
bool allclose_kernel(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return every(isclose(self, other, rtol, atol, equal_nan));
}
SymBool allclose_meta(const Tensor&, const Tensor&, double, double, bool) {
  return unbacked_item("allclose", kBool).to_sym_bool();
}
bool equal_kernel(const Tensor& self, const Tensor& other) {
  if (!same_sizes(self.sizes(), other.sizes())) return false;
  Tensor same = allocate_contiguous(self.sizes(), kBool);
  run_pointwise(cpu::kEq, common_type(self, other), same, {&self, &other});
  return every(same);
}
SymBool equal_meta(const Tensor& self, const Tensor& other) {
  if (self.dim() != other.dim()) return false;
  for (size_t d = 0; d < self.sizes().size(); ++d)
    if (known(self.sizes()[d] != other.sizes()[d])) return false;
  return unbacked_item("equal", kBool).to_sym_bool();
}

constexpr Traits kAnswer = Traits::kDataDependent | Traits::kNotDifferentiable | Traits::kNotBatchable;

Samples close_samples() {
  return {{"plain", {f64({3, 4}), f64({3, 4}), 0.1, 0.05}},
          {"broadcast", {f32({3, 1}), f32({4})}},
          {"nan", {f64({3}), f64({3}), 0.0, 0.0, true}},
          {"integers", {i64({4}), i64({4}), 0.0, 1.0}}};
}

}  // namespace

WEFT_OPERATOR(isfinite) = {
    .schema = "aten::isfinite(Tensor self) -> Tensor",
    .composite = {.functional = function<&isfinite_composite>()},
    .samples =
        [] {
          return Samples{
              {"real", {transposed(f64({3, 4}))}}, {"complex", {c128({3})}}, {"integers", {i64({3})}}};
        },
};

WEFT_OPERATOR(isclose) = {
    .schema =
        "aten::isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool "
        "equal_nan=False) -> Tensor",
    .composite = {.functional = function<&isclose_composite>()},
    .samples = close_samples,
};

WEFT_OPERATOR(allclose) = {
    .schema =
        "aten::allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool "
        "equal_nan=False) -> bool",
    .traits = kAnswer,
    .meta = function<&allclose_meta>(),
    .kernel = {.functional = function<&allclose_kernel>()},
    .samples = close_samples,
};

WEFT_OPERATOR(equal) = {
    .schema = "aten::equal(Tensor self, Tensor other) -> bool",
    .traits = kAnswer,
    .meta = function<&equal_meta>(),
    .kernel = {.functional = function<&equal_kernel>()},
    .samples =
        [] { return Samples{{"plain", {f64({3, 4}), f64({3, 4})}}, {"sizes", {f64({3}), f64({1, 3})}}}; },
};

}  // namespace weft::ops
