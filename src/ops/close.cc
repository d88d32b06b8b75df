#include "weft/ops/close.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "weft/core/value.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/nested.h"
#include "weft/ops/operators.h"

namespace weft {
namespace {

Tolerances own_tolerances(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {0.001, 1e-5};
    case DType::kBFloat16:
      return {0.016, 1e-5};
    case DType::kFloat32:
    case DType::kComplex64:
      return {1.3e-6, 1e-5};
    case DType::kFloat64:
    case DType::kComplex128:
      return {1e-7, 1e-7};
    default:
      return {0, 0};
  }
}

Tolerances tolerances_of(const CloseOptions& options, DType a, DType b) {
  require(options.rtol.has_value() == options.atol.has_value(),
          "Both 'rtol' and 'atol' must be either specified or omitted, but got no {}.",
          options.rtol ? "atol" : "rtol");
  return options.rtol ? Tolerances{*options.rtol, *options.atol} : default_tolerances(a, b);
}

// --- texts -------------------------------------------------------------------------------------------------

std::string attribute_mismatch(std::string_view name, const std::string& actual,
                               const std::string& expected) {
  return fmt::format("The values for attribute '{}' do not match: {} != {}.", name, actual, expected);
}

std::string joined(SymIntSpan numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i) text += (i ? ", " : "") + numbers[i].to_string();
  return text;
}
// (), (3,), (3, 4)
std::string tuple_text(SymIntSpan numbers) {
  return fmt::format("({}{})", joined(numbers), numbers.size() == 1 ? "," : "");
}

// A difference and where it is, if it is one of several.
struct Difference {
  std::string amount;
  std::optional<std::string> index = {};
};

std::string not_close(std::string_view what, std::string_view summary, const Difference& absolute,
                      const Difference& relative, const Tolerances& allowed) {
  const bool is_equality = allowed.rtol == 0 && allowed.atol == 0;
  auto line = [&](std::string_view title, std::string_view kind, const Difference& difference, double most) {
    std::string text = difference.index ? fmt::format("Greatest {} difference: {} at index {}", kind,
                                                      difference.amount, *difference.index)
                                        : fmt::format("{} difference: {}", title, difference.amount);
    if (!is_equality) text += fmt::format(" (up to {} allowed)", Value(most).to_string());
    return text;
  };
  return fmt::format("{} are not {}!\n\n{}\n{}\n{}", what, is_equality ? "equal" : "close", summary,
                     line("Absolute", "absolute", absolute, allowed.atol),
                     line("Relative", "relative", relative, allowed.rtol));
}

// --- numbers -----------------------------------------------------------------------------------------------

struct NumberDifference {
  bool is_none = false;
  double absolute = 0, relative = 0;
  std::string absolute_text;
};

double modulus(Complex<double> z) { return std::hypot(z.re, z.im); }

NumberDifference integer_difference(int64_t actual, int64_t expected) {
  // As wide as it takes: the difference of two int64 may be none.
  auto minus = [](int64_t a, int64_t b) { return static_cast<uint64_t>(a) - static_cast<uint64_t>(b); };
  const uint64_t absolute = actual > expected ? minus(actual, expected) : minus(expected, actual);
  const uint64_t size = expected < 0 ? minus(0, expected) : static_cast<uint64_t>(expected);
  NumberDifference difference;
  difference.is_none = absolute == 0;
  difference.absolute = static_cast<double>(absolute);
  difference.relative =
      static_cast<double>(static_cast<long double>(absolute) / static_cast<long double>(size));
  difference.absolute_text = std::to_string(absolute);
  return difference;
}

NumberDifference difference_of(const Scalar& actual, const Scalar& expected) {
  const bool is_exact =
      !actual.is_complex() && !actual.is_floating() && !expected.is_complex() && !expected.is_floating();
  NumberDifference difference;
  if (is_exact) {
    difference = integer_difference(actual.to_int(), expected.to_int());
  } else {
    difference.is_none = actual.to_complex() == expected.to_complex();
    difference.absolute = modulus(actual.to_complex() - expected.to_complex());
    difference.relative = difference.absolute / modulus(expected.to_complex());
    difference.absolute_text = Value(difference.absolute).to_string();
  }
  if (expected.to_complex() == Complex<double>(0))
    difference.relative = std::numeric_limits<double>::infinity();
  return difference;
}

