#include "weft/sym/sym_int.h"

#include <array>
#include <ostream>

#include "sym/build.h"
#include "sym/open_conditions.h"
#include "sym/polynomial.h"
#include "weft/sym/shape_env.h"

namespace weft {

using sym::Expr;
using sym::ExprPool;
using sym::Kind;

namespace {

// The environment that both operands belong to; null when both are constants.
ShapeEnv* common_env(const SymInt& a, const SymInt& b) { return a.env() ? a.env() : b.env(); }

int64_t value_of(const SymInt& a) { return a.is_symbolic() ? a.expr()->value() : a.plain(); }

// Applies `build` to the simplified operands, in the environment that they share.
template <typename Build>
auto apply(ShapeEnv& env, const SymInt& a, const SymInt& b, Build build) {
  if (sym::OpenConditions::is_on()) return build(env.pool(), env.expr_of(a), env.expr_of(b));
  return build(env.pool(), env.simplify(env.expr_of(a)), env.simplify(env.expr_of(b)));
}

// A binary operation: `constants` when no symbol is involved, `build` otherwise.
template <typename Constants, typename Build>
SymInt binary(const SymInt& a, const SymInt& b, Constants constants, Build build) {
  if (ShapeEnv* env = common_env(a, b)) return SymInt::from_expr(apply(*env, a, b, build));
  return constants(value_of(a), value_of(b));
}

SymBool comparison(const SymInt& a, const SymInt& b, Kind kind) {
  ShapeEnv& env = *common_env(a, b);
  return SymBool::from_expr(apply(env, a, b, [&](ExprPool& pool, const Expr* x, const Expr* y) {
    return sym::OpenConditions::is_on() ? sym::open_compare(pool, kind, x, y)
                                        : sym::compare(pool, kind, x, y);
  }));
}

int64_t checked_sub(int64_t a, int64_t b) {
  int64_t result;
  require(!__builtin_sub_overflow(a, b, &result), "size arithmetic overflows int64: {} - {}", a, b);
  return result;
}

void require_divisor(int64_t a, int64_t b) {
  require(b != 0, "division of the size {} by zero; check the divisor before dividing", a);
}

int64_t checked_truncate_div(int64_t a, int64_t b) {
  require_divisor(a, b);
  return b == -1 ? checked_sub(0, a) : a / b;
}

int64_t checked_truncate_mod(int64_t a, int64_t b) {
  require_divisor(a, b);
  return b == -1 ? 0 : a % b;
}

int64_t checked_floor_div(int64_t a, int64_t b) {
  require_divisor(a, b);
  return b == -1 ? checked_sub(0, a) : sym::floor_divide(a, b);
}

int64_t checked_mod(int64_t a, int64_t b) {
  require_divisor(a, b);
  return b == -1 ? 0 : sym::floor_modulo(a, b);
}

int64_t checked_power(int64_t base, int64_t exponent) {
  require(exponent >= 0, "{} to the power {}: a size needs an exponent of at least 0", base, exponent);
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i) result = sym::checked_mul(result, base);
  return result;
}

// Division toward zero equals the floor when the signs agree: the question is asked of the ranges, and a
// negative operand (which sizes never are) becomes a choice.
SymInt truncate_symbolic(const SymInt& a, const SymInt& b) {
  if (known((a >= 0) & (b > 0)) || known((a <= 0) & (b < 0))) return floor_div(a, b);
  return sym_ite(a * b >= 0, floor_div(a, b), -floor_div(-a, b));
}

template <typename Build>
SymInt fold_many(std::span<const SymInt> values, ShapeEnv& env, Build build) {
  std::vector<const Expr*> parts;
  parts.reserve(values.size());
  for (const SymInt& value : values) parts.push_back(env.simplify(env.expr_of(value)));
  return SymInt::from_expr(build(env.pool(), parts));
}

ShapeEnv* env_among(std::span<const SymInt> values) {
  for (const SymInt& value : values)
    if (ShapeEnv* env = value.env()) return env;
  return nullptr;
}

}  // namespace

SymInt SymInt::from_expr(const Expr* expr) {
  if (expr->is_constant()) return expr->value();
  sym::detail::retain(expr);
  SymInt result;
  result.bits_ = tagged(expr);
  return result;
}

int64_t SymInt::constant_value() const {
  const std::optional<int64_t> constant = symbolic_constant();
  invariant(constant.has_value(), "{} depends on symbols, but is read as an integer", to_string());
  return *constant;
}

