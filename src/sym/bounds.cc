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

ValueRange known_range(ExprPool& pool, const Expr* polynomial) {
  ValueRange range = current_range(pool, polynomial);
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