std::string numbers_not_close(const Scalar& actual, const Scalar& expected, const Tolerances& allowed) {
  const NumberDifference difference = difference_of(actual, expected);
  const std::string summary =
      fmt::format("Expected {} but got {}.", Value(expected).to_string(), Value(actual).to_string());
  return not_close("Scalars", summary, {difference.absolute_text}, {Value(difference.relative).to_string()},
                   allowed);
}

const char* python_type(const Scalar& number) {
  if (number.is_bool()) return "bool";
  if (number.is_integral()) return "int";
  return number.is_floating() ? "float" : "complex";
}

bool is_nan(Complex<double> z) { return std::isnan(z.re) || std::isnan(z.im); }

// --- tensors -----------------------------------------------------------------------------------------------

std::optional<std::string> find_attribute_mismatch(const Tensor& actual, const Tensor& expected,
                                                   const CloseOptions& options) {
  auto are_same = [](SymIntSpan a, SymIntSpan b) { return joined(a) == joined(b); };
  if (!are_same(actual.sizes(), expected.sizes()))
    return attribute_mismatch("shape", fmt::format("torch.Size([{}])", joined(actual.sizes())),
                              fmt::format("torch.Size([{}])", joined(expected.sizes())));
  if (options.check_stride && !are_same(actual.strides(), expected.strides()))
    return attribute_mismatch("stride()", tuple_text(actual.strides()), tuple_text(expected.strides()));
  if (options.check_device && actual.device() != expected.device())
    return attribute_mismatch("device", actual.device().to_string(), expected.device().to_string());
  if (options.check_dtype && actual.dtype() != expected.dtype())
    return attribute_mismatch("dtype", fmt::format("torch.{}", dtype_name(actual.dtype())),
                              fmt::format("torch.{}", dtype_name(expected.dtype())));
  return std::nullopt;
}

// Which elements are close: the steps, and so the roundings, of torch.isclose.
Tensor close_elements(const Tensor& actual, const Tensor& expected, const Tolerances& allowed,
                      bool equal_nan) {
  Tensor close = actual == expected;
  if (equal_nan) close = logical_or(close, logical_and(actual != actual, expected != expected));
  if (allowed.rtol == 0 && allowed.atol == 0) return close;
  const bool is_exact = !actual.is_floating_point() && !actual.is_complex();
  const Tensor number = actual.dtype() == kBool ? actual.to(kFloat32) : actual;
  const Tensor goal = is_exact ? expected.to(kFloat32) : expected;
  const Tensor error = abs(number - goal), most = allowed.atol + abs(allowed.rtol * goal);
  const double infinity = std::numeric_limits<double>::infinity();
  return logical_or(close, logical_and(error <= most, error != infinity));
}

// The multi-index of an element, given its flat index.
std::string index_text(IntSpan sizes, int64_t flat) {
  std::vector<SymInt> index(sizes.size());
  for (size_t dim = sizes.size(); dim-- > 0; flat /= sizes[dim]) index[dim] = flat % sizes[dim];
  return tuple_text(index);
}

Difference greatest(const Tensor& differences, IntSpan sizes) {
  const auto [value, index] = max(differences, 0);
  return {Value(value.item()).to_string(), index_text(sizes, index.item().to_int())};
}

std::string tensors_not_close(const Tensor& actual, const Tensor& expected, const Tensor& close,
                              const Tolerances& allowed) {
  const int64_t count = close.plain_numel(), missed = count - close.sum().item().to_int();
  const std::string summary = fmt::format("Mismatched elements: {} / {} ({:.1f}%)", missed, count,
                                          100 * (static_cast<double>(missed) / static_cast<double>(count)));
  const bool is_exact = !actual.is_floating_point() && !actual.is_complex();
  auto flat = [&](const Tensor& tensor) { return is_exact ? tensor.flatten().to(kInt64) : tensor.flatten(); };
  const Tensor goal = flat(expected), fine = close.flatten();
  const Tensor absolute = masked_fill(abs(flat(actual) - goal), fine, 0);
  const Tensor relative = masked_fill(absolute / abs(goal), fine, 0);
  const IntSpan sizes = close.plain_sizes();
  return not_close("Tensor-likes", summary, greatest(absolute, sizes), greatest(relative, sizes), allowed);
}

