#pragma once

#include <algorithm>
#include <cassert>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weft/base/detail/small_vector.h"
#include "weft/base/error.h"

namespace weft {

class ShapeEnv;
class SymBool;
class SymFloat;
class SymInt;

namespace sym {
class Expr;
namespace detail {
// An expression lives as long as its ShapeEnv; handles count references to the environment.
void retain(const Expr* expr) noexcept;
void release(const Expr* expr) noexcept;
ShapeEnv* env_of(const Expr* expr) noexcept;

const Expr* big_constant(int64_t value);
[[noreturn]] void fail_unsigned(uint64_t value);
SymInt add(const SymInt& a, const SymInt& b);
SymInt sub(const SymInt& a, const SymInt& b);
SymInt mul(const SymInt& a, const SymInt& b);
SymInt truncate_div(const SymInt& a, const SymInt& b);
SymInt truncate_mod(const SymInt& a, const SymInt& b);
SymInt minimum(const SymInt& a, const SymInt& b);
SymInt maximum(const SymInt& a, const SymInt& b);
SymInt power(const SymInt& base, const SymInt& exponent);
SymBool equal(const SymInt& a, const SymInt& b);
SymBool less(const SymInt& a, const SymInt& b);
// The implicit conversions: a conversion has no source location, so the calls that led to it are noted.
[[gnu::noinline]] int64_t implicit_int(const Expr* expr);
[[gnu::noinline]] bool implicit_bool(const Expr* expr);
[[gnu::noinline]] double implicit_double(const Expr* expr);
}  // namespace detail
}  // namespace sym

// A bool that may depend on symbolic sizes. 8 bytes: a bool, or an expression of a ShapeEnv.
// Using it as a `bool` decides it by the hints and records a guard; library code asks `known`, `guard`,
// `guard_or` or `check` instead.
class SymBool {
 public:
  SymBool() noexcept = default;
  template <std::same_as<bool> T>
  SymBool(T value) noexcept : bits_(value) {}  // NOLINT(google-explicit-constructor)
  SymBool(const SymBool& other) noexcept : bits_(other.bits_) {
    if (is_symbolic()) [[unlikely]]
      sym::detail::retain(expr());
  }
  SymBool(SymBool&& other) noexcept : bits_(std::exchange(other.bits_, 0)) {}
  SymBool& operator=(SymBool other) noexcept {
    std::swap(bits_, other.bits_);
    return *this;
  }
  ~SymBool() {
    if (is_symbolic()) [[unlikely]]
      sym::detail::release(expr());
  }
  // The value that `expr` (of boolean type) has; a constant becomes a plain bool.
  static SymBool from_expr(const sym::Expr* expr);

  bool is_symbolic() const noexcept { return bits_ > 1; }
  // The value; only for a SymBool that is not symbolic.
  bool plain() const noexcept {
    assert(!is_symbolic());
    return bits_ != 0;
  }
  // The expression; only for a symbolic SymBool.
  const sym::Expr* expr() const noexcept {
    assert(is_symbolic());
    return reinterpret_cast<const sym::Expr*>(bits_);
  }
  // The environment of the expression; null for a plain one.
  ShapeEnv* env() const noexcept { return is_symbolic() ? sym::detail::env_of(expr()) : nullptr; }
  // The value if it is decided without any guard, from ranges and facts.
  std::optional<bool> maybe_plain() const;
  // The value at the hints; nothing when an unbacked symbol is involved.
  std::optional<bool> hint() const;
  // The same plain value or the same expression; never guards.
  bool same_as(const SymBool& other) const noexcept { return bits_ == other.bits_; }
  std::string to_string() const;

  // For users' code: decides by the hints and records a guard.
  operator bool() const {  // NOLINT(google-explicit-constructor)
    if (!is_symbolic()) [[likely]]
      return plain();
    return sym::detail::implicit_bool(expr());
  }

