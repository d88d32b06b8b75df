#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "sym/expr_pool.h"

namespace weft::sym {

struct Symbol;
// The symbol of a symbol expression; an error for one that a rollback has forgotten.
const Symbol& live_symbol(const ShapeEnv& env, const Expr* expr);

// The bounds of a node from those of its arguments, `of(arg)`.
template <typename Of>
ValueRange propagate(const Expr& expr, Of of) {
  auto pairwise = [&](auto combine) {
    ValueRange result = of(expr.arg(0));
    for (const Expr* arg : expr.args().subspan(1)) result = combine(result, of(arg));
    return result;
  };
  switch (expr.kind()) {
    case Kind::kConstant:
      if (expr.type() == Type::kFloat) return {};
      return point(expr.value());
    case Kind::kAdd: {
      ValueRange result = point(expr.value());
      for (size_t i = 0; i < expr.args().size(); ++i)
        result = result + point(expr.coefficients()[i]) * of(expr.arg(i));
      return result;
    }
    case Kind::kMul: {
      ValueRange result = point(1);
      for (size_t i = 0; i < expr.args().size(); ++i)
        result = result * power(of(expr.arg(i)), point(expr.coefficients()[i]));
      return result;
    }
    case Kind::kFloorDiv:
      return floor_div(of(expr.arg(0)), of(expr.arg(1)));
    case Kind::kMod:
      return mod(of(expr.arg(0)), of(expr.arg(1)));
    case Kind::kPow:
      return power(of(expr.arg(0)), of(expr.arg(1)));
    case Kind::kMin:
      return pairwise(minimum);
    case Kind::kMax:
      return pairwise(maximum);
    case Kind::kWhere:
      return unite(of(expr.arg(1)), of(expr.arg(2)));
    case Kind::kEq:
    case Kind::kNe:
    case Kind::kLt:
    case Kind::kLe: {
      if (expr.args().size() == 2) return kAnyBool;  // floats
      ValueRange p = of(expr.arg(0));
      if (expr.kind() == Kind::kLt) return is_negative(p);
      if (expr.kind() == Kind::kLe) return is_not_positive(p);
      return expr.kind() == Kind::kEq ? is_zero(p) : logical_not(is_zero(p));
    }
    case Kind::kAnd:
      return pairwise(minimum);
    case Kind::kOr:
      return pairwise(maximum);
    case Kind::kNot:
      return logical_not(of(expr.arg(0)));
    default:
      return expr.type() == Type::kBool ? kAnyBool : ValueRange{};
  }
}

// The value of a node from those of its arguments; nothing when it has none (division by zero, overflow).
std::optional<Number> apply_operation(const Expr& expr, const std::vector<Number>& args);

template <typename Of>
std::optional<Number> fold(const Expr& expr, Of of) {
  if (expr.is_symbol()) return std::nullopt;
  std::vector<Number> args;
  args.reserve(expr.args().size());
  for (const Expr* arg : expr.args()) {
    const std::optional<Number>& value = of(arg);
    if (!value) return std::nullopt;
    args.push_back(*value);
  }
  return apply_operation(expr, args);
}

// Visits what `root` is made of, arguments first and each node once, without recursion. `is_done(node)` ends
// the descent, and must become true by `visit(node)`.
template <typename IsDone, typename Visit>
void visit_post_order(const Expr* root, IsDone is_done, Visit visit) {
  std::vector<std::pair<const Expr*, size_t>> stack;
  if (!is_done(root)) stack.emplace_back(root, 0);
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next < node->args().size()) {
      const Expr* arg = node->arg(next++);
      if (!is_done(arg)) stack.emplace_back(arg, 0);
      continue;
    }
    const Expr* done = node;
    stack.pop_back();
    if (!is_done(done)) visit(done);
  }
}

// The current bounds of an expression; `known_range` also uses what was checked about sums as a whole.
ValueRange current_range(ExprPool& pool, const Expr* expr);
ValueRange known_range(ExprPool& pool, const Expr* polynomial);
// The key of a polynomial in ExprPool::bounds, and how the polynomial follows: sign * key + offset.
struct BoundKey {
  const Expr* key;
  int64_t sign;
  int64_t offset;
};
std::optional<BoundKey> bound_key(ExprPool& pool, const Expr* polynomial);

// The value at the current hints.
std::optional<Number> current_hint(ExprPool& pool, const Expr* expr);

}  // namespace weft::sym
