#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace weft::sym {

// The integers from `lo` to `hi`, both included. The limits of int64 stand for the infinities, so arithmetic
// on ranges saturates and is always an over-approximation. Bools are ranges within [0, 1].
struct ValueRange {
  static constexpr int64_t kNegInf = INT64_MIN, kInf = INT64_MAX;

  int64_t lo = kNegInf;
  int64_t hi = kInf;

  bool operator==(const ValueRange&) const = default;
  bool is_empty() const { return lo > hi; }
  bool is_point() const { return lo == hi && lo != kNegInf && lo != kInf; }
  bool contains(int64_t value) const { return lo <= value && value <= hi; }
  bool contains(const ValueRange& other) const { return lo <= other.lo && other.hi <= hi; }
  // "[2, inf]"
  std::string to_string() const;
};

inline constexpr ValueRange kAnyBool{0, 1};
constexpr ValueRange point(int64_t value) { return {value, value}; }
inline ValueRange intersect(const ValueRange& a, const ValueRange& b) {
  return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
}
inline ValueRange unite(const ValueRange& a, const ValueRange& b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

ValueRange operator-(const ValueRange& a);
ValueRange operator+(const ValueRange& a, const ValueRange& b);
ValueRange operator*(const ValueRange& a, const ValueRange& b);
// Division by zero has no value, so a divisor's zero adds nothing to the result.
ValueRange floor_div(const ValueRange& a, const ValueRange& b);
ValueRange mod(const ValueRange& a, const ValueRange& b);
ValueRange power(const ValueRange& base, const ValueRange& exponent);
ValueRange minimum(const ValueRange& a, const ValueRange& b);
ValueRange maximum(const ValueRange& a, const ValueRange& b);
// The truth of `a == 0`, `a < 0`, `a <= 0` over the range.
ValueRange is_zero(const ValueRange& a);
ValueRange is_negative(const ValueRange& a);
ValueRange is_not_positive(const ValueRange& a);
ValueRange logical_not(const ValueRange& a);

}  // namespace weft::sym