  SymBool operator!() const;
  friend SymBool operator&(const SymBool& a, const SymBool& b);
  friend SymBool operator|(const SymBool& a, const SymBool& b);
  template <std::same_as<bool> T>
  friend SymBool operator&(const SymBool& a, T b) {
    return a & SymBool(b);
  }
  template <std::same_as<bool> T>
  friend SymBool operator&(T a, const SymBool& b) {
    return SymBool(a) & b;
  }
  template <std::same_as<bool> T>
  friend SymBool operator|(const SymBool& a, T b) {
    return a | SymBool(b);
  }
  template <std::same_as<bool> T>
  friend SymBool operator|(T a, const SymBool& b) {
    return SymBool(a) | b;
  }

 private:
  uintptr_t bits_ = 0;
};
static_assert(sizeof(SymBool) == 8);

SymBool sym_and(const SymBool& a, const SymBool& b);
SymBool sym_or(const SymBool& a, const SymBool& b);
SymBool sym_not(const SymBool& a);

// A size: an int64_t, or inside capture an expression of a ShapeEnv. 8 bytes.
//
// A plain value is its own bit pattern, so an array of plain SymInts can be read as `const int64_t*`. The top
// bits 10 mark an expression; the plain values below -2^62, which share that pattern, are kept as constant
// expressions (`is_symbolic()` holds for them, and `maybe_plain()` gives the value).
class SymInt {
 public:
  constexpr SymInt() noexcept = default;
  template <std::integral T>
  constexpr SymInt(T value) : bits_(static_cast<int64_t>(value)) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::unsigned_integral<T> && sizeof(T) == 8)
      if (value > static_cast<uint64_t>(INT64_MAX)) [[unlikely]]
        sym::detail::fail_unsigned(value);
    if constexpr (std::signed_integral<T> && sizeof(T) == 8)
      if (bits_ < kFirstPlain) [[unlikely]]
        bits_ = tagged(sym::detail::big_constant(bits_));
  }
  constexpr SymInt(const SymInt& other) noexcept : bits_(other.bits_) {
    if (is_symbolic()) [[unlikely]]
      sym::detail::retain(expr());
  }
  constexpr SymInt(SymInt&& other) noexcept : bits_(std::exchange(other.bits_, 0)) {}
  constexpr SymInt& operator=(const SymInt& other) noexcept {
    if (is_symbolic() || other.is_symbolic()) [[unlikely]]
      return *this = SymInt(other);
    bits_ = other.bits_;
    return *this;
  }
  constexpr SymInt& operator=(SymInt&& other) noexcept {
    std::swap(bits_, other.bits_);
    return *this;
  }
  constexpr ~SymInt() {
    if (is_symbolic()) [[unlikely]]
      sym::detail::release(expr());
  }
  // The value that `expr` (of integer type) has; a constant becomes a plain integer.
  static SymInt from_expr(const sym::Expr* expr);

  constexpr bool is_symbolic() const noexcept { return bits_ < kFirstPlain; }
  // The value; an error for one that depends on symbols.
  constexpr int64_t plain() const {
    if (is_symbolic()) [[unlikely]]
      return constant_value();
    return bits_;
  }
  // The expression; only for a symbolic SymInt.
  const sym::Expr* expr() const noexcept {
    assert(is_symbolic());
    return reinterpret_cast<const sym::Expr*>(static_cast<uint64_t>(bits_) & ~kTag);
  }
  // The environment of the expression; null for a plain one.
  ShapeEnv* env() const noexcept { return is_symbolic() ? sym::detail::env_of(expr()) : nullptr; }
  // The value if it is known without any guard.
  std::optional<int64_t> maybe_plain() const {
    if (!is_symbolic()) [[likely]]
      return bits_;
    return symbolic_constant();
  }
  // The value at the hints; nothing when an unbacked symbol is involved.
  std::optional<int64_t> hint() const {
    if (!is_symbolic()) [[likely]]
      return bits_;
    return symbolic_hint();
  }
  // The same plain value or the same expression; never guards. `identity` is equal exactly then, and hashes.
  bool same_as(const SymInt& other) const noexcept { return bits_ == other.bits_; }
  uint64_t identity() const noexcept { return static_cast<uint64_t>(bits_); }
  std::string to_string() const;

  // For users' code: specialises to the hint and records the guard Eq(expression, hint).
  operator int64_t() const {  // NOLINT(google-explicit-constructor)
    if (!is_symbolic()) [[likely]]
      return bits_;
    return sym::detail::implicit_int(expr());
  }

  friend SymInt operator+(const SymInt& a, const SymInt& b) {
    int64_t result;
    if (both_plain(a, b) && !__builtin_add_overflow(a.bits_, b.bits_, &result)) [[likely]]
      return result;
    return sym::detail::add(a, b);
  }
  friend SymInt operator-(const SymInt& a, const SymInt& b) {
    int64_t result;
    if (both_plain(a, b) && !__builtin_sub_overflow(a.bits_, b.bits_, &result)) [[likely]]
      return result;
    return sym::detail::sub(a, b);
  }
  friend SymInt operator*(const SymInt& a, const SymInt& b) {
    int64_t result;
    if (both_plain(a, b) && !__builtin_mul_overflow(a.bits_, b.bits_, &result)) [[likely]]
      return result;
    return sym::detail::mul(a, b);
  }
  // Rounds toward zero, as C++ does; `floor_div` and `mod` round down.
  friend SymInt operator/(const SymInt& a, const SymInt& b) {
    if (both_plain(a, b) && b.bits_ > 0) [[likely]]
      return a.bits_ / b.bits_;
    return sym::detail::truncate_div(a, b);
  }
  friend SymInt operator%(const SymInt& a, const SymInt& b) {
    if (both_plain(a, b) && b.bits_ > 0) [[likely]]
      return a.bits_ % b.bits_;
    return sym::detail::truncate_mod(a, b);
  }
  friend SymBool operator==(const SymInt& a, const SymInt& b) {
    if (both_plain(a, b)) [[likely]]
      return a.bits_ == b.bits_;
    return sym::detail::equal(a, b);
  }
  friend SymBool operator<(const SymInt& a, const SymInt& b) {
    if (both_plain(a, b)) [[likely]]
      return a.bits_ < b.bits_;
    return sym::detail::less(a, b);
  }
  friend SymBool operator!=(const SymInt& a, const SymInt& b) { return !(a == b); }
  friend SymBool operator>(const SymInt& a, const SymInt& b) { return b < a; }
  friend SymBool operator<=(const SymInt& a, const SymInt& b) { return !(b < a); }
  friend SymBool operator>=(const SymInt& a, const SymInt& b) { return !(a < b); }

  SymInt operator-() const { return SymInt(0) - *this; }
  SymInt operator+() const { return *this; }
  SymInt& operator+=(const SymInt& other) { return *this = *this + other; }
  SymInt& operator-=(const SymInt& other) { return *this = *this - other; }
  SymInt& operator*=(const SymInt& other) { return *this = *this * other; }
  SymInt& operator/=(const SymInt& other) { return *this = *this / other; }
  SymInt& operator%=(const SymInt& other) { return *this = *this % other; }
  SymInt& operator++() { return *this += SymInt(1); }
  SymInt& operator--() { return *this -= SymInt(1); }

  friend SymInt min(const SymInt& a, const SymInt& b) {
    if (both_plain(a, b)) [[likely]]
      return a.bits_ < b.bits_ ? a.bits_ : b.bits_;
    return sym::detail::minimum(a, b);
  }
  friend SymInt max(const SymInt& a, const SymInt& b) {
    if (both_plain(a, b)) [[likely]]
      return a.bits_ > b.bits_ ? a.bits_ : b.bits_;
    return sym::detail::maximum(a, b);
  }
  // base ** exponent; the exponent must not be negative.
  friend SymInt pow(const SymInt& base, const SymInt& exponent) { return sym::detail::power(base, exponent); }

 private:
  static constexpr int64_t kFirstPlain = -(int64_t{1} << 62);
  static constexpr uint64_t kTag = uint64_t{1} << 63;
  static int64_t tagged(const sym::Expr* expr) noexcept {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(expr) | kTag);
  }
  static bool both_plain(const SymInt& a, const SymInt& b) { return !a.is_symbolic() && !b.is_symbolic(); }
  std::optional<int64_t> symbolic_constant() const;
  int64_t constant_value() const;
  std::optional<int64_t> symbolic_hint() const;

  int64_t bits_ = 0;
};
static_assert(sizeof(SymInt) == 8);
template <>
inline constexpr bool is_relocatable<SymInt> = true;

