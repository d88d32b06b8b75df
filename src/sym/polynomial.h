#pragma once

#include <optional>
#include <vector>

#include "sym/expr_pool.h"

namespace weft::sym {

// constant + sum of coefficient * monomial, the working form of an integer expression. Terms are sorted by
// the monomial's id; no coefficient is zero; a monomial is a kMul or an atom (never a kAdd with other terms).
struct Term {
  const Expr* monomial;
  int64_t coefficient;
};
struct Polynomial {
  int64_t constant = 0;
  std::vector<Term> terms;

  bool is_constant() const { return terms.empty(); }
};

Polynomial polynomial_of(const Expr* expr);
const Expr* make(ExprPool& pool, const Polynomial& p);

// a + scale * b
Polynomial plus(const Polynomial& a, const Polynomial& b, int64_t scale = 1);
Polynomial scaled(const Polynomial& a, int64_t scale);
Polynomial times(ExprPool& pool, const Polynomial& a, const Polynomial& b);
// Sorts terms by id and adds up those with equal monomials.
void collect(std::vector<Term>& terms);

// The greatest common divisor of the coefficients, the constant left out; 0 for a constant.
int64_t content(const Polynomial& p);
// The polynomial q with a = q * b, when there is one.
std::optional<Polynomial> divide_exactly(ExprPool& pool, const Polynomial& a, const Polynomial& b);
// The product of the atoms that every term of both has in common (1 when there is none).
const Expr* common_monomial(ExprPool& pool, const Polynomial& a, const Polynomial& b);
Polynomial divide_by_monomial(ExprPool& pool, const Polynomial& p, const Expr* monomial);

// Integer arithmetic that fails with "size arithmetic overflows int64".
int64_t checked_add(int64_t a, int64_t b);
int64_t checked_mul(int64_t a, int64_t b);
int64_t floor_divide(int64_t a, int64_t b);
// What is left, with the sign of b.
int64_t floor_modulo(int64_t a, int64_t b);

}  // namespace weft::sym
