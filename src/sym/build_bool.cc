#include <algorithm>
#include <array>
#include <numeric>

#include "sym/analysis.h"
#include "sym/build.h"
#include "sym/polynomial.h"

namespace weft::sym {
namespace {

// The truth that the range of p decides.
const Expr* decided(ExprPool& pool, const ValueRange& truth) {
  return truth.is_point() ? pool.boolean(truth.lo != 0) : nullptr;
}

const Expr* comparison_node(ExprPool& pool, Kind kind, const Expr* p) {
  return pool.make(kind, Type::kBool, std::array{p});
}

// p == 0 or p != 0, divided by the common divisor, with the first coefficient positive.
const Expr* open_equality(ExprPool& pool, Kind kind, const Expr* expr) {
  bool when_equal = kind == Kind::kEq;
  Polynomial p = polynomial_of(expr);
  int64_t g = content(p);
  if (p.constant % g != 0) return pool.boolean(!when_equal);
  if (p.terms[0].coefficient < 0) g = -g;
  if (g == 1) return comparison_node(pool, kind, expr);
  p.constant /= g;
  for (Term& term : p.terms) term.coefficient /= g;
  return comparison_node(pool, kind, make(pool, p));
}

// p < 0 or p <= 0, divided by the common divisor and tightened to the integers.
const Expr* open_inequality(ExprPool& pool, Kind kind, const Expr* expr) {
  bool strict = kind == Kind::kLt;
  Polynomial p = polynomial_of(expr);
  int64_t g = content(p);
  if (g == 1) return comparison_node(pool, kind, expr);
  // g*X + c < 0  is  X < ceil(-c/g), that is X + floor(c/g) < 0;  g*X + c <= 0  is  X + ceil(c/g) <= 0.
  int64_t down = floor_divide(p.constant, g);
  p.constant = strict || p.constant % g == 0 ? down : down + 1;
  for (Term& term : p.terms) term.coefficient /= g;
  return comparison_node(pool, kind, make(pool, p));
}

const Expr* equality(ExprPool& pool, Kind kind, const Expr* expr) {
  if (const Expr* known = decided(pool, is_zero(known_range(pool, expr))))
    return kind == Kind::kEq ? known : logical_not(pool, known);
  return open_equality(pool, kind, expr);
}

const Expr* inequality(ExprPool& pool, Kind kind, const Expr* expr) {
  const ValueRange range = known_range(pool, expr);
  const bool strict = kind == Kind::kLt;
  if (const Expr* known = decided(pool, strict ? is_negative(range) : is_not_positive(range))) return known;
  return open_inequality(pool, kind, expr);
}

const Expr* junction(ExprPool& pool, Kind kind, std::span<const Expr* const> args) {
  bool is_or = kind == Kind::kOr;
  std::vector<const Expr*> flat;
  for (const Expr* arg : args) {
    if (arg->is_constant() && (arg->value() != 0) == is_or) return arg;
    if (arg->is_constant()) continue;
    if (arg->kind() == kind) flat.insert(flat.end(), arg->args().begin(), arg->args().end());
    else flat.push_back(arg);
  }
  std::ranges::sort(flat, {}, &Expr::id);
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  for (const Expr* arg : flat)
    if (std::ranges::binary_search(flat, logical_not(pool, arg)->id(), {}, &Expr::id))
      return pool.boolean(is_or);
  if (flat.empty()) return pool.boolean(!is_or);
  return flat.size() == 1 ? flat[0] : pool.make(kind, Type::kBool, flat);
}

}  // namespace

const Expr* equal_zero(ExprPool& pool, const Expr* p) { return equality(pool, Kind::kEq, p); }
const Expr* not_equal_zero(ExprPool& pool, const Expr* p) { return equality(pool, Kind::kNe, p); }
const Expr* less_zero(ExprPool& pool, const Expr* p) { return inequality(pool, Kind::kLt, p); }
const Expr* less_equal_zero(ExprPool& pool, const Expr* p) { return inequality(pool, Kind::kLe, p); }

const Expr* compare(ExprPool& pool, Kind kind, const Expr* a, const Expr* b) {
  if (int sign = difference_overflow(a, b))
    return pool.boolean(kind == Kind::kNe || (kind != Kind::kEq && sign < 0));
  const Expr* p = subtract(pool, a, b);
  return kind == Kind::kEq || kind == Kind::kNe ? equality(pool, kind, p) : inequality(pool, kind, p);
}

const Expr* open_compare(ExprPool& pool, Kind kind, const Expr* a, const Expr* b) {
  const Expr* p = difference_overflow(a, b) ? nullptr : subtract(pool, a, b);
  if (!p || p->is_constant()) return compare(pool, kind, a, b);
  const bool is_equality = kind == Kind::kEq || kind == Kind::kNe;
  return held(pool, is_equality ? open_equality(pool, kind, p) : open_inequality(pool, kind, p));
}

const Expr* logical_and(ExprPool& pool, std::span<const Expr* const> args) {
  return junction(pool, Kind::kAnd, args);
}
const Expr* logical_or(ExprPool& pool, std::span<const Expr* const> args) {
  return junction(pool, Kind::kOr, args);
}

const Expr* logical_not(ExprPool& pool, const Expr* a) {
  bool is_float = a->args().size() == 2;  // an unordered pair of floats is neither less nor greater
  switch (a->kind()) {
    case Kind::kConstant:
      return pool.boolean(a->value() == 0);
    case Kind::kNot:
      return a->arg(0);
    case Kind::kHeld:
      return held(pool, logical_not(pool, a->arg(0)));
    case Kind::kEq:
      return pool.make(Kind::kNe, Type::kBool, a->args());
    case Kind::kNe:
      return pool.make(Kind::kEq, Type::kBool, a->args());
    case Kind::kLt:
    case Kind::kLe: {
      if (is_float) break;
      const Expr* negated = make(pool, scaled(polynomial_of(a->arg(0)), -1));
      return pool.make(a->kind() == Kind::kLt ? Kind::kLe : Kind::kLt, Type::kBool, std::array{negated});
    }
    default:
      break;
  }
  return pool.make(Kind::kNot, Type::kBool, std::array{a});
}

const Expr* held(ExprPool& pool, const Expr* condition) {
  if (condition->is_constant() || condition->kind() == Kind::kHeld) return condition;
  return pool.make(Kind::kHeld, Type::kBool, std::array{condition});
}

const Expr* released(ExprPool& pool, const Expr* condition) {
  std::unordered_map<const Expr*, const Expr*> done;
  std::vector<const Expr*> args;
  visit_post_order(
      condition, [&](const Expr* e) { return done.contains(e); },
      [&](const Expr* e) {
        args.clear();
        for (const Expr* arg : e->args()) args.push_back(done.at(arg));
        bool is_same = std::ranges::equal(args, e->args());
        done.emplace(e, e->kind() == Kind::kHeld ? args[0] : is_same ? e : rebuild(pool, e, args));
      });
  return done.at(condition);
}

}  // namespace weft::sym
