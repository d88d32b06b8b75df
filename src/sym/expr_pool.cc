#include "sym/expr_pool.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "sym/analysis.h"
#include "weft/sym/shape_env.h"

namespace weft {
namespace sym {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32);
}

}  // namespace

ShapeEnv* Expr::env() const { return pool_->env(); }

const Expr* ExprPool::real(double value) {
  // Infinities that cancel give a NaN of another sign than the one that is written.
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  return make(Kind::kConstant, Type::kFloat, {}, {}, std::bit_cast<int64_t>(value));
}

bool ExprPool::Equal::operator()(const Parts& a, const Expr* b) const {
  return a.kind == b->kind() && a.type == b->type() && a.value == b->value() &&
         std::ranges::equal(a.args, b->args()) && std::ranges::equal(a.coefficients, b->coefficients());
}

template <typename T>
const T* ExprPool::store(std::span<const T> values) {
  if (values.empty()) return nullptr;
  void* memory = arena_.allocate(values.size_bytes(), alignof(T));
  std::memcpy(memory, values.data(), values.size_bytes());
  return static_cast<const T*>(memory);
}

Expr* ExprPool::allocate(const Parts& parts) {
  static_assert(std::is_trivially_destructible_v<Expr>);
  Expr* expr = new (arena_.allocate(sizeof(Expr), alignof(Expr))) Expr();
  expr->kind_ = parts.kind;
  expr->type_ = parts.type;
  expr->has_unbacked_ = std::ranges::any_of(parts.args, [](const Expr* e) { return e->has_unbacked(); });
  expr->arg_count_ = static_cast<uint32_t>(parts.args.size());
  expr->id_ = static_cast<uint32_t>(states_.size());
  expr->hash_ = parts.hash;
  expr->pool_ = this;
  expr->value_ = parts.value;
  expr->args_ = store(parts.args);
  expr->coefficients_ = store(parts.coefficients);
  states_.push_back({.expr = expr});
  nodes_.insert(expr);
  return expr;
}

const Expr* ExprPool::make(Kind kind, Type type, std::span<const Expr* const> args,
                           std::span<const int64_t> coefficients, int64_t value) {
  uint64_t hash = mix(static_cast<uint64_t>(kind) * 4 + static_cast<uint64_t>(type), value);
  for (const Expr* arg : args) hash = mix(hash, reinterpret_cast<uintptr_t>(arg));
  for (int64_t coefficient : coefficients) hash = mix(hash, coefficient);
  Parts parts{kind, type, args, coefficients, value, hash};
  if (auto found = nodes_.find(parts); found != nodes_.end()) return *found;
  const Expr* expr = allocate(parts);
  State& own = state(expr);
  // Arguments have ranges and hints already: each node costs its own arguments only.
  own.range = propagate(*expr, [&](const Expr* arg) { return state(arg).range; });
  own.hint = fold(*expr, [&](const Expr* arg) -> const std::optional<Number>& { return state(arg).hint; });
  return expr;
}

const Expr* ExprPool::symbol(int64_t index, Type type, bool unbacked, const ValueRange& range,
                             const std::optional<Number>& hint) {
  Parts parts{Kind::kSymbol, type, {}, {}, index, mix(~uint64_t{0}, index)};
  Expr* expr = allocate(parts);
  expr->has_unbacked_ = unbacked;
  State& own = state(expr);
  own.range = range;
  own.hint = hint;
  own.hint_epoch = hint_epoch;
  return expr;
}

void ExprPool::forget(const Expr* symbol, std::string name) {
  state(symbol).is_forgotten = true;
  nodes_.erase(symbol);
  forgotten_names.emplace(symbol, std::move(name));
}

void ExprPool::revise() {
  ++facts_epoch;
  ++hint_epoch;
  auto is_forgotten = [&](const Expr* arg) { return state(arg).is_forgotten; };
  // Children come before parents.
  for (State& own : states_) {
    const Expr& expr = *own.expr;
    if (own.is_forgotten || expr.args().empty()) continue;
    if (std::ranges::any_of(expr.args(), is_forgotten)) {
      own.is_forgotten = true;
      nodes_.erase(&expr);
    } else {
      own.range = propagate(expr, [&](const Expr* arg) { return state(arg).range; });
    }
  }
}

// Plain integers that a SymInt cannot hold in its bits belong to no environment and are never freed: there
// are few of them (sentinels such as INT64_MIN).
const Expr* detail::big_constant(int64_t value) {
  static std::mutex mutex;
  static ExprPool* pool = new ExprPool(nullptr);
  std::lock_guard lock(mutex);
  return pool->constant(value);
}

void detail::retain(const Expr* expr) noexcept {
  if (ShapeEnv* env = expr->env()) env->add_ref();
}

void detail::release(const Expr* expr) noexcept {
  if (ShapeEnv* env = expr->env(); env && env->drop_ref()) ShapeEnv::release_last(env);
}

ShapeEnv* detail::env_of(const Expr* expr) noexcept { return expr->env(); }

}  // namespace sym
}  // namespace weft