std::optional<int64_t> SymInt::symbolic_constant() const {
  return env() ? env()->constant_value(expr()) : expr()->value();
}

std::optional<int64_t> SymInt::symbolic_hint() const {
  if (!env()) return expr()->value();
  std::optional<sym::Number> value = env()->hint(env()->simplify(expr()));
  return value ? std::optional(std::get<int64_t>(*value)) : std::nullopt;
}

std::string SymInt::to_string() const {
  if (!is_symbolic()) return std::to_string(bits_);
  return env() ? env()->simplify(expr())->to_string() : expr()->to_string();
}

void sym::detail::fail_unsigned(uint64_t value) { fail("size {} does not fit into int64", value); }

SymInt sym::detail::add(const SymInt& a, const SymInt& b) {
  return binary(a, b, checked_add,
                [](ExprPool& p, const Expr* x, const Expr* y) { return sym::add(p, x, y); });
}

SymInt sym::detail::sub(const SymInt& a, const SymInt& b) { return binary(a, b, checked_sub, subtract); }

SymInt sym::detail::mul(const SymInt& a, const SymInt& b) { return binary(a, b, checked_mul, multiply); }

SymInt sym::detail::truncate_div(const SymInt& a, const SymInt& b) {
  if (common_env(a, b)) return truncate_symbolic(a, b);
  return checked_truncate_div(value_of(a), value_of(b));
}

SymInt sym::detail::truncate_mod(const SymInt& a, const SymInt& b) {
  if (!common_env(a, b)) return checked_truncate_mod(value_of(a), value_of(b));
  if (known((a >= 0) & (b > 0))) return weft::mod(a, b);
  return a - truncate_symbolic(a, b) * b;
}

SymInt sym::detail::minimum(const SymInt& a, const SymInt& b) {
  return binary(
      a, b, [](int64_t x, int64_t y) { return std::min(x, y); },
      [](ExprPool& p, const Expr* x, const Expr* y) { return sym::minimum(p, std::array{x, y}); });
}

SymInt sym::detail::maximum(const SymInt& a, const SymInt& b) {
  return binary(
      a, b, [](int64_t x, int64_t y) { return std::max(x, y); },
      [](ExprPool& p, const Expr* x, const Expr* y) { return sym::maximum(p, std::array{x, y}); });
}

SymInt sym::detail::power(const SymInt& base, const SymInt& exponent) {
  return binary(base, exponent, checked_power,
                [](ExprPool& p, const Expr* x, const Expr* y) { return sym::power(p, x, y); });
}

SymBool sym::detail::equal(const SymInt& a, const SymInt& b) {
  if (!common_env(a, b)) return value_of(a) == value_of(b);
  return comparison(a, b, Kind::kEq);
}

SymBool sym::detail::less(const SymInt& a, const SymInt& b) {
  if (!common_env(a, b)) return value_of(a) < value_of(b);
  return comparison(a, b, Kind::kLt);
}

SymInt floor_div(const SymInt& a, const SymInt& b) {
  return binary(a, b, checked_floor_div,
                [](ExprPool& p, const Expr* x, const Expr* y) { return sym::floor_div(p, x, y); });
}

SymInt mod(const SymInt& a, const SymInt& b) {
  return binary(a, b, checked_mod,
                [](ExprPool& p, const Expr* x, const Expr* y) { return sym::mod(p, x, y); });
}

SymInt ceil_div(const SymInt& a, const SymInt& b) { return -floor_div(-a, b); }

SymInt sym_sum(std::span<const SymInt> values) {
  if (ShapeEnv* env = env_among(values))
    return fold_many(values, *env, [](ExprPool& pool, std::span<const Expr* const> parts) {
      return sym::sum(pool, parts);
    });
  SymInt total = 0;
  for (const SymInt& value : values) total += value;
  return total;
}

SymInt sym_product(std::span<const SymInt> values) {
  SymInt total = 1;
  for (const SymInt& value : values) total *= value;
  return total;
}

SymInt sym_ite(const SymBool& condition, const SymInt& a, const SymInt& b) {
  if (!condition.is_symbolic()) return condition.plain() ? a : b;
  ShapeEnv& env = *condition.env();
  const Expr* test = env.simplify(condition.expr());
  return SymInt::from_expr(apply(
      env, a, b, [&](ExprPool& pool, const Expr* x, const Expr* y) { return sym::where(pool, test, x, y); }));
}

std::ostream& operator<<(std::ostream& out, const SymInt& value) { return out << value.to_string(); }

}  // namespace weft
