#include "sym/polynomial.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "weft/base/error.h"

namespace weft::sym {
namespace {

// A product of sums larger than this stays a product: expanding (a + b)(c + d)... doubles with each factor.
constexpr size_t kMaxExpandedTerms = 4096;

struct Factor {
  const Expr* atom;
  int64_t exponent;
};
using Factors = std::vector<Factor>;

bool is_one(const Expr* e) { return e->is_constant() && e->value() == 1; }

Factors factors_of(const Expr* monomial) {
  if (is_one(monomial)) return {};
  if (monomial->kind() != Kind::kMul) return {{monomial, 1}};
  Factors factors;
  for (size_t i = 0; i < monomial->args().size(); ++i)
    factors.push_back({monomial->arg(i), monomial->coefficients()[i]});
  return factors;
}

const Expr* make_monomial(ExprPool& pool, const Factors& factors) {
  if (factors.empty()) return pool.constant(1);
  if (factors.size() == 1 && factors[0].exponent == 1) return factors[0].atom;
  std::vector<const Expr*> atoms;
  std::vector<int64_t> exponents;
  for (const Factor& factor : factors) {
    atoms.push_back(factor.atom);
    exponents.push_back(factor.exponent);
  }
  return pool.make(Kind::kMul, Type::kInt, atoms, exponents);
}

// Merges the factors by id, adding `sign` times the exponents of b; nothing when an exponent becomes
// negative.
std::optional<Factors> merge(const Factors& a, const Factors& b, int sign) {
  Factors result;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].atom->id() < b[j].atom->id())) {
      result.push_back(a[i++]);
    } else if (i == a.size() || b[j].atom->id() < a[i].atom->id()) {
      if (sign < 0) return std::nullopt;
      result.push_back(b[j++]);
    } else {
      int64_t exponent = a[i].exponent + sign * b[j].exponent;
      if (exponent < 0) return std::nullopt;
      if (exponent > 0) result.push_back({a[i].atom, exponent});
      ++i, ++j;
    }
  }
  return result;
}

const Expr* multiply_monomials(ExprPool& pool, const Expr* a, const Expr* b) {
  return make_monomial(pool, *merge(factors_of(a), factors_of(b), 1));
}

// A monomial order that products respect, as exact division needs: degree first, then lexicographic by id.
struct MonomialLess {
  bool operator()(const Expr* a, const Expr* b) const {
    if (a == b) return false;
    Factors fa = factors_of(a), fb = factors_of(b);
    int64_t da = degree(fa), db = degree(fb);
    if (da != db) return da < db;
    for (size_t i = 0; i < std::min(fa.size(), fb.size()); ++i) {
      if (fa[i].atom != fb[i].atom) return fa[i].atom->id() > fb[i].atom->id();
      if (fa[i].exponent != fb[i].exponent) return fa[i].exponent < fb[i].exponent;
    }
    return fa.size() < fb.size();
  }
  static int64_t degree(const Factors& factors) {
    int64_t sum = 0;
    for (const Factor& factor : factors) sum += factor.exponent;
    return sum;
  }
};
using ByOrder = std::map<const Expr*, int64_t, MonomialLess>;

ByOrder ordered(ExprPool& pool, const Polynomial& p) {
  ByOrder result;
  for (const Term& term : p.terms) result.emplace(term.monomial, term.coefficient);
  if (p.constant != 0) result.emplace(pool.constant(1), p.constant);
  return result;
}

// All terms, the constant as a multiple of the monomial 1.
std::vector<Term> all_terms(ExprPool& pool, const Polynomial& p) {
  std::vector<Term> terms = p.terms;
  if (p.constant != 0) terms.push_back({pool.constant(1), p.constant});
  return terms;
}

Polynomial from_terms(std::vector<Term> terms) {
  Polynomial result;
  for (const Term& term : terms)
    if (is_one(term.monomial)) result.constant = checked_add(result.constant, term.coefficient);
  std::erase_if(terms, [](const Term& term) { return is_one(term.monomial); });
  collect(terms);
  result.terms = std::move(terms);
  return result;
}

