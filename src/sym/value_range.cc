#include "weft/sym/value_range.h"

#include <fmt/format.h>

namespace weft::sym {
namespace {

constexpr int64_t kNegInf = ValueRange::kNegInf, kInf = ValueRange::kInf;

bool is_infinite(int64_t a) { return a == kNegInf || a == kInf; }
int64_t clamp(__int128 a) { return static_cast<int64_t>(std::clamp<__int128>(a, kNegInf, kInf)); }
int64_t negate(int64_t a) {
  if (is_infinite(a)) return a == kInf ? kNegInf : kInf;
  return -a;
}

// Adds two bounds of the same side; an infinity wins.
int64_t add_bounds(int64_t a, int64_t b, int64_t infinity) {
  if (a == infinity || b == infinity) return infinity;
  if (is_infinite(a)) return a;
  if (is_infinite(b)) return b;
  return clamp(static_cast<__int128>(a) + b);
}

int64_t multiply_bounds(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (is_infinite(a) || is_infinite(b)) return (a > 0) == (b > 0) ? kInf : kNegInf;
  return clamp(static_cast<__int128>(a) * b);
}

// floor(a / b) for b > 0.
int64_t divide(int64_t a, int64_t b) {
  if (b == kInf) return a < 0 ? -1 : 0;
  if (is_infinite(a)) return a;
  return a / b - (a % b < 0);
}

ValueRange divide_by_positive(const ValueRange& a, const ValueRange& b) {
  int64_t corners[] = {divide(a.lo, b.lo), divide(a.lo, b.hi), divide(a.hi, b.lo), divide(a.hi, b.hi)};
  auto [lo, hi] = std::minmax_element(std::begin(corners), std::end(corners));
  return {*lo, *hi};
}

ValueRange mod_by_positive(const ValueRange& a, const ValueRange& b) {
  ValueRange result{0, b.hi == kInf ? kInf : b.hi - 1};
  if (a.lo >= 0) {
    result.hi = std::min(result.hi, a.hi);
    if (a.hi < b.lo) result.lo = a.lo;
  }
  return result;
}

// Applies `f`, which wants a positive divisor, to the positive and to the negated negative part of `b`.
template <typename Positive, typename Negative>
ValueRange by_sign(const ValueRange& b, Positive positive, Negative negative) {
  ValueRange result{kInf, kNegInf};
  if (b.hi >= 1) result = unite(result, positive(ValueRange{std::max<int64_t>(b.lo, 1), b.hi}));
  if (b.lo <= -1) result = unite(result, negative(-ValueRange{b.lo, std::min<int64_t>(b.hi, -1)}));
  return result.is_empty() ? ValueRange{} : result;
}

int64_t raise(int64_t base, int64_t exponent) {
  if (exponent == 0) return 1;
  if (base == 0 || base == 1) return base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  if (is_infinite(base) || exponent > 64) return base > 0 || exponent % 2 == 0 ? kInf : kNegInf;
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i) result = multiply_bounds(result, base);
  return result;
}

ValueRange raise(const ValueRange& base, int64_t exponent) {
  int64_t a = raise(base.lo, exponent), b = raise(base.hi, exponent);
  ValueRange result{std::min(a, b), std::max(a, b)};
  if (exponent % 2 == 0 && exponent > 0 && base.contains(0)) result.lo = 0;
  return result;
}

std::string bound_text(int64_t bound) {
  if (is_infinite(bound)) return bound == kInf ? "inf" : "-inf";
  return std::to_string(bound);
}

}  // namespace

std::string ValueRange::to_string() const { return fmt::format("[{}, {}]", bound_text(lo), bound_text(hi)); }

ValueRange operator-(const ValueRange& a) { return {negate(a.hi), negate(a.lo)}; }

ValueRange operator+(const ValueRange& a, const ValueRange& b) {
  return {add_bounds(a.lo, b.lo, kNegInf), add_bounds(a.hi, b.hi, kInf)};
}

ValueRange operator*(const ValueRange& a, const ValueRange& b) {
  int64_t corners[] = {multiply_bounds(a.lo, b.lo), multiply_bounds(a.lo, b.hi), multiply_bounds(a.hi, b.lo),
                       multiply_bounds(a.hi, b.hi)};
  auto [lo, hi] = std::minmax_element(std::begin(corners), std::end(corners));
  return {*lo, *hi};
}

ValueRange floor_div(const ValueRange& a, const ValueRange& b) {
  return by_sign(
      b, [&](const ValueRange& d) { return divide_by_positive(a, d); },
      [&](const ValueRange& d) { return divide_by_positive(-a, d); });
}

ValueRange mod(const ValueRange& a, const ValueRange& b) {
  return by_sign(
      b, [&](const ValueRange& d) { return mod_by_positive(a, d); },
      [&](const ValueRange& d) { return -mod_by_positive(-a, d); });
}

ValueRange power(const ValueRange& base, const ValueRange& exponent) {
  if (exponent.is_point() && exponent.lo >= 0) return raise(base, exponent.lo);
  if (base.lo < 0) return {};
  int64_t low = std::max<int64_t>(exponent.lo, 0);
  ValueRange result{base.lo >= 1 ? raise(base.lo, low) : 0,
                    raise(base.hi, std::max<int64_t>(exponent.hi, 0))};
  if (base.lo == 0) result.hi = std::max<int64_t>(result.hi, 1);
  return result;
}

ValueRange minimum(const ValueRange& a, const ValueRange& b) {
  return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
}
ValueRange maximum(const ValueRange& a, const ValueRange& b) {
  return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
}

ValueRange is_zero(const ValueRange& a) {
  if (!a.contains(0)) return point(0);
  return a == point(0) ? point(1) : kAnyBool;
}
ValueRange is_negative(const ValueRange& a) {
  if (a.hi < 0) return point(1);
  return a.lo >= 0 ? point(0) : kAnyBool;
}
ValueRange is_not_positive(const ValueRange& a) {
  if (a.hi <= 0) return point(1);
  return a.lo > 0 ? point(0) : kAnyBool;
}
ValueRange logical_not(const ValueRange& a) { return {1 - a.hi, 1 - a.lo}; }

}  // namespace weft::sym
