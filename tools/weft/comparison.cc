#include "comparison.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "weft/autograd/grad_node.h"
#include "weft/ops/functions.h"

namespace weft::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Real numbers in double precision: a complex one is two.
Tensor doubles(const Tensor& tensor) {
  Tensor plain = tensor.detach().resolve_conj().resolve_neg();
  if (plain.is_complex()) plain = view_as_real(plain);
  return contiguous(plain.to(kFloat64));
}

std::string place_of(size_t index, const Tensor& tensor) {
  if (tensor.is_complex()) index /= 2;
  std::string text;
  for (size_t d = tensor.plain_sizes().size(); d-- > 0;) {
    const auto size = static_cast<size_t>(tensor.plain_sizes()[d]);
    text = fmt::format("{}{}{}", index % size, text.empty() ? "" : ", ", text);
    index /= size;
  }
  return "[" + text + "]";
}

std::string text_of(const Tensor& tensor) { return fmt::format("{}", describe(tensor).str()); }

// The worst element, where `allowed(wanted)` tells how far apart two may be.
template <typename Allowed>
Difference worst(const std::string& key, const Tensor& got, const Tensor& wanted, Allowed allowed) {
  Difference found{.key = key, .error = 0, .excess = 0, .place = {}, .message = {}};
  const bool same_sizes = std::ranges::equal(got.plain_sizes(), wanted.plain_sizes());
  if (got.dtype() != wanted.dtype() || !same_sizes) {
    found.excess = kInfinity;
    found.message = fmt::format("'{}' is {}, but {} was expected", key, text_of(got), text_of(wanted));
    return found;
  }
  const Tensor a = doubles(got), b = doubles(wanted);
  const double *x = a.data<double>(), *y = b.data<double>();
  for (size_t i = 0; i < static_cast<size_t>(a.plain_numel()); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double error = std::abs(x[i] - y[i]), limit = allowed(y[i]);
    double excess = limit > 0 ? error / limit : kInfinity;
    if (std::isnan(excess) || std::isinf(error)) excess = kInfinity;
    if (!(excess > found.excess)) continue;
    found.error = error;
    found.excess = excess;
    found.place = place_of(i, got);
    found.message = fmt::format("'{}'{} is {:.9g}, but {:.9g} was expected: an error of {:.3g}", key,
                                found.place, x[i], y[i], error);
  }
  return found;
}

}  // namespace

Tolerance default_tolerance(DType dtype) {
  switch (dtype) {
    case kFloat64:
    case kComplex128:
      return {1e-7, 1e-9};
    case kFloat32:
    case kComplex64:
      return {1e-4, 1e-5};
    case kFloat16:
      return {1e-2, 1e-3};
    case kBFloat16:
      return {5e-2, 1e-2};
    default:
      return {};
  }
}

Difference compare(const std::string& key, const Tensor& got, const Tensor& wanted,
                   const Tolerance& tolerance) {
  return worst(key, got, wanted,
               [&](double number) { return tolerance.atol + tolerance.rtol * std::abs(number); });
}

double largest_magnitude(const Tensor& tensor) {
  if (tensor.plain_numel() == 0) return 0;
  return tensor.detach().abs().to(kFloat64).max().item().to_double();
}

Difference compare_gradient(const std::string& key, const Tensor& got, const Tensor& wanted, double largest) {
  const double own = largest_magnitude(wanted);
  return worst(key, got, wanted,
               [&](double number) { return 1e-3 * std::abs(number) + 1e-4 * own + 1e-6 * largest; });
}

int report_differences(
    const NamedTensors& got, const Expectation& expect,
    const std::function<Difference(const std::string&, const Tensor&, const Tensor&)>& compare_one) {
  NoGrad no_grad;
  const NamedTensors wanted = read_tensors(expect.file);
  std::vector<Difference> wrong;
  auto missing = [&](const std::string& key, std::string_view where) {
    wrong.push_back({.key = key,
                     .error = 0,
                     .excess = kInfinity,
                     .place = {},
                     .message = fmt::format("'{}' is in the {} only", key, where)});
  };
  for (const auto& [key, tensor] : wanted) {
    const Tensor* found = find(got, key);
    if (!found) missing(key, "expectation");
    else if (Difference difference = compare_one(key, *found, tensor); !difference.agrees())
      wrong.push_back(std::move(difference));
  }
  for (const auto& [key, tensor] : got)
    if (!find(wanted, key)) missing(key, "result");
  if (wrong.empty()) return kFine;
  const auto worst_one = std::ranges::max_element(wrong, {}, &Difference::excess);
  fmt::print(stderr, "{} of {} differ from {}; the worst: {}\n", wrong.size(),
             std::max(got.size(), wanted.size()), expect.file, worst_one->message);
  return kDiffers;
}

int report_differences(const NamedTensors& got, const Expectation& expect) {
  return report_differences(got, expect, [&](const std::string& key, const Tensor& a, const Tensor& b) {
    Tolerance tolerance = default_tolerance(b.dtype());
    if (is_floating(b.dtype()) || is_complex(b.dtype())) {
      tolerance.rtol = expect.rtol.value_or(tolerance.rtol);
      tolerance.atol = expect.atol.value_or(tolerance.atol);
    }
    return compare(key, a, b, tolerance);
  });
}

}  // namespace weft::cli
