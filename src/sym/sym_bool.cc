#include <array>
#include <ostream>

#include "sym/build.h"
#include "weft/sym/shape_env.h"
#include "weft/sym/sym_int.h"

namespace weft {

using sym::Expr;

namespace {

const Expr* expr_in(ShapeEnv& env, const SymBool& value) {
  if (!value.is_symbolic()) return env.pool().boolean(value.plain());
  if (!(value.env() == &env))
    fail(
        "{} belongs to another capture: conditions of two captures cannot be combined; pass it in as an "
        "input",
        value.expr()->to_string());
  return env.simplify(value.expr());
}

template <typename Build>
SymBool combine(const SymBool& a, const SymBool& b, Build build) {
  ShapeEnv& env = a.is_symbolic() ? *a.env() : *b.env();
  return SymBool::from_expr(build(env.pool(), std::array{expr_in(env, a), expr_in(env, b)}));
}

}  // namespace

SymBool SymBool::from_expr(const Expr* expr) {
  if (expr->is_constant()) return expr->value() != 0;
  sym::detail::retain(expr);
  SymBool result;
  result.bits_ = reinterpret_cast<uintptr_t>(expr);
  return result;
}

std::optional<bool> SymBool::maybe_plain() const {
  return is_symbolic() ? env()->decide(expr()) : std::optional(plain());
}

std::optional<bool> SymBool::hint() const {
  if (!is_symbolic()) return plain();
  std::optional<sym::Number> value = env()->hint(env()->simplify(expr()));
  return value ? std::optional(std::get<bool>(*value)) : std::nullopt;
}

std::string SymBool::to_string() const {
  if (!is_symbolic()) return plain() ? "True" : "False";
  return env()->simplify(expr())->to_string();
}

SymBool SymBool::operator!() const {
  if (!is_symbolic()) return !plain();
  return from_expr(sym::logical_not(env()->pool(), env()->simplify(expr())));
}

SymBool operator&(const SymBool& a, const SymBool& b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.plain() && b.plain();
  return combine(a, b, sym::logical_and);
}

SymBool operator|(const SymBool& a, const SymBool& b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.plain() || b.plain();
  return combine(a, b, sym::logical_or);
}

SymBool sym_and(const SymBool& a, const SymBool& b) { return a & b; }
SymBool sym_or(const SymBool& a, const SymBool& b) { return a | b; }
SymBool sym_not(const SymBool& a) { return !a; }

std::ostream& operator<<(std::ostream& out, const SymBool& value) { return out << value.to_string(); }

}  // namespace weft