std::optional<std::string> find_nested_mismatch(const Tensor& actual, const Tensor& expected,
                                                const CloseOptions& options) {
  auto word = [](const Tensor& tensor) { return is_nested(tensor) ? "nested" : "not nested"; };
  if (is_nested(actual) != is_nested(expected))
    return fmt::format("Nested tensor mismatch: actual is {}, expected is {}", word(actual), word(expected));
  const std::vector<Tensor> own = unbind(actual, 0), goal = unbind(expected, 0);
  if (own.size() != goal.size())
    return fmt::format("Nested tensor mismatch: actual has {} components, expected has {}", own.size(),
                       goal.size());
  for (size_t i = 0; i < own.size(); ++i)
    if (auto mismatch = find_mismatch(own[i], goal[i], options))
      return fmt::format("Component {} of the nested tensors: {}", i, *mismatch);
  return std::nullopt;
}

}  // namespace

Tolerances default_tolerances(DType a, DType b) {
  const Tolerances x = own_tolerances(a), y = own_tolerances(b);
  return {std::max(x.rtol, y.rtol), std::max(x.atol, y.atol)};
}

std::optional<std::string> find_mismatch(const Tensor& actual, const Tensor& expected,
                                         const CloseOptions& options) {
  require(actual.defined() && expected.defined(), "find_mismatch: both tensors must be defined");
  const Tolerances allowed = tolerances_of(options, actual.dtype(), expected.dtype());
  if (is_nested(actual) || is_nested(expected)) return find_nested_mismatch(actual, expected, options);
  if (auto mismatch = find_attribute_mismatch(actual, expected, options)) return mismatch;
  if (actual.device().is_meta() || expected.device().is_meta()) return std::nullopt;
  // Layers that tensors ask for stay: an extension is compared by its own operators.
  const LayerStateScope saved;
  layer_state().active = 0;
  layer_state().grad_mode = false;
  const bool moves = actual.device() != expected.device();
  const DType dtype = promote(actual.dtype(), expected.dtype());
  auto comparable = [&](const Tensor& tensor) { return tensor.to(moves ? kCpu : tensor.device(), dtype); };
  const Tensor a = comparable(actual), b = comparable(expected);
  const Tensor close = close_elements(a, b, allowed, options.equal_nan);
  if (close.all().item().to_bool()) return std::nullopt;
  if (a.dim() == 0) return numbers_not_close(a.item(), b.item(), allowed);
  return tensors_not_close(a, b, close, allowed);
}

std::optional<std::string> find_mismatch(const Scalar& actual, const Scalar& expected,
                                         const CloseOptions& options) {
  const Tolerances allowed = tolerances_of(options, actual.dtype(), expected.dtype());
  if (actual.is_bool() && expected.is_bool()) {
    if (actual.to_bool() == expected.to_bool()) return std::nullopt;
    return fmt::format("Booleans mismatch: {} is not {}", Value(actual).to_string(),
                       Value(expected).to_string());
  }
  if (options.check_dtype && actual.dtype() != expected.dtype())
    return fmt::format("The (d)types do not match: <class '{}'> != <class '{}'>.", python_type(actual),
                       python_type(expected));
  const Complex<double> a = actual.to_complex(), b = expected.to_complex();
  const NumberDifference difference = difference_of(actual, expected);
  const double most = allowed.atol + allowed.rtol * modulus(b);
  if (difference.is_none || (options.equal_nan && is_nan(a) && is_nan(b)) ||
      (std::isfinite(difference.absolute) && difference.absolute <= most))
    return std::nullopt;
  return numbers_not_close(actual, expected, allowed);
}

void assert_close(const Tensor& actual, const Tensor& expected, const CloseOptions& options,
                  std::source_location where) {
  if (auto mismatch = find_mismatch(actual, expected, options)) throw NotCloseError(*mismatch, where);
}

}  // namespace weft
