// Conditions on numbers that a run must meet. They have no results: a graph keeps them for what they refuse.
#include <fmt/format.h>

#include <limits>

#include "ops/support/family.h"
#include "weft/sym/shape_env.h"

namespace weft::ops {
namespace {

SymBool is_nonzero(const Scalar& number) {
  switch (number.kind()) {
    case Scalar::Kind::kSymInt:
      return number.to_sym_int() != SymInt(0);
    case Scalar::Kind::kSymFloat:
      return number.to_sym_float() != SymFloat(0.0);
    case Scalar::Kind::kSymBool:
      return number.to_sym_bool();
    default:
      return number.to_bool();
  }
}

void assert_scalar(const Scalar& self, std::string_view message) {
  const SymBool holds = is_nonzero(self);
  if (holds.is_symbolic()) return check(holds, message);
  if (!holds.plain()) throw AssertionError(std::string(message));
}

struct Bounds {
  int64_t min, max;
};

void check_ordered(const Bounds& bounds) {
  require(bounds.min <= bounds.max, "Max must be greater than or equal to min. Got min={} max={}", bounds.min,
          bounds.max);
}

// A symbol that comes from data is declared to be within the bounds, since the call itself is what asserts
// it at run time.
void constrain_symbolic(const Scalar& size, const Bounds& bounds, bool is_size) {
  require(size.is_integral(), "only integers have a range, but got the symbolic number {}", size.to_string());
  const SymInt integer = size.to_sym_int();
  ShapeEnv& env = *integer.env();
  const sym::Symbol* symbol = env.symbol_of(integer.expr());
  if (symbol && symbol->backing == sym::Backing::kUnbacked) {
    if (is_size) env.mark_size_like(integer.expr());
    env.constrain(integer.expr(), {bounds.min, bounds.max});
    return;
  }
  check(integer >= SymInt(bounds.min));
  check(integer <= SymInt(bounds.max));
}

void constrain(const Scalar& size, const Bounds& bounds, bool is_size) {
  check_ordered(bounds);
  if (size.is_symbolic()) return constrain_symbolic(size, bounds, is_size);
  const int64_t value = size.to_int();
  require(bounds.min <= value && value <= bounds.max, "Invalid value range for {} between [{}, {}].", value,
          bounds.min, bounds.max);
}

using Limits = std::numeric_limits<int64_t>;

void constrain_range(const Scalar& size, std::optional<int64_t> min, std::optional<int64_t> max) {
  constrain(size, {min.value_or(Limits::min()), max.value_or(Limits::max())}, false);
}

void constrain_range_for_size(const Scalar& size, std::optional<int64_t> min, std::optional<int64_t> max) {
  const Bounds bounds{min.value_or(0), max.value_or(Limits::max())};
  check_ordered(bounds);
  // Sizes of 0 and 1 are special everywhere: a size that can be nothing else is no size.
  require(bounds.max > 2, "Max value to constrain_range_for_size must be greater than 2. got: {}",
          bounds.max);
  constrain(size, bounds, true);
}

constexpr Traits kAsserts = Traits::kEffectful | Traits::kNotDifferentiable | Traits::kNotBatchable;

// A tensor of one element that must not be zero. Only a run knows.
void assert_true(const Tensor& self, std::string_view message) {
  require(guard_or(self.numel() == 1, true), "_assert_async: expected a tensor of one element, but got {}",
          describe(self));
  if (self.storage()->has_memory() && !self.item().to_bool()) throw AssertionError(std::string(message));
}
void assert_true_meta(const Tensor& self, std::string_view) {
  require(guard_or(self.numel() == 1, true), "_assert_async: expected a tensor of one element, but got {}",
          describe(self));
}
void assert_async(const Tensor& self) {
  assert_true(self, "Expected Tensor with single nonzero value, but got zero");
}
void assert_async_meta(const Tensor& self) { assert_true_meta(self, ""); }

void assert_metadata(const Tensor& a, OptionalSymIntSpan size, OptionalSymIntSpan stride,
                     std::optional<DType> dtype, std::optional<Device> device, std::optional<Layout> layout) {
  auto same = [](SymIntSpan x, SymIntSpan y) {
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i)
      if (!guard_or(x[i] == y[i], true)) return false;
    return true;
  };
  require(!size || same(*size, a.sizes()), "Tensor sizes mismatch! Expected: {}, Got: {}",
          describe_sizes(size ? *size : a.sizes()), describe_sizes(a.sizes()));
  require(!stride || same(*stride, a.strides()), "Tensor strides mismatch! Expected: {}, Got: {}",
          describe_sizes(stride ? *stride : a.strides()), describe_sizes(a.strides()));
  require(!dtype || *dtype == a.dtype(), "Tensor dtype mismatch! Expected: {}, Got: {}",
          dtype_name(dtype.value_or(a.dtype())), dtype_name(a.dtype()));
  require(!device || *device == a.device(), "Tensor device mismatch! Expected: {}, Got: {}",
          device ? device->to_string() : "", a.device().to_string());
  require(!layout || *layout == Layout::kStrided,
          "Tensor layout mismatch! Expected another layout, Got: strided");
}

}  // namespace

WEFT_OPERATOR(assert_scalar) = {
    .schema = "aten::_assert_scalar(Scalar self, str assert_msg) -> ()",
    .traits = kAsserts,
    .meta = function<&assert_scalar>(),
    .kernel = {.functional = function<&assert_scalar>()},
    .samples = [] { return Samples{{"true", {true, "must hold"}}, {"nonzero", {3, "must hold"}}}; },
};

WEFT_OPERATOR(sym_constrain_range) = {
    .schema = "aten::sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()",
    .traits = kAsserts,
    .meta = function<&constrain_range>(),
    .kernel = {.functional = function<&constrain_range>()},
    .samples = [] { return Samples{{"open", {3}}, {"closed", {3, -1, 3}}}; },
};

WEFT_OPERATOR(sym_constrain_range_for_size) = {
    .schema = "aten::sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()",
    .traits = kAsserts,
    .meta = function<&constrain_range_for_size>(),
    .kernel = {.functional = function<&constrain_range_for_size>()},
    .samples = [] { return Samples{{"open", {3}}, {"closed", {3, 2, 8}}}; },
};

WEFT_OPERATOR(assert_async) = {
    .schema = "aten::_assert_async(Tensor self) -> ()",
    .traits = kAsserts,
    .meta = function<&assert_async_meta>(),
    .kernel = {.functional = function<&assert_async>()},
    .samples = [] { return Samples{{"true", {i64({}, 1, 2)}}}; },
};

WEFT_OPERATOR(assert_async_msg) = {
    .schema = "aten::_assert_async.msg(Tensor self, str assert_msg) -> ()",
    .traits = kAsserts,
    .meta = function<&assert_true_meta>(),
    .kernel = {.functional = function<&assert_true>()},
    .samples = [] { return Samples{{"true", {i64({}, 1, 2), "must hold"}}}; },
};

WEFT_OPERATOR(assert_tensor_metadata) = {
    .schema =
        "aten::_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? "
        "dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
    .traits = kAsserts,
    .meta = function<&assert_metadata>(),
    .kernel = {.functional = function<&assert_metadata>()},
    .samples = [] { return Samples{{"type", {f64({2, 3}), Value(), Value(), kFloat64}}}; },
};

}  // namespace weft::ops