// SymInt with a built-in integer: without these, the conversions in both directions would be ambiguous.
#define WEFT_SYM_MIXED(Result, op)           \
  template <std::integral T>                 \
  Result operator op(const SymInt& a, T b) { \
    return a op SymInt(b);                   \
  }                                          \
  template <std::integral T>                 \
  Result operator op(T a, const SymInt& b) { \
    return SymInt(a) op b;                   \
  }
WEFT_SYM_MIXED(SymInt, +)
WEFT_SYM_MIXED(SymInt, -)
WEFT_SYM_MIXED(SymInt, *)
WEFT_SYM_MIXED(SymInt, /)
WEFT_SYM_MIXED(SymInt, %)
WEFT_SYM_MIXED(SymBool, ==)
WEFT_SYM_MIXED(SymBool, !=)
WEFT_SYM_MIXED(SymBool, <)
WEFT_SYM_MIXED(SymBool, <=)
WEFT_SYM_MIXED(SymBool, >)
WEFT_SYM_MIXED(SymBool, >=)
#undef WEFT_SYM_MIXED
#define WEFT_SYM_MIXED(name)          \
  template <std::integral T>          \
  SymInt name(const SymInt& a, T b) { \
    return name(a, SymInt(b));        \
  }                                   \
  template <std::integral T>          \
  SymInt name(T a, const SymInt& b) { \
    return name(SymInt(a), b);        \
  }
