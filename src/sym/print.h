#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "sym/expr_pool.h"

namespace weft::sym {

// "1.5", "2.0", "nan": a float as Python writes it.
std::string real_text(double value);
// "s0", "u1": a symbol's name.
const std::string& symbol_name(const Expr* symbol);

// coefficient * base ** exponent: how SymPy's order looks at a term or factor.
struct Power {
  const Expr* base;
  int64_t exponent = 1;
  int64_t coefficient = 1;

  bool operator==(const Power&) const = default;
};
// Takes apart 2*x, x**2 and 2*x**3; any other expression is a base. A held condition is the condition.
Power power_of(const Expr* expr);

// The two sides of a comparison of integers, as a reader expects them: negative terms moved to the other
// side.
struct Sides {
  Kind kind;  // kLt and kLe may be turned around
  bool is_flipped;
  const Expr* left;
  const Expr* right;
};

// SymPy's order of terms, factors and arguments, for everything that `root` is made of.
class SympyOrder {
 public:
  explicit SympyOrder(const Expr* root);

  // The terms of a kAdd, the factors of a kMul, the arguments of a commutative node, in order.
  const std::vector<Power>& parts(const Expr* node) const { return parts_.at(node); }
  const Sides& sides(const Expr* comparison) const { return sides_.at(comparison); }

 private:
  void prepare(const Expr* node);
  void prepare_sides(const Expr* comparison);
  std::vector<Power> ordered_terms(const Expr* sum) const;
  // How many nodes SymPy's tree would have: small arguments come first in Min, Max, And and Or.
  double node_count(const Power& power) const;
  // Negative, zero or positive as `a` sorts before, with or after `b`.
  int compare(Power a, Power b) const;
  bool term_before(const Power& a, const Power& b) const;
  std::vector<Power> factors(const Expr* monomial) const;
  // What the sort key compares after the class: arguments in order.
  std::vector<Power> key_args(const Expr* node) const;
  std::vector<Power> key_parts(const Expr* node, const std::vector<Power>& parts) const;

  std::unordered_map<const Expr*, std::vector<Power>> parts_;
  std::unordered_map<const Expr*, Sides> sides_;
  std::unordered_map<const Expr*, double> node_counts_;
};

// "FloorDiv", "Mod", ...: SymPy's name of the class.
std::string_view class_name(const Expr* expr);

}  // namespace weft::sym
