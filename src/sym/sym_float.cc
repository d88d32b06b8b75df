#include <cmath>
#include <ostream>

#include "sym/build.h"
#include "sym/open_conditions.h"
#include "sym/print.h"
#include "weft/sym/shape_env.h"
#include "weft/sym/sym_int.h"

namespace weft {

using sym::Expr;
using sym::Kind;

namespace {

const Expr* expr_in(ShapeEnv& env, const SymFloat& value) {
  if (!value.is_symbolic()) return env.pool().real(value.plain());
  if (!(value.env() == &env))
    fail("{} belongs to another capture: values of two captures cannot be combined; pass it in as an input",
         value.expr()->to_string());
  return sym::OpenConditions::is_on() ? value.expr() : env.simplify(value.expr());
}

ShapeEnv& env_of(const SymFloat& a, const SymFloat& b) { return a.is_symbolic() ? *a.env() : *b.env(); }
bool both_plain(const SymFloat& a, const SymFloat& b) { return !a.is_symbolic() && !b.is_symbolic(); }

SymFloat symbolic(Kind kind, const SymFloat& a, const SymFloat& b) {
  ShapeEnv& env = env_of(a, b);
  return SymFloat::from_expr(sym::float_op(env.pool(), kind, expr_in(env, a), expr_in(env, b)));
}

SymBool compare(Kind kind, const SymFloat& a, const SymFloat& b) {
  ShapeEnv& env = env_of(a, b);
  const Expr* condition = sym::float_compare(env.pool(), kind, expr_in(env, a), expr_in(env, b));
  return SymBool::from_expr(sym::OpenConditions::is_on() ? sym::held(env.pool(), condition) : condition);
}

SymInt rounded(const SymFloat& a, Kind kind, double (*round)(double)) {
  if (a.is_symbolic()) return SymInt::from_expr(sym::to_integer(a.env()->pool(), kind, expr_in(*a.env(), a)));
  double value = round(a.plain());
  require(value >= -0x1p63 && value < 0x1p63, "{} rounded to an integer does not fit into int64", a.plain());
  return static_cast<int64_t>(value);
}

}  // namespace

SymFloat SymFloat::from_expr(const Expr* expr) {
  if (expr->is_constant()) return expr->float_value();
  sym::detail::retain(expr);
  SymFloat result;
  result.expr_ = expr;
  return result;
}

std::optional<double> SymFloat::maybe_plain() const {
  if (!expr_) return value_;
  const Expr* simple = env()->simplify(expr_);
  return simple->is_constant() ? std::optional(simple->float_value()) : std::nullopt;
}

std::optional<double> SymFloat::hint() const {
  if (!expr_) return value_;
  std::optional<sym::Number> value = env()->hint(env()->simplify(expr_));
  return value ? std::optional(std::get<double>(*value)) : std::nullopt;
}

std::string SymFloat::to_string() const {
  return expr_ ? env()->simplify(expr_)->to_string() : sym::real_text(value_);
}

SymFloat operator+(const SymFloat& a, const SymFloat& b) {
  return both_plain(a, b) ? SymFloat(a.value_ + b.value_) : symbolic(Kind::kFloatAdd, a, b);
}
SymFloat operator*(const SymFloat& a, const SymFloat& b) {
  return both_plain(a, b) ? SymFloat(a.value_ * b.value_) : symbolic(Kind::kFloatMul, a, b);
}
// a - b and a + (-1 * b) have the same bits.
SymFloat operator-(const SymFloat& a, const SymFloat& b) {
  return both_plain(a, b) ? SymFloat(a.value_ - b.value_) : a + -b;
}
SymFloat SymFloat::operator-() const { return expr_ ? *this * SymFloat(-1.0) : SymFloat(-value_); }
SymFloat operator/(const SymFloat& a, const SymFloat& b) {
  return both_plain(a, b) ? SymFloat(a.value_ / b.value_) : symbolic(Kind::kFloatTrueDiv, a, b);
}
SymFloat pow(const SymFloat& a, const SymFloat& b) {
  return both_plain(a, b) ? SymFloat(std::pow(a.value_, b.value_)) : symbolic(Kind::kFloatPow, a, b);
}
SymFloat min(const SymFloat& a, const SymFloat& b) {
  return both_plain(a, b) ? SymFloat(std::min(a.value_, b.value_)) : symbolic(Kind::kFloatMin, a, b);
}
SymFloat max(const SymFloat& a, const SymFloat& b) {
  return both_plain(a, b) ? SymFloat(std::max(a.value_, b.value_)) : symbolic(Kind::kFloatMax, a, b);
}
SymFloat sqrt(const SymFloat& a) {
  if (!a.expr_) return std::sqrt(a.value_);
  return SymFloat::from_expr(sym::float_sqrt(a.env()->pool(), expr_in(*a.env(), a)));
}

SymBool operator==(const SymFloat& a, const SymFloat& b) {
  return both_plain(a, b) ? SymBool(a.value_ == b.value_) : compare(Kind::kEq, a, b);
}
SymBool operator!=(const SymFloat& a, const SymFloat& b) {
  return both_plain(a, b) ? SymBool(a.value_ != b.value_) : compare(Kind::kNe, a, b);
}
SymBool operator<(const SymFloat& a, const SymFloat& b) {
  return both_plain(a, b) ? SymBool(a.value_ < b.value_) : compare(Kind::kLt, a, b);
}
SymBool operator<=(const SymFloat& a, const SymFloat& b) {
  return both_plain(a, b) ? SymBool(a.value_ <= b.value_) : compare(Kind::kLe, a, b);
}

SymFloat sym_float(const SymInt& a) {
  if (!a.env()) return static_cast<double>(*a.maybe_plain());
  ShapeEnv& env = *a.env();
  return SymFloat::from_expr(sym::to_float(env.pool(), env.simplify(a.expr())));
}

SymFloat true_div(const SymInt& a, const SymInt& b) {
  if (!a.env() && !b.env()) {
    if (!(*b.maybe_plain() != 0))
      fail("division of the size {} by zero; check the divisor before dividing", a.to_string());
    return static_cast<double>(*a.maybe_plain()) / static_cast<double>(*b.maybe_plain());
  }
  ShapeEnv& env = a.env() ? *a.env() : *b.env();
  return SymFloat::from_expr(
      sym::int_true_div(env.pool(), env.simplify(env.expr_of(a)), env.simplify(env.expr_of(b))));
}

SymInt sym_floor(const SymFloat& a) { return rounded(a, Kind::kFloorToInt, std::floor); }
SymInt sym_ceil(const SymFloat& a) { return rounded(a, Kind::kCeilToInt, std::ceil); }
SymInt sym_trunc(const SymFloat& a) { return rounded(a, Kind::kTruncToInt, std::trunc); }
SymInt sym_round(const SymFloat& a) { return rounded(a, Kind::kRoundToInt, std::nearbyint); }

std::ostream& operator<<(std::ostream& out, const SymFloat& value) { return out << value.to_string(); }

}  // namespace weft