WEFT_SYM_MIXED(min)
WEFT_SYM_MIXED(max)
WEFT_SYM_MIXED(pow)
#undef WEFT_SYM_MIXED

// Division that rounds down, its remainder (the sign of the divisor), and division that rounds up.
SymInt floor_div(const SymInt& a, const SymInt& b);
SymInt mod(const SymInt& a, const SymInt& b);
SymInt ceil_div(const SymInt& a, const SymInt& b);
// The sum and the product of many values in one pass (adding one by one builds every partial sum).
SymInt sym_sum(std::span<const SymInt> values);
SymInt sym_product(std::span<const SymInt> values);
// `condition ? a : b` without deciding the condition.
SymInt sym_ite(const SymBool& condition, const SymInt& a, const SymInt& b);

// A double, or an expression of a ShapeEnv with a floating-point value.
class SymFloat {
 public:
  SymFloat() noexcept = default;
  template <typename T>
    requires std::is_arithmetic_v<T>
  SymFloat(T value) noexcept : value_(static_cast<double>(value)) {}  // NOLINT(google-explicit-constructor)
  SymFloat(const SymFloat& other) noexcept : value_(other.value_), expr_(other.expr_) {
    if (expr_) [[unlikely]]
      sym::detail::retain(expr_);
  }
  SymFloat(SymFloat&& other) noexcept : value_(other.value_), expr_(std::exchange(other.expr_, nullptr)) {}
  SymFloat& operator=(SymFloat other) noexcept {
    std::swap(value_, other.value_);
    std::swap(expr_, other.expr_);
    return *this;
  }
  ~SymFloat() {
    if (expr_) [[unlikely]]
      sym::detail::release(expr_);
  }
  // The value that `expr` (of floating type) has; a constant becomes a plain double.
  static SymFloat from_expr(const sym::Expr* expr);