// The polynomial as one opaque factor, when it has several terms.
Polynomial as_factor(ExprPool& pool, const Polynomial& p) {
  if (p.terms.size() + (p.constant != 0) <= 1) return p;
  return {0, {{make(pool, p), 1}}};
}

}  // namespace

int64_t checked_add(int64_t a, int64_t b) {
  int64_t result;
  require(!__builtin_add_overflow(a, b, &result), "size arithmetic overflows int64: {} + {}", a, b);
  return result;
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t result;
  require(!__builtin_mul_overflow(a, b, &result), "size arithmetic overflows int64: {} * {}", a, b);
  return result;
}

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
// Not a - floor_divide(a, b) * b, whose product overflows near the lowest int64.
int64_t floor_modulo(int64_t a, int64_t b) {
  const int64_t rest = a % b;
  return rest != 0 && (a < 0) != (b < 0) ? rest + b : rest;
}

Polynomial polynomial_of(const Expr* expr) {
  if (expr->is_constant()) return {expr->value(), {}};
  if (expr->kind() != Kind::kAdd) return {0, {{expr, 1}}};
  Polynomial p{expr->value(), {}};
  p.terms.reserve(expr->args().size());
  for (size_t i = 0; i < expr->args().size(); ++i) p.terms.push_back({expr->arg(i), expr->coefficients()[i]});
  return p;
}

const Expr* make(ExprPool& pool, const Polynomial& p) {
  if (p.terms.empty()) return pool.constant(p.constant);
  if (p.terms.size() == 1 && p.constant == 0 && p.terms[0].coefficient == 1) return p.terms[0].monomial;
  std::vector<const Expr*> monomials;
  std::vector<int64_t> coefficients;
  monomials.reserve(p.terms.size());
  coefficients.reserve(p.terms.size());
  for (const Term& term : p.terms) {
    monomials.push_back(term.monomial);
    coefficients.push_back(term.coefficient);
  }
  return pool.make(Kind::kAdd, Type::kInt, monomials, coefficients, p.constant);
}

void collect(std::vector<Term>& terms) {
  std::ranges::sort(terms, {}, [](const Term& term) { return term.monomial->id(); });
  size_t kept = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (kept > 0 && terms[kept - 1].monomial == terms[i].monomial)
      terms[kept - 1].coefficient = checked_add(terms[kept - 1].coefficient, terms[i].coefficient);
    else terms[kept++] = terms[i];
  }
  terms.resize(kept);
  std::erase_if(terms, [](const Term& term) { return term.coefficient == 0; });
}

Polynomial plus(const Polynomial& a, const Polynomial& b, int64_t scale) {
  Polynomial result{checked_add(a.constant, checked_mul(scale, b.constant)), {}};
  result.terms.reserve(a.terms.size() + b.terms.size());
  size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    if (j == b.terms.size() ||
        (i < a.terms.size() && a.terms[i].monomial->id() < b.terms[j].monomial->id())) {
      result.terms.push_back(a.terms[i++]);
      continue;
    }
    Term term{b.terms[j].monomial, checked_mul(scale, b.terms[j].coefficient)};
    if (i < a.terms.size() && a.terms[i].monomial == term.monomial)
      term.coefficient = checked_add(term.coefficient, a.terms[i++].coefficient);
    ++j;
    if (term.coefficient != 0) result.terms.push_back(term);
  }
  return result;
}

Polynomial scaled(const Polynomial& a, int64_t scale) { return plus({}, a, scale); }

