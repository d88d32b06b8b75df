#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "sym/analysis.h"
#include "sym/build.h"
#include "sym/polynomial.h"
#include "weft/base/error.h"

namespace weft::sym {
namespace {

bool is_value(const Expr* e, int64_t value) { return e->is_constant() && e->value() == value; }

// g * X + c over g * B is X + floor(c / g) over B: divides the terms by what they share with the divisor.
Polynomial divide_terms(const Polynomial& p, int64_t g) {
  Polynomial result{floor_divide(p.constant, g), p.terms};
  for (Term& term : result.terms) term.coefficient /= g;
  return result;
}

// Moves the terms that the divisor divides into `whole`, divided.
Polynomial split_multiples(Polynomial& p, int64_t divisor) {
  Polynomial whole;
  for (const Term& term : p.terms)
    if (term.coefficient % divisor == 0) whole.terms.push_back({term.monomial, term.coefficient / divisor});
  std::erase_if(p.terms, [&](const Term& term) { return term.coefficient % divisor == 0; });
  if (p.constant % divisor == 0) whole.constant = std::exchange(p.constant, 0) / divisor;
  return whole;
}

const Expr* floor_div_node(ExprPool& pool, const Polynomial& p, int64_t divisor) {
  if (divisor == 1) return make(pool, p);
  const Expr* a = make(pool, p);
  if (a->is_constant()) return pool.constant(floor_divide(a->value(), divisor));
  ValueRange quotient = floor_div(known_range(pool, a), point(divisor));
  if (quotient.is_point()) return pool.constant(quotient.lo);
  // floor(floor(x / c) / d) = floor(x / (c * d)) for positive divisors.
  if (a->kind() == Kind::kFloorDiv && a->arg(1)->is_constant() && a->arg(1)->value() > 0)
    return floor_div(pool, a->arg(0), pool.constant(checked_mul(a->arg(1)->value(), divisor)));
  return pool.make(Kind::kFloorDiv, Type::kInt, std::array{a, pool.constant(divisor)});
}

const Expr* floor_div_constant(ExprPool& pool, const Expr* a, int64_t divisor) {
  if (divisor == 0)
    fail("division of the size {} by zero; check the divisor before dividing", a->to_string());
  Polynomial p = polynomial_of(a);
  if (divisor < 0) return floor_div_constant(pool, make(pool, scaled(p, -1)), checked_mul(divisor, -1));
  Polynomial whole = split_multiples(p, divisor);
  int64_t g = std::gcd(content(p), divisor);
  const Expr* rest = floor_div_node(pool, divide_terms(p, g), divisor / g);
  return make(pool, plus(whole, polynomial_of(rest)));
}

// Makes terms of Mod(x, c), where the divisor divides c, terms of x: they differ by multiples of c.
bool open_nested_mods(Polynomial& p, int64_t divisor) {
  for (size_t i = 0; i < p.terms.size(); ++i) {
    auto [monomial, coefficient] = p.terms[i];
    if (monomial->kind() != Kind::kMod || !monomial->arg(1)->is_constant()) continue;
    if (monomial->arg(1)->value() % divisor != 0) continue;
    p.terms.erase(p.terms.begin() + static_cast<ptrdiff_t>(i));
    p = plus(p, scaled(polynomial_of(monomial->arg(0)), coefficient));
    return true;
  }
  return false;
}

void reduce_coefficients(Polynomial& p, int64_t divisor) {
  auto reduce = [&](int64_t a) { return floor_modulo(a, divisor); };
  for (Term& term : p.terms) term.coefficient = reduce(term.coefficient);
  std::erase_if(p.terms, [](const Term& term) { return term.coefficient == 0; });
  p.constant = reduce(p.constant);
}

const Expr* mod_constant(ExprPool& pool, const Expr* a, int64_t divisor) {
  if (divisor == 0)
    fail("remainder of the size {} by zero; check the divisor before dividing", a->to_string());
  if (divisor < 0) {
    const Expr* negated = make(pool, scaled(polynomial_of(a), -1));
    return make(pool, scaled(polynomial_of(mod_constant(pool, negated, checked_mul(divisor, -1))), -1));
  }
  ValueRange range = known_range(pool, a);
  if (range.lo >= 0 && range.hi < divisor) return a;
  Polynomial p = polynomial_of(a);
  reduce_coefficients(p, divisor);
  while (open_nested_mods(p, divisor)) reduce_coefficients(p, divisor);
  int64_t g = std::gcd(content(p), divisor);
  int64_t offset = floor_modulo(p.constant, g);
  const Expr* rest = make(pool, divide_terms(p, g));
  divisor /= g;
  if (divisor == 1) rest = pool.constant(0);
  else if (rest->is_constant()) rest = pool.constant(rest->value() % divisor);
  else if (range = known_range(pool, rest); !(range.lo >= 0 && range.hi < divisor))
    rest = pool.make(Kind::kMod, Type::kInt, std::array{rest, pool.constant(divisor)});
  return make(pool, plus({offset, {}}, polynomial_of(rest), g));
}

// Divides both by what they share: numbers and atoms. A shared atom is not zero where the division is
// defined.
void cancel_common(ExprPool& pool, Polynomial& a, Polynomial& b) {
  int64_t g = std::gcd(std::gcd(content(a), a.constant), std::gcd(content(b), b.constant));
  if (g > 1) a = divide_terms(a, g), b = divide_terms(b, g);
  const Expr* common = common_monomial(pool, a, b);
  if (is_value(common, 1)) return;
  a = divide_by_monomial(pool, a, common);
  b = divide_by_monomial(pool, b, common);
}

const Expr* extremum(ExprPool& pool, Kind kind, std::span<const Expr* const> args) {
  bool is_max = kind == Kind::kMax;
  std::vector<const Expr*> flat;
  for (const Expr* arg : args) {
    if (arg->kind() == kind) flat.insert(flat.end(), arg->args().begin(), arg->args().end());
    else flat.push_back(arg);
  }
  std::ranges::sort(flat, {}, &Expr::id);
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  // `a` is of no use when another argument is always at least as large (small). Pairs are compared for the
  // few arguments that real programs have; more are kept as they are.
  constexpr size_t kMaxCompared = 16;
  Kind opposite = is_max ? Kind::kMin : Kind::kMax;
  auto is_covered = [&](const Expr* a, const Expr* b) {
    if (a->kind() == opposite && std::ranges::find(a->args(), b) != a->args().end()) return true;
    if (int sign = difference_overflow(a, b)) return is_max == (sign < 0);
    ValueRange difference = known_range(pool, subtract(pool, a, b));
    return is_max ? difference.hi <= 0 : difference.lo >= 0;
  };
  for (size_t i = 0; i < flat.size() && flat.size() <= kMaxCompared;) {
    bool covered =
        std::ranges::any_of(flat, [&](const Expr* b) { return b != flat[i] && is_covered(flat[i], b); });
    if (covered) flat.erase(flat.begin() + static_cast<ptrdiff_t>(i));
    else ++i;
  }
  if (flat.size() == 1) return flat[0];
  return pool.make(kind, Type::kInt, flat);
}

}  // namespace

int difference_overflow(const Expr* a, const Expr* b) {
  auto constant = [](const Expr* e) { return e->is_constant() || e->kind() == Kind::kAdd ? e->value() : 0; };
  int64_t result;
  if (!__builtin_sub_overflow(constant(a), constant(b), &result)) return 0;
  return constant(a) < 0 ? -1 : 1;
}

const Expr* add(ExprPool& pool, const Expr* a, const Expr* b) {
  return make(pool, plus(polynomial_of(a), polynomial_of(b)));
}

const Expr* subtract(ExprPool& pool, const Expr* a, const Expr* b) {
  return make(pool, plus(polynomial_of(a), polynomial_of(b), -1));
}

const Expr* multiply(ExprPool& pool, const Expr* a, const Expr* b) {
  return make(pool, times(pool, polynomial_of(a), polynomial_of(b)));
}

const Expr* sum(ExprPool& pool, std::span<const Expr* const> terms) {
  Polynomial total;
  for (const Expr* term : terms) {
    Polynomial p = polynomial_of(term);
    total.constant = checked_add(total.constant, p.constant);
    total.terms.insert(total.terms.end(), p.terms.begin(), p.terms.end());
  }
  collect(total.terms);
  return make(pool, total);
}

const Expr* floor_div(ExprPool& pool, const Expr* a, const Expr* b) {
  if (b->is_constant()) return floor_div_constant(pool, a, b->value());
  if (is_value(a, 0) || a == b) return pool.constant(a == b);
  Polynomial dividend = polynomial_of(a), divisor = polynomial_of(b);
  if (std::optional<Polynomial> quotient = divide_exactly(pool, dividend, divisor))
    return make(pool, *quotient);
  cancel_common(pool, dividend, divisor);
  if (divisor.is_constant()) return floor_div_constant(pool, make(pool, dividend), divisor.constant);
  a = make(pool, dividend), b = make(pool, divisor);
  ValueRange quotient = floor_div(known_range(pool, a), known_range(pool, b));
  if (quotient.is_point()) return pool.constant(quotient.lo);
  return pool.make(Kind::kFloorDiv, Type::kInt, std::array{a, b});
}

const Expr* mod(ExprPool& pool, const Expr* a, const Expr* b) {
  if (b->is_constant()) return mod_constant(pool, a, b->value());
  if (is_value(a, 0) || a == b) return pool.constant(0);
  if (divide_exactly(pool, polynomial_of(a), polynomial_of(b))) return pool.constant(0);
  ValueRange range = known_range(pool, a);
  // a mod b is a when 0 <= a < b.
  if (range.lo >= 0 && !difference_overflow(a, b) && known_range(pool, subtract(pool, a, b)).hi < 0) return a;
  return pool.make(Kind::kMod, Type::kInt, std::array{a, b});
}

const Expr* minimum(ExprPool& pool, std::span<const Expr* const> args) {
  return extremum(pool, Kind::kMin, args);
}

const Expr* maximum(ExprPool& pool, std::span<const Expr* const> args) {
  return extremum(pool, Kind::kMax, args);
}

const Expr* power(ExprPool& pool, const Expr* base, const Expr* exponent) {
  if (is_value(base, 1)) return base;
  if (!exponent->is_constant()) return pool.make(Kind::kPow, Type::kInt, std::array{base, exponent});
  int64_t count = exponent->value();
  if (count < 0) fail("{} to the power {}: a size needs an exponent of at least 0", base->to_string(), count);
  if (is_value(base, 0)) return pool.constant(count == 0);
  if (is_value(base, -1)) return pool.constant(count % 2 == 0 ? 1 : -1);
  Polynomial result{1, {}}, square = polynomial_of(base);
  for (;; square = times(pool, square, square)) {
    if (count % 2 == 1) result = times(pool, result, square);
    if ((count /= 2) == 0) return make(pool, result);
  }
}

const Expr* where(ExprPool& pool, const Expr* condition, const Expr* a, const Expr* b) {
  if (condition->is_constant()) return condition->value() ? a : b;
  if (a == b) return a;
  return pool.make(Kind::kWhere, Type::kInt, std::array{condition, a, b});
}

}  // namespace weft::sym