  bool is_symbolic() const noexcept { return expr_ != nullptr; }
  double plain() const noexcept {
    assert(!is_symbolic());
    return value_;
  }
  const sym::Expr* expr() const noexcept {
    assert(is_symbolic());
    return expr_;
  }
  ShapeEnv* env() const noexcept { return expr_ ? sym::detail::env_of(expr_) : nullptr; }
  std::optional<double> maybe_plain() const;
  std::optional<double> hint() const;
  bool same_as(const SymFloat& other) const noexcept {
    return expr_ == other.expr_ && (expr_ || value_ == other.value_);
  }
  std::string to_string() const;

  // For users' code: specialises to the hint and records a guard.
  operator double() const {  // NOLINT(google-explicit-constructor)
    if (!is_symbolic()) [[likely]]
      return value_;
    return sym::detail::implicit_double(expr_);
  }

  friend SymFloat operator+(const SymFloat& a, const SymFloat& b);
  friend SymFloat operator-(const SymFloat& a, const SymFloat& b);
  friend SymFloat operator*(const SymFloat& a, const SymFloat& b);
  friend SymFloat operator/(const SymFloat& a, const SymFloat& b);
  friend SymFloat pow(const SymFloat& base, const SymFloat& exponent);
  friend SymFloat min(const SymFloat& a, const SymFloat& b);
  friend SymFloat max(const SymFloat& a, const SymFloat& b);
  friend SymFloat sqrt(const SymFloat& a);
  SymFloat operator-() const;
  friend SymBool operator==(const SymFloat& a, const SymFloat& b);
  friend SymBool operator!=(const SymFloat& a, const SymFloat& b);
  friend SymBool operator<(const SymFloat& a, const SymFloat& b);
  friend SymBool operator<=(const SymFloat& a, const SymFloat& b);
  friend SymBool operator>(const SymFloat& a, const SymFloat& b) { return b < a; }
  friend SymBool operator>=(const SymFloat& a, const SymFloat& b) { return b <= a; }

 private:
  double value_ = 0;
  const sym::Expr* expr_ = nullptr;
};

// The value as a float, exactly as the integer converts.
SymFloat sym_float(const SymInt& a);
// a / b as floats: Python's `/`.
SymFloat true_div(const SymInt& a, const SymInt& b);
// A float rounded to an integer: down, up, toward zero, to nearest even.
SymInt sym_floor(const SymFloat& a);
SymInt sym_ceil(const SymFloat& a);
SymInt sym_trunc(const SymFloat& a);
SymInt sym_round(const SymFloat& a);

// SymFloat with numbers, and SymInt with floating-point numbers.
#define WEFT_SYM_MIXED(Result, op)                                                            \
  template <typename T>                                                                       \
    requires std::is_arithmetic_v<T>                                                          \
  Result operator op(const SymFloat& a, T b) {                                                \
    return a op SymFloat(b);                                                                  \
  }                                                                                           \
  template <typename T>                                                                       \
    requires std::is_arithmetic_v<T>                                                          \
  Result operator op(T a, const SymFloat& b) {                                                \
    return SymFloat(a) op b;                                                                  \
  }                                                                                           \
  inline Result operator op(const SymFloat& a, const SymInt& b) { return a op sym_float(b); } \
  inline Result operator op(const SymInt& a, const SymFloat& b) { return sym_float(a) op b; } \
  template <std::floating_point T>                                                            \
  Result operator op(const SymInt& a, T b) {                                                  \
    return sym_float(a) op SymFloat(b);                                                       \
  }                                                                                           \
  template <std::floating_point T>                                                            \
  Result operator op(T a, const SymInt& b) {                                                  \
    return SymFloat(a) op sym_float(b);                                                       \
  }
