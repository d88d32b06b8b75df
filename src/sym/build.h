#pragma once

#include "sym/expr_pool.h"

// Constructors of expressions: each gives the normal form of its result.
namespace weft::sym {

// Integers
const Expr* add(ExprPool& pool, const Expr* a, const Expr* b);
const Expr* subtract(ExprPool& pool, const Expr* a, const Expr* b);
const Expr* multiply(ExprPool& pool, const Expr* a, const Expr* b);
const Expr* sum(ExprPool& pool, std::span<const Expr* const> terms);
const Expr* floor_div(ExprPool& pool, const Expr* a, const Expr* b);
const Expr* mod(ExprPool& pool, const Expr* a, const Expr* b);
const Expr* minimum(ExprPool& pool, std::span<const Expr* const> args);
const Expr* maximum(ExprPool& pool, std::span<const Expr* const> args);
const Expr* power(ExprPool& pool, const Expr* base, const Expr* exponent);
const Expr* where(ExprPool& pool, const Expr* condition, const Expr* a, const Expr* b);

// The sign of a - b when its constant does not fit into int64, as for `n - 2` against INT64_MAX; 0 when it
// fits. Sizes are int64, so such a sign decides any comparison.
int difference_overflow(const Expr* a, const Expr* b);

// Truth values; `p` is an integer expression that is compared with 0.
const Expr* equal_zero(ExprPool& pool, const Expr* p);
const Expr* not_equal_zero(ExprPool& pool, const Expr* p);
const Expr* less_zero(ExprPool& pool, const Expr* p);
const Expr* less_equal_zero(ExprPool& pool, const Expr* p);
const Expr* compare(ExprPool& pool, Kind kind, const Expr* a, const Expr* b);
// The same, held, and whatever is known of a and b. A truth value where no symbol is left.
const Expr* open_compare(ExprPool& pool, Kind kind, const Expr* a, const Expr* b);
const Expr* logical_and(ExprPool& pool, std::span<const Expr* const> args);
const Expr* logical_or(ExprPool& pool, std::span<const Expr* const> args);
const Expr* logical_not(ExprPool& pool, const Expr* a);
// The condition as it is, whatever is known; `released` takes the mark off again, at any depth.
const Expr* held(ExprPool& pool, const Expr* condition);
const Expr* released(ExprPool& pool, const Expr* condition);

// Floats, and between floats and integers
const Expr* to_float(ExprPool& pool, const Expr* a);
const Expr* int_true_div(ExprPool& pool, const Expr* a, const Expr* b);
const Expr* float_op(ExprPool& pool, Kind kind, const Expr* a, const Expr* b);
const Expr* float_sqrt(ExprPool& pool, const Expr* a);
const Expr* float_compare(ExprPool& pool, Kind kind, const Expr* a, const Expr* b);
const Expr* to_integer(ExprPool& pool, Kind kind, const Expr* a);

// The node `expr` with other arguments, in normal form again.
const Expr* rebuild(ExprPool& pool, const Expr* expr, std::span<const Expr* const> args);

}  // namespace weft::sym
