// What a condition that holds teaches: bounds, substitutions, divisibility.
#include <array>

#include "sym/analysis.h"
#include "sym/build.h"
#include "sym/polynomial.h"
#include "weft/sym/shape_env.h"

namespace weft {

using sym::Expr;
using sym::Kind;
using sym::Polynomial;
using sym::Term;
using sym::ValueRange;

void ShapeEnv::learn(const Expr* condition) {
  ++pool_->facts_epoch;
  std::vector<const Expr*> open{condition};
  while (!open.empty()) {
    const Expr* next = open.back();
    open.pop_back();
    bool is_and = next->kind() == Kind::kAnd;
    // Not (a or b) is (not a) and (not b).
    bool is_neither = next->kind() == Kind::kNot && next->arg(0)->kind() == Kind::kOr;
    if (is_and) open.insert(open.end(), next->args().begin(), next->args().end());
    else if (is_neither)
      for (const Expr* arg : next->arg(0)->args()) open.push_back(sym::logical_not(*pool_, arg));
    if (!is_and) learn_one(next);
  }
}

void ShapeEnv::learn_one(const Expr* condition) {
  if (condition->is_constant()) return;
  facts_[condition] = true;
  facts_[sym::logical_not(*pool_, condition)] = false;
  if (!condition->is_comparison() || condition->args().size() != 1) return;
  const Expr* p = condition->arg(0);
  switch (condition->kind()) {
    case Kind::kEq:
      return learn_equality(p);
    case Kind::kLe:
      return learn_bound(p, 0);
    case Kind::kLt:
      return learn_bound(p, -1);
    default:
      break;
  }
  // p != 0 moves a bound that is 0.
  ValueRange range = sym::known_range(*pool_, p);
  if (range.hi == 0) learn_bound(p, -1);
  if (range.lo == 0) learn_bound(sym::make(*pool_, sym::scaled(sym::polynomial_of(p), -1)), -1);
}

void ShapeEnv::learn_equality(const Expr* polynomial) {
  learn_bound(polynomial, 0);
  learn_bound(sym::make(*pool_, sym::scaled(sym::polynomial_of(polynomial), -1)), 0);
  if (solve_for_symbol(polynomial)) return;
  // An atom with coefficient 1 that equals a constant: Mod(s0, 4) is 0.
  Polynomial p = sym::polynomial_of(polynomial);
  if (p.terms.size() == 1 && p.terms[0].coefficient == 1 && p.terms[0].monomial->kind() != Kind::kMul)
    set_replacement(p.terms[0].monomial, pool_->constant(-p.constant));
}

// polynomial <= upper
void ShapeEnv::learn_bound(const Expr* polynomial, int64_t upper) {
  std::optional<sym::BoundKey> key = sym::bound_key(*pool_, polynomial);
  if (!key) return;
  ValueRange& bound = pool_->bounds[key->key];
  ValueRange rest = ValueRange{ValueRange::kNegInf, upper} + -sym::point(key->offset);
  bound = sym::intersect(bound, sym::point(key->sign) * rest);
  narrow_symbols(polynomial, upper);
}

// From c1*x1 + ... + k <= upper: each symbol x_i is bounded by the least that the other terms can be.
void ShapeEnv::narrow_symbols(const Expr* polynomial, int64_t upper) {
  Polynomial p = sym::polynomial_of(polynomial);
  auto least = [&](const Term& term) {
    return (sym::point(term.coefficient) * sym::current_range(*pool_, term.monomial)).lo;
  };
  __int128 sum = p.constant;
  size_t unbounded = 0;
  for (const Term& term : p.terms) {
    int64_t lo = least(term);
    lo == ValueRange::kNegInf ? static_cast<void>(++unbounded) : static_cast<void>(sum += lo);
  }
  for (const Term& term : p.terms) {
    if (!term.monomial->is_symbol()) continue;
    int64_t own = least(term);
    bool own_unbounded = own == ValueRange::kNegInf;
    if (unbounded > own_unbounded) continue;  // the others are not bounded
    __int128 room = upper - (own_unbounded ? sum : sum - own);
    if (room < INT64_MIN / 2 || room > INT64_MAX / 2) continue;
    int64_t limit = static_cast<int64_t>(room), c = term.coefficient;
    // c * x <= limit
    if (c > 0) narrow(term.monomial, {ValueRange::kNegInf, sym::floor_divide(limit, c)});
    if (c < 0) narrow(term.monomial, {-sym::floor_divide(limit, -c), ValueRange::kInf});
  }
}

void ShapeEnv::narrow(const Expr* symbol, const ValueRange& range) {
  ValueRange& own = pool_->state(symbol).range;
  ValueRange narrowed = sym::intersect(own, range);
  if (narrowed == own) return;
  if (narrowed.is_empty())
    fail("{} cannot be in {}: it is known to be in {}; the two conditions contradict each other",
         symbol->to_string(), range.to_string(), own.to_string());
  own = narrowed;
  mutable_symbol(symbol, "narrow").range = narrowed;
  ++pool_->facts_epoch;
  if (narrowed.is_point() && !replacements_.contains(symbol->id()))
    set_replacement(symbol, pool_->constant(narrowed.lo));
}

// From p == 0, replaces a symbol that p has once, with coefficient 1 or -1, by the rest. Unbacked symbols go
// first, then the youngest: s1 becomes s0.
bool ShapeEnv::solve_for_symbol(const Expr* polynomial) {
  polynomial = simplify(polynomial);
  Polynomial p = sym::polynomial_of(polynomial);
  const Term* best = nullptr;
  for (const Term& term : p.terms) {
    if (!term.monomial->is_symbol() || std::abs(term.coefficient) != 1) continue;
    if (best && best->monomial->has_unbacked() && !term.monomial->has_unbacked()) continue;
    best = &term;
  }
  if (!best) return false;
  const Expr* symbol = best->monomial;
  int64_t sign = -best->coefficient;
  Polynomial others = sym::plus(p, {0, {{symbol, best->coefficient}}}, -1);
  const Expr* value = sym::make(*pool_, sym::scaled(others, sign));
  // A backed symbol must not come to depend on data.
  if (value->has_unbacked() && !symbol->has_unbacked()) return false;
  for (const sym::Symbol* used : free_symbols(value))
    if (used->expr == symbol) return false;
  set_replacement(symbol, value);
  return true;
}

void ShapeEnv::set_replacement(const Expr* expr, const Expr* value) {
  if (expr == value) return;
  // What was known about the symbol goes on to hold for what replaces it.
  ValueRange range = sym::current_range(*pool_, expr);
  replacements_[expr->id()] = {expr, value};
  ++pool_->facts_epoch;
  if (value->is_constant()) return;
  if (range.hi != ValueRange::kInf) learn_bound(value, range.hi);
  if (range.lo != ValueRange::kNegInf)
    learn_bound(sym::make(*pool_, sym::scaled(sym::polynomial_of(value), -1)), -range.lo);
  const sym::Symbol* symbol = symbol_of(expr);
  if (symbol && symbol->size_like && value->is_symbol()) mark_size_like(value);
}

}  // namespace weft