WEFT_SYM_MIXED(SymFloat, +)
WEFT_SYM_MIXED(SymFloat, -)
WEFT_SYM_MIXED(SymFloat, *)
WEFT_SYM_MIXED(SymFloat, /)
WEFT_SYM_MIXED(SymBool, ==)
WEFT_SYM_MIXED(SymBool, !=)
WEFT_SYM_MIXED(SymBool, <)
WEFT_SYM_MIXED(SymBool, <=)
WEFT_SYM_MIXED(SymBool, >)
WEFT_SYM_MIXED(SymBool, >=)
#undef WEFT_SYM_MIXED
template <typename T>
  requires std::is_arithmetic_v<T>
SymFloat pow(const SymFloat& base, T exponent) {
  return pow(base, SymFloat(exponent));
}

// A question about a value that only a run tells, which nothing that was checked before answers. The message
// names the line, the expression, and the `check` that would answer it.
struct DataDependentError : UserError {
  using UserError::UserError;
};

// The four questions. A plain condition costs one branch.
//
// True when the condition holds whatever the sizes are. Never guards.
bool known_symbolic(const SymBool& condition);
inline bool known(const SymBool& condition) {
  return condition.is_symbolic() ? known_symbolic(condition) : condition.plain();
}
// Decides the condition by the hints, and records the answer as a guard. An error for unbacked symbols.
bool guard_symbolic(const SymBool& condition, const std::source_location& where);
inline bool guard(const SymBool& condition, std::source_location where = std::source_location::current()) {
  return condition.is_symbolic() ? guard_symbolic(condition, where) : condition.plain();
}
// Like `guard`, but answers `otherwise` (and records nothing) when unbacked symbols leave it open.
// Size-like unbacked symbols count as at least 2 here.
bool guard_or_symbolic(const SymBool& condition, bool otherwise, const std::source_location& where);
inline bool guard_or(const SymBool& condition, bool otherwise,
                     std::source_location where = std::source_location::current()) {
  return condition.is_symbolic() ? guard_or_symbolic(condition, otherwise, where) : condition.plain();
}
// The condition must hold: an error with `message` when it does not, a guard when it depends on backed
// symbols, an assertion at run time when it depends on unbacked ones; later questions may rely on it.
void check_symbolic(const SymBool& condition, std::string_view message, const std::source_location& where);
inline void check(const SymBool& condition, std::string_view message = {},
                  std::source_location where = std::source_location::current()) {
  if (condition.is_symbolic() || !condition.plain()) [[unlikely]]
    check_symbolic(condition, message, where);
}
// The value at the hints, recorded as the guard Eq(value, hint). An error for unbacked symbols.
int64_t guard_int_symbolic(const SymInt& value, const std::source_location& where);
inline int64_t guard_int(const SymInt& value, std::source_location where = std::source_location::current()) {
  return value.is_symbolic() ? guard_int_symbolic(value, where) : value.plain();
}
// States that `value` is a size: at least 0, and for `guard_or` at least 2.
void check_size_like(const SymInt& value, std::source_location where = std::source_location::current());

// While one is alive on this thread, using a symbolic value as an int, bool or double is an InternalError:
// meta functions must say which question they ask.
class ForbidImplicitGuards {
 public:
  ForbidImplicitGuards();
  ~ForbidImplicitGuards();
  ForbidImplicitGuards(const ForbidImplicitGuards&) = delete;
  ForbidImplicitGuards& operator=(const ForbidImplicitGuards&) = delete;
};

std::ostream& operator<<(std::ostream& out, const SymInt& value);
std::ostream& operator<<(std::ostream& out, const SymBool& value);
std::ostream& operator<<(std::ostream& out, const SymFloat& value);

}  // namespace weft

template <typename T>
  requires std::same_as<T, weft::SymInt> || std::same_as<T, weft::SymBool> || std::same_as<T, weft::SymFloat>
struct fmt::formatter<T> {  // without options: "{}"
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const T& value, Context& context) const {
    std::string text = value.to_string();
    return std::copy(text.begin(), text.end(), context.out());
  }
};
