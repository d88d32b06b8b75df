#include <algorithm>

#include "sym/analysis.h"
#include "sym/build.h"
#include "sym/polynomial.h"
#include "weft/sym/shape_env.h"

namespace weft {
namespace sym {
namespace {

const Expr* rebuild_sum(ExprPool& pool, const Expr* expr, std::span<const Expr* const> args) {
  Polynomial total{expr->value(), {}};
  for (size_t i = 0; i < args.size(); ++i) {
    Polynomial p = scaled(polynomial_of(args[i]), expr->coefficients()[i]);
    total.constant = checked_add(total.constant, p.constant);
    total.terms.insert(total.terms.end(), p.terms.begin(), p.terms.end());
  }
  collect(total.terms);
  return make(pool, total);
}

const Expr* rebuild_product(ExprPool& pool, const Expr* expr, std::span<const Expr* const> args) {
  const Expr* result = pool.constant(1);
  for (size_t i = 0; i < args.size(); ++i)
    result = multiply(pool, result, power(pool, args[i], pool.constant(expr->coefficients()[i])));
  return result;
}

}  // namespace

const Expr* rebuild(ExprPool& pool, const Expr* expr, std::span<const Expr* const> args) {
  Kind kind = expr->kind();
  // Sums and products depend on nothing but their arguments; other nodes also on ranges, which may be tighter
  // by now. (A product that was too large to expand stays one.)
  if ((kind == Kind::kAdd || kind == Kind::kMul) && std::ranges::equal(args, expr->args())) return expr;
  switch (kind) {
    case Kind::kConstant:
    case Kind::kSymbol:
      return expr;
    case Kind::kAdd:
      return rebuild_sum(pool, expr, args);
    case Kind::kMul:
      return rebuild_product(pool, expr, args);
    case Kind::kFloorDiv:
      return floor_div(pool, args[0], args[1]);
    case Kind::kMod:
      return mod(pool, args[0], args[1]);
    case Kind::kMin:
      return minimum(pool, args);
    case Kind::kMax:
      return maximum(pool, args);
    case Kind::kPow:
      return power(pool, args[0], args[1]);
    case Kind::kWhere:
      return where(pool, args[0], args[1], args[2]);
    case Kind::kFloorToInt:
    case Kind::kCeilToInt:
    case Kind::kTruncToInt:
    case Kind::kRoundToInt:
      return to_integer(pool, kind, args[0]);
    case Kind::kEq:
    case Kind::kNe:
    case Kind::kLt:
    case Kind::kLe:
      if (args.size() == 2) return float_compare(pool, kind, args[0], args[1]);
      return compare(pool, kind, args[0], pool.constant(0));
    case Kind::kAnd:
      return logical_and(pool, args);
    case Kind::kOr:
      return logical_or(pool, args);
    case Kind::kNot:
      return logical_not(pool, args[0]);
    case Kind::kHeld:
      return held(pool, args[0]);
    case Kind::kToFloat:
      return to_float(pool, args[0]);
    case Kind::kIntTrueDiv:
      return int_true_div(pool, args[0], args[1]);
    case Kind::kSqrt:
      return float_sqrt(pool, args[0]);
    default:
      return float_op(pool, kind, args[0], args[1]);
  }
}

}  // namespace sym

using sym::Expr;
using sym::Kind;

// Whether Mod(expr, divisor) is known to be 0, without descending into it.
bool ShapeEnv::is_multiple(const Expr* expr, const Expr* divisor) {
  const Expr* rest = sym::mod(*pool_, expr, divisor);
  if (auto found = replacements_.find(rest->id()); found != replacements_.end()) rest = found->second.second;
  return rest->is_constant() && rest->value() == 0;
}

// c * FloorDiv(x, m) is (c / m) * x where m divides c and x is known to be a multiple of m.
const Expr* ShapeEnv::exact_products(const Expr* expr) {
  sym::Polynomial rest = sym::polynomial_of(expr), exact;
  std::erase_if(rest.terms, [&](const sym::Term& term) {
    if (term.monomial->kind() != Kind::kFloorDiv || !term.monomial->arg(1)->is_constant()) return false;
    int64_t divisor = term.monomial->arg(1)->value();
    if (term.coefficient % divisor != 0 || !is_multiple(term.monomial->arg(0), term.monomial->arg(1)))
      return false;
    exact = sym::plus(exact, sym::polynomial_of(term.monomial->arg(0)), term.coefficient / divisor);
    return true;
  });
  return exact.terms.empty() ? expr : sym::make(*pool_, sym::plus(rest, exact));
}

const Expr* ShapeEnv::apply_known(const Expr* expr) {
  if (expr->is_symbol()) sym::live_symbol(*this, expr);
  if (expr->type() == sym::Type::kBool) {
    auto fact = facts_.find(expr);
    return fact == facts_.end() ? expr : pool_->boolean(fact->second);
  }
  if (replacements_.empty()) return expr;
  if (auto found = replacements_.find(expr->id()); found != replacements_.end()) return found->second.second;
  return expr->kind() == Kind::kAdd ? exact_products(expr) : expr;
}

const Expr* ShapeEnv::simplify(const Expr* root) {
  sym::ExprPool& pool = *pool_;
  if (root->pool() != pool_.get()) return root->is_constant() ? pool.constant(root->value()) : root;
  auto is_final = [](const Expr* e) { return e->is_constant() || e->kind() == Kind::kHeld; };
  auto is_done = [&](const Expr* e) {
    return is_final(e) || pool.state(e).simplified_epoch == pool.facts_epoch;
  };
  auto result_of = [&](const Expr* e) { return is_final(e) ? e : pool.state(e).simplified; };
  // A node waits for its arguments, and then for the simplification of what it became.
  struct Frame {
    const Expr* node;
    size_t next = 0;
    const Expr* becomes = nullptr;
    int steps = 0;
  };
  // Rewriting ends by itself; the limit keeps a rule that undoes another from running forever.
  constexpr int kMaxSteps = 16;
  std::vector<Frame> stack;
  std::vector<const Expr*> args;
  if (!is_done(root)) stack.push_back({.node = root});
  while (!stack.empty()) {
    Frame& frame = stack.back();
    const Expr* node = frame.node;
    if (!frame.becomes && frame.next < node->args().size()) {
      const Expr* arg = node->arg(frame.next++);
      if (!is_done(arg)) stack.push_back({.node = arg});
      continue;
    }
    if (!frame.becomes) {
      args.clear();
      for (const Expr* arg : node->args()) args.push_back(result_of(arg));
      frame.becomes = apply_known(sym::rebuild(pool, node, args));
      if (frame.becomes != node && !is_done(frame.becomes) && frame.steps < kMaxSteps) {
        stack.push_back({.node = frame.becomes, .steps = frame.steps + 1});
        continue;
      }
    }
    bool follow = frame.becomes != node && is_done(frame.becomes);
    const Expr* result = follow ? result_of(frame.becomes) : frame.becomes;
    pool.state(node).simplified = result;
    pool.state(node).simplified_epoch = pool.facts_epoch;
    stack.pop_back();
  }
  return result_of(root);
}

const Expr* ShapeEnv::substitute(const Expr* root, const std::unordered_map<const Expr*, const Expr*>& map) {
  std::unordered_map<const Expr*, const Expr*> done = map;
  std::vector<const Expr*> args;
  sym::visit_post_order(
      root, [&](const Expr* e) { return done.contains(e); },
      [&](const Expr* e) {
        args.clear();
        for (const Expr* arg : e->args()) args.push_back(done.at(arg));
        done.emplace(e, sym::rebuild(*pool_, e, args));
      });
  return done.at(root);
}

SymInt ShapeEnv::substitute(const SymInt& value, const std::unordered_map<const Expr*, const Expr*>& map) {
  return value.is_symbolic() ? SymInt::from_expr(substitute(expr_of(value), map)) : value;
}

}  // namespace weft
