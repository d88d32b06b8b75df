// The order in which SymPy prints: `default_sort_key` for factors and arguments, descending lexicographic
// order of exponents for terms.
#include <algorithm>

#include "sym/analysis.h"
#include "sym/polynomial.h"
#include "sym/print.h"
#include "weft/sym/shape_env.h"

namespace weft::sym {
namespace {

struct ClassKey {
  int group, subgroup;
  std::string_view name;
  auto operator<=>(const ClassKey&) const = default;
};

std::string_view relation_name(const Sides& sides) {
  switch (sides.kind) {
    case Kind::kEq:
      return "Equality";
    case Kind::kNe:
      return "Unequality";
    case Kind::kLt:
      return sides.is_flipped ? "StrictGreaterThan" : "StrictLessThan";
    default:
      return sides.is_flipped ? "GreaterThan" : "LessThan";
  }
}

ClassKey class_key(const Expr* expr) {
  switch (expr->kind()) {
    case Kind::kConstant:
      return {1, 0, "Number"};
    case Kind::kSymbol:
      return {2, 0, "Symbol"};
    case Kind::kMul:
    case Kind::kFloatMul:
      return {3, 0, "Mul"};
    case Kind::kAdd:
    case Kind::kFloatAdd:
      return {3, 1, "Add"};
    case Kind::kMin:
    case Kind::kMax:
    case Kind::kFloatMin:
    case Kind::kFloatMax:
    case Kind::kAnd:
    case Kind::kOr:
    case Kind::kNot:
    case Kind::kEq:
    case Kind::kNe:
    case Kind::kLt:
    case Kind::kLe:
      return {5, 0, class_name(expr)};
    default:
      return {4, 10000, class_name(expr)};
  }
}

int sign_of(auto order) { return order < 0 ? -1 : order > 0 ? 1 : 0; }
int compare_numbers(int64_t a, int64_t b) { return sign_of(a <=> b); }

bool is_unordered_list(Kind kind) {
  return kind == Kind::kMin || kind == Kind::kMax || kind == Kind::kAnd || kind == Kind::kOr;
}

}  // namespace

std::string_view class_name(const Expr* expr) {
  switch (expr->kind()) {
    case Kind::kFloorDiv:
      return "FloorDiv";
    case Kind::kMod:
      return "Mod";
    case Kind::kMin:
    case Kind::kFloatMin:
      return "Min";
    case Kind::kMax:
    case Kind::kFloatMax:
      return "Max";
    case Kind::kPow:
      return "PowByNatural";
    case Kind::kWhere:
      return "Where";
    case Kind::kFloorToInt:
      return "FloorToInt";
    case Kind::kCeilToInt:
      return "CeilToInt";
    case Kind::kTruncToInt:
      return "TruncToInt";
    case Kind::kRoundToInt:
      return "RoundToInt";
    case Kind::kToFloat:
      return "ToFloat";
    case Kind::kIntTrueDiv:
      return "IntTrueDiv";
    case Kind::kFloatTrueDiv:
      return "FloatTrueDiv";
    case Kind::kFloatPow:
      return "FloatPow";
    case Kind::kSqrt:
      return "OpaqueUnaryFn_sqrt";
    case Kind::kAnd:
      return "And";
    case Kind::kOr:
      return "Or";
    case Kind::kNot:
      return "Not";
    case Kind::kEq:
      return "Equality";
    case Kind::kNe:
      return "Unequality";
    case Kind::kLt:
      return "StrictLessThan";
    case Kind::kLe:
      return "LessThan";
    default:
      return "";
  }
}

Power power_of(const Expr* expr) {
  while (expr->kind() == Kind::kHeld) expr = expr->arg(0);
  Power power{expr};
  if (expr->kind() == Kind::kAdd && expr->args().size() == 1 && expr->value() == 0)
    power = {expr->arg(0), 1, expr->coefficients()[0]};
  if (power.base->kind() == Kind::kMul && power.base->args().size() == 1)
    power = {power.base->arg(0), power.base->coefficients()[0], power.coefficient};
  return power;
}

SympyOrder::SympyOrder(const Expr* root) {
  visit_post_order(
      root, [&](const Expr* e) { return e->args().empty() || parts_.contains(e); },
      [&](const Expr* e) { prepare(e); });
}

void SympyOrder::prepare(const Expr* node) {
  std::vector<Power> parts;
  if (node->kind() == Kind::kAdd) {
    parts = ordered_terms(node);
  } else {
    for (size_t i = 0; i < node->args().size(); ++i)
      parts.push_back(node->kind() == Kind::kMul ? Power{node->arg(i), node->coefficients()[i]}
                                                 : power_of(node->arg(i)));
    if (node->is_comparison() && node->args().size() == 1) prepare_sides(node);
    if (node->kind() == Kind::kMul)
      std::ranges::sort(parts, [&](const Power& a, const Power& b) { return compare(a, b) < 0; });
    if (is_unordered_list(node->kind()))
      std::ranges::sort(parts, [&](const Power& a, const Power& b) {
        double size_a = node_count(a), size_b = node_count(b);
        return size_a != size_b ? size_a < size_b : compare(a, b) < 0;
      });
  }
  double count = 1;
  for (const Power& part : key_parts(node, parts)) count += node_count(part);
  node_counts_.insert_or_assign(node, count);
  parts_.insert_or_assign(node, std::move(parts));
}

std::vector<Power> SympyOrder::factors(const Expr* monomial) const {
  if (monomial->kind() == Kind::kMul) return parts(monomial);
  return {Power{monomial}};
}

bool SympyOrder::term_before(const Power& a, const Power& b) const {
  auto factors_of = [&](const Power& term) {
    return term.exponent == 1 ? factors(term.base) : std::vector<Power>{Power{term.base, term.exponent}};
  };
  std::vector<Power> fa = factors_of(a), fb = factors_of(b);
  for (size_t i = 0; i < std::min(fa.size(), fb.size()); ++i) {
    if (fa[i].base != fb[i].base) return compare(Power{fa[i].base}, Power{fb[i].base}) < 0;
    if (fa[i].exponent != fb[i].exponent) return fa[i].exponent > fb[i].exponent;
  }
  return fa.size() > fb.size();
}

std::vector<Power> SympyOrder::ordered_terms(const Expr* sum) const {
  std::vector<Power> terms;
  for (size_t i = 0; i < sum->args().size(); ++i) {
    Power term = power_of(sum->arg(i));
    term.coefficient = sum->coefficients()[i];
    terms.push_back(term);
  }
  std::ranges::sort(terms, [&](const Power& a, const Power& b) { return term_before(a, b); });
  if (sum->value() == 0) return terms;
  Power constant{sum->pool()->constant(sum->value())};
  // `1 - s0`: SymPy puts a positive constant before a single negative term of one factor.
  bool leads = terms.size() == 1 && sum->value() > 0 && terms[0].coefficient < 0 &&
               terms[0].base->kind() != Kind::kMul;
  terms.insert(leads ? terms.begin() : terms.end(), constant);
  return terms;
}

void SympyOrder::prepare_sides(const Expr* comparison) {
  ExprPool& pool = *comparison->pool();
  Polynomial p = polynomial_of(comparison->arg(0));
  // The leading term decides which side comes first.
  const Expr* sum = comparison->arg(0);
  int64_t lead = 1;
  if (sum->kind() == Kind::kAdd) {
    const std::vector<Power>& terms = parts(sum);
    bool constant_first = terms[0].base->is_constant();
    lead = terms[constant_first ? 1 : 0].coefficient;
  }
  if (lead < 0) p = scaled(p, -1);
  Polynomial left, right;
  for (const Term& term : p.terms)
    if (term.coefficient > 0) left.terms.push_back(term);
    else right.terms.push_back({term.monomial, -term.coefficient});
  if (right.terms.empty() || p.constant < 0) right.constant = checked_mul(p.constant, -1);
  else left.constant = p.constant;
  Sides sides{comparison->kind(), lead < 0, make(pool, left), make(pool, right)};
  // Their monomials are prepared already: these two calls go no deeper.
  for (const Expr* side : {sides.left, sides.right})
    if (!side->args().empty() && !parts_.contains(side)) prepare(side);
  sides_.insert_or_assign(comparison, sides);
}

std::vector<Power> SympyOrder::key_parts(const Expr* node, const std::vector<Power>& parts) const {
  if (auto found = sides_.find(node); found != sides_.end())
    return {power_of(found->second.left), power_of(found->second.right)};
  return parts;
}

std::vector<Power> SympyOrder::key_args(const Expr* node) const { return key_parts(node, parts(node)); }

double SympyOrder::node_count(const Power& power) const {
  auto found = node_counts_.find(power.base);
  double count = found == node_counts_.end() ? 1 : found->second;
  if (power.exponent != 1) count += 2;
  bool is_product = power.base->kind() == Kind::kMul && power.exponent == 1;
  if (power.coefficient != 1) count += is_product ? 1 : 2;
  return count;
}

int SympyOrder::compare(Power a, Power b) const {
  // Descends into the first pair of arguments that differ; that pair decides.
  while (true) {
    if (a.base == b.base) {
      if (a.exponent != b.exponent) return compare_numbers(a.exponent, b.exponent);
      return compare_numbers(a.coefficient, b.coefficient);
    }
    ClassKey ka = class_key(a.base), kb = class_key(b.base);
    if (auto found = sides_.find(a.base); found != sides_.end()) ka.name = relation_name(found->second);
    if (auto found = sides_.find(b.base); found != sides_.end()) kb.name = relation_name(found->second);
    if (ka != kb) return sign_of(ka <=> kb);
    if (a.base->is_symbol()) return sign_of(symbol_name(a.base) <=> symbol_name(b.base));
    if (a.base->is_constant()) {
      if (a.base->type() == Type::kFloat && b.base->type() == Type::kFloat)
        return a.base->float_value() < b.base->float_value() ? -1 : 1;
      return compare_numbers(a.base->value(), b.base->value());
    }
    std::vector<Power> args_a = key_args(a.base), args_b = key_args(b.base);
    if (args_a.size() != args_b.size()) return args_a.size() < args_b.size() ? -1 : 1;
    auto [x, y] = std::ranges::mismatch(args_a, args_b);
    if (x == args_a.end()) return compare_numbers(a.base->id(), b.base->id());
    Power next_a = *x, next_b = *y;
    a = next_a, b = next_b;
  }
}

}  // namespace weft::sym
