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

}  // namespace weft::ops
