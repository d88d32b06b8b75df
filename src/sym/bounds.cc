#include "sym/analysis.h"
#include "sym/polynomial.h"
#include "weft/sym/shape_env.h"

namespace weft {
namespace sym {

ValueRange current_range(ExprPool& pool, const Expr* expr) {
  auto is_current = [&](const Expr* e) {
    return pool.state(e).range_epoch == pool.facts_epoch || e->args().empty();
  };
  visit_post_order(expr, is_current, [&](const Expr* e) {
    ValueRange fresh = propagate(*e, [&](const Expr* arg) { return pool.state(arg).range; });
    ExprPool::State& own = pool.state(e);
    // Both hold. They differ when simplification at the time knew more than the arguments' ranges say.
    own.range = intersect(own.range, fresh);
    own.range_epoch = pool.facts_epoch;
  });
  return pool.state(expr).range;
}

std::optional<BoundKey> bound_key(ExprPool& pool, const Expr* polynomial) {
  Polynomial p = polynomial_of(polynomial);
  if (p.terms.empty()) return std::nullopt;
  int64_t offset = std::exchange(p.constant, 0);
  int64_t sign = p.terms[0].coefficient < 0 ? -1 : 1;
  if (sign < 0) p = scaled(p, -1);
  return BoundKey{make(pool, p), sign, offset};
}

namespace {
// What the product of a common factor and the rest tells of b*n - n, that is n*(b - 1): more than its terms
// do.
ValueRange factored_range(ExprPool& pool, const Expr* polynomial) {
  constexpr ValueRange kAny = {ValueRange::kNegInf, ValueRange::kInf};
  Polynomial p = polynomial_of(polynomial);
  if (p.terms.size() < 2) return kAny;
  const int64_t constant = std::exchange(p.constant, 0);
  const Expr* common = common_monomial(pool, p, p);
  if (common->is_constant()) return kAny;
  const Expr* rest = make(pool, divide_by_monomial(pool, p, common));
  return current_range(pool, common) * known_range(pool, rest) + point(constant);
}
}  // namespace

ValueRange known_range(ExprPool& pool, const Expr* polynomial) {
  ValueRange range = intersect(current_range(pool, polynomial), factored_range(pool, polynomial));
  if (pool.bounds.empty()) return range;
  std::optional<BoundKey> key = bound_key(pool, polynomial);
  if (!key) return range;
  auto found = pool.bounds.find(key->key);
  if (found == pool.bounds.end()) return range;
  return intersect(range, point(key->sign) * found->second + point(key->offset));
}

}  // namespace sym

sym::ValueRange ShapeEnv::range(const sym::Expr* expr) const {
  return expr->type() == sym::Type::kInt ? sym::known_range(*pool_, expr) : sym::current_range(*pool_, expr);
}

}  // namespace weft