Polynomial times(ExprPool& pool, const Polynomial& a, const Polynomial& b) {
  if (a.is_constant()) return a.constant == 0 ? Polynomial{} : scaled(b, a.constant);
  if (b.is_constant()) return b.constant == 0 ? Polynomial{} : scaled(a, b.constant);
  if ((a.terms.size() + 1) * (b.terms.size() + 1) > kMaxExpandedTerms &&
      (a.terms.size() > 1 || a.constant != 0) && (b.terms.size() > 1 || b.constant != 0))
    return times(pool, as_factor(pool, a), as_factor(pool, b));
  std::vector<Term> products;
  for (const Term& x : all_terms(pool, a))
    for (const Term& y : all_terms(pool, b))
      products.push_back(
          {multiply_monomials(pool, x.monomial, y.monomial), checked_mul(x.coefficient, y.coefficient)});
  return from_terms(std::move(products));
}

int64_t content(const Polynomial& p) {
  uint64_t g = 0;
  for (const Term& term : p.terms) {
    uint64_t size = term.coefficient < 0 ? 0 - static_cast<uint64_t>(term.coefficient)
                                         : static_cast<uint64_t>(term.coefficient);
    g = std::gcd(g, size);
  }
  // 2^63 has no int64: fall back to a divisor of it that has.
  return g > static_cast<uint64_t>(INT64_MAX) ? int64_t{1} << 62 : static_cast<int64_t>(g);
}

std::optional<Polynomial> divide_exactly(ExprPool& pool, const Polynomial& a, const Polynomial& b) {
  if (b.is_constant() && b.constant == 0) return std::nullopt;
  // Each step removes the leading term of the rest; a quotient has at most as many terms as fit in a.
  size_t steps = a.terms.size() + 1;
  if (b.terms.size() * steps > kMaxExpandedTerms) return std::nullopt;
  ByOrder rest = ordered(pool, a);
  ByOrder divisor = ordered(pool, b);
  auto [lead, lead_coefficient] = *divisor.rbegin();
  Factors lead_factors = factors_of(lead);
  std::vector<Term> quotient;
  for (; !rest.empty(); --steps) {
    if (steps == 0) return std::nullopt;
    auto [monomial, coefficient] = *rest.rbegin();
    std::optional<Factors> factors = merge(factors_of(monomial), lead_factors, -1);
    if (!factors || coefficient % lead_coefficient != 0) return std::nullopt;
    Term step{make_monomial(pool, *factors), coefficient / lead_coefficient};
    quotient.push_back(step);
    for (auto [other, other_coefficient] : divisor) {
      int64_t& slot = rest[multiply_monomials(pool, step.monomial, other)];
      slot = checked_add(slot, checked_mul(-step.coefficient, other_coefficient));
      if (slot == 0) rest.erase(multiply_monomials(pool, step.monomial, other));
    }
  }
  return from_terms(std::move(quotient));
}

const Expr* common_monomial(ExprPool& pool, const Polynomial& a, const Polynomial& b) {
  std::optional<Factors> common;
  for (const Polynomial* p : {&a, &b})
    for (const Term& term : all_terms(pool, *p)) {
      Factors factors = factors_of(term.monomial);
      if (!common) {
        common = factors;
        continue;
      }
      for (Factor& kept : *common) {
        auto found = std::ranges::find(factors, kept.atom, &Factor::atom);
        kept.exponent = found == factors.end() ? 0 : std::min(kept.exponent, found->exponent);
      }
      std::erase_if(*common, [](const Factor& factor) { return factor.exponent == 0; });
    }
  return make_monomial(pool, common.value_or(Factors{}));
}

Polynomial divide_by_monomial(ExprPool& pool, const Polynomial& p, const Expr* monomial) {
  Factors divisor = factors_of(monomial);
  std::vector<Term> terms;
  for (const Term& term : all_terms(pool, p)) {
    std::optional<Factors> factors = merge(factors_of(term.monomial), divisor, -1);
    if (!factors.has_value()) invariant(false, "{} does not divide every term", monomial->to_string());
    terms.push_back({make_monomial(pool, *factors), term.coefficient});
  }
  return from_terms(std::move(terms));
}

}  // namespace weft::sym
