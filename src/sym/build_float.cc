#include <array>

#include "sym/analysis.h"
#include "sym/build.h"
#include "weft/base/error.h"

namespace weft::sym {
namespace {

// The node, or its value when the arguments are constants.
const Expr* make_or_fold(ExprPool& pool, Kind kind, Type type, std::span<const Expr* const> args) {
  const Expr* node = pool.make(kind, type, args);
  for (const Expr* arg : args)
    if (!arg->is_constant()) return node;
  std::optional<Number> value = pool.state(node).hint;
  if (!value.has_value()) fail("{} has no value; check its arguments first", node->to_string());
  if (type == Type::kInt) return pool.constant(std::get<int64_t>(*value));
  if (type == Type::kBool) return pool.boolean(std::get<bool>(*value));
  return pool.real(std::get<double>(*value));
}

bool is_commutative(Kind kind) {
  return kind == Kind::kFloatAdd || kind == Kind::kFloatMul || kind == Kind::kEq || kind == Kind::kNe;
}

const Expr* binary_node(ExprPool& pool, Kind kind, Type type, const Expr* a, const Expr* b) {
  if (is_commutative(kind) && b->id() < a->id()) std::swap(a, b);
  return make_or_fold(pool, kind, type, std::array{a, b});
}

}  // namespace

const Expr* to_float(ExprPool& pool, const Expr* a) {
  return make_or_fold(pool, Kind::kToFloat, Type::kFloat, std::array{a});
}

const Expr* int_true_div(ExprPool& pool, const Expr* a, const Expr* b) {
  if (!(!b->is_constant() || b->value() != 0)) fail("division of the size {} by zero", a->to_string());
  return make_or_fold(pool, Kind::kIntTrueDiv, Type::kFloat, std::array{a, b});
}

const Expr* float_op(ExprPool& pool, Kind kind, const Expr* a, const Expr* b) {
  return binary_node(pool, kind, Type::kFloat, a, b);
}

const Expr* float_sqrt(ExprPool& pool, const Expr* a) {
  return make_or_fold(pool, Kind::kSqrt, Type::kFloat, std::array{a});
}

const Expr* float_compare(ExprPool& pool, Kind kind, const Expr* a, const Expr* b) {
  return binary_node(pool, kind, Type::kBool, a, b);
}

const Expr* to_integer(ExprPool& pool, Kind kind, const Expr* a) {
  // An integer that became a float and comes back is itself.
  if (a->kind() == Kind::kToFloat) return a->arg(0);
  return make_or_fold(pool, kind, Type::kInt, std::array{a});
}

}  // namespace weft::sym
