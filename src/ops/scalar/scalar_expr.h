#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/scalar/complex_pair.h"
#include "weft/base/ref.h"

// The third use of a functor: called with expressions it yields its own formula, the code generator's input.
namespace weft::scalar {

#define WEFT_SCALAR_UNARY(X)                                                                           \
  X(neg)                                                                                               \
  X(abs)                                                                                               \
  X(bit_not) X(logical_not) X(is_nan) X(is_infinite) X(exp) X(exp2) X(expm1) X(log) X(log2) X(log10)   \
      X(log1p) X(sqrt) X(rsqrt) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh)   \
          X(asinh) X(acosh) X(atanh) X(sigmoid) X(erf) X(erfc) X(normal_cdf) X(floor) X(ceil) X(trunc) \
              X(round)
#define WEFT_SCALAR_BINARY(X)                                                                         \
  X(add)                                                                                              \
  X(sub)                                                                                              \
  X(mul) X(div) X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(bit_and) X(bit_or) X(bit_xor) X(logical_and)    \
      X(logical_or) X(logical_xor) X(maximum) X(minimum) X(copysign) X(hypot) X(atan2) X(fmod) X(pow) \
          X(floor_div) X(trunc_div) X(floor_mod) X(trunc_mod)

enum class ScalarOp : uint8_t {
  kConstant,
  kInput,
  kParam,
#define WEFT_X(name) k_##name,
  WEFT_SCALAR_UNARY(WEFT_X) WEFT_SCALAR_BINARY(WEFT_X)
#undef WEFT_X
      k_where,
};
std::string_view op_name(ScalarOp op);

// Which part of a complex input or parameter a leaf is.
enum class Part : uint8_t { kWhole, kReal, kImaginary };

struct ScalarNode : RefCounted {
  ScalarOp op = ScalarOp::kConstant;
  Category category = Category::kReal;  // of the result; kBool for masks too
  Part part = Part::kWhole;
  uint8_t operand_count = 0;
  int index = 0;        // of an input or parameter
  double value = 0;     // of a constant
  uint64_t serial = 0;  // operands have smaller ones: sorting by it is a topological order
  Ref<const ScalarNode> operands[3];
};

// A shared, immutable expression.
class ScalarExpr {
 public:
  ScalarExpr() = default;
  static ScalarExpr constant(double value, Category category);
  static ScalarExpr input(int index, Part part, Category category);
  static ScalarExpr param(int index, Part part, Category category);
  static ScalarExpr call(ScalarOp op, Category category, std::span<const ScalarExpr> operands);

  const ScalarNode& node() const { return *node_; }
  explicit operator bool() const { return static_cast<bool>(node_); }
  // "add(x0, mul(x1, p0))"; parts of complex leaves as "x0.re".
  std::string to_string() const;

 private:
  Ref<const ScalarNode> node_;
};

// The nodes of the expressions, each once, operands before users.
std::vector<const ScalarNode*> topological_order(std::span<const ScalarExpr> roots);

// The value in double precision; masks are 0 and 1. Complex inputs and parameters are two consecutive
// numbers.
double evaluate(const ScalarExpr& expr, std::span<const double> inputs, std::span<const double> params);

// The formula of a functor for one kind of number.
struct ScalarFunction {
  std::vector<ScalarExpr> outputs;  // a complex output is two
  ScalarExpr error;                 // a mask: the result is refused where it holds; may be empty
};

// ---- the algebra's value types over expressions -----------------------------------------------------------

struct MaskExpr {
  ScalarExpr expr;
  friend MaskExpr operator&(const MaskExpr& a, const MaskExpr& b) {
    return make(ScalarOp::k_logical_and, a, b);
  }
  friend MaskExpr operator|(const MaskExpr& a, const MaskExpr& b) {
    return make(ScalarOp::k_logical_or, a, b);
  }
  friend MaskExpr operator^(const MaskExpr& a, const MaskExpr& b) {
    return make(ScalarOp::k_logical_xor, a, b);
  }
  friend MaskExpr operator!=(const MaskExpr& a, const MaskExpr& b) { return a ^ b; }
  friend MaskExpr operator==(const MaskExpr& a, const MaskExpr& b) { return !(a ^ b); }
  friend MaskExpr operator!(const MaskExpr& a) {
    return {ScalarExpr::call(ScalarOp::k_logical_not, Category::kBool, {&a.expr, 1})};
  }

 private:
  static MaskExpr make(ScalarOp op, const MaskExpr& a, const MaskExpr& b) {
    ScalarExpr operands[] = {a.expr, b.expr};
    return {ScalarExpr::call(op, Category::kBool, operands)};
  }
};

template <Category category_>
struct Expr {
  static constexpr Category kCategory = category_;
  using Mask = MaskExpr;
  ScalarExpr expr;

  Expr() = default;
  explicit Expr(ScalarExpr expr) : expr(std::move(expr)) {}
  explicit Expr(double value) : expr(ScalarExpr::constant(value, kCategory)) {}

  static Expr make(ScalarOp op, const Expr& a) { return Expr(ScalarExpr::call(op, kCategory, {&a.expr, 1})); }
  static Expr make(ScalarOp op, const Expr& a, const Expr& b) {
    ScalarExpr operands[] = {a.expr, b.expr};
    return Expr(ScalarExpr::call(op, kCategory, operands));
  }
  static MaskExpr compare(ScalarOp op, const Expr& a, const Expr& b) {
    ScalarExpr operands[] = {a.expr, b.expr};
    return {ScalarExpr::call(op, Category::kBool, operands)};
  }

#define WEFT_X(symbol, name) \
  friend Expr operator symbol(const Expr& a, const Expr& b) { return make(ScalarOp::k_##name, a, b); }
  WEFT_X(+, add)
  WEFT_X(-, sub)
  WEFT_X(*, mul) WEFT_X(/, div) WEFT_X(&, bit_and) WEFT_X(|, bit_or) WEFT_X(^, bit_xor)
#undef WEFT_X
#define WEFT_X(symbol, name) \
  friend MaskExpr operator symbol(const Expr& a, const Expr& b) { return compare(ScalarOp::k_##name, a, b); }
      WEFT_X(==, eq) WEFT_X(!=, ne) WEFT_X(<, lt) WEFT_X(<=, le) WEFT_X(>, gt) WEFT_X(>=, ge)
#undef WEFT_X
          friend Expr
          operator-(const Expr& a) {
    return make(ScalarOp::k_neg, a);
  }
  friend Expr operator~(const Expr& a) { return make(ScalarOp::k_bit_not, a); }

#define WEFT_X(name) \
  friend Expr name(const Expr& a) { return make(ScalarOp::k_##name, a); }
  WEFT_X(abs)
  WEFT_X(exp)
  WEFT_X(exp2) WEFT_X(expm1) WEFT_X(log) WEFT_X(log2) WEFT_X(log10) WEFT_X(log1p) WEFT_X(sqrt) WEFT_X(rsqrt)
      WEFT_X(sin) WEFT_X(cos) WEFT_X(tan) WEFT_X(asin) WEFT_X(acos) WEFT_X(atan) WEFT_X(sinh) WEFT_X(cosh)
          WEFT_X(tanh) WEFT_X(asinh) WEFT_X(acosh) WEFT_X(atanh) WEFT_X(sigmoid) WEFT_X(erf) WEFT_X(erfc)
              WEFT_X(normal_cdf) WEFT_X(floor) WEFT_X(ceil) WEFT_X(trunc) WEFT_X(round)
#undef WEFT_X
#define WEFT_X(name) \
  friend Expr name(const Expr& a, const Expr& b) { return make(ScalarOp::k_##name, a, b); }
                  WEFT_X(maximum) WEFT_X(minimum) WEFT_X(copysign) WEFT_X(hypot) WEFT_X(atan2) WEFT_X(fmod)
                      WEFT_X(pow) WEFT_X(floor_div) WEFT_X(trunc_div) WEFT_X(floor_mod) WEFT_X(trunc_mod)
#undef WEFT_X
                          friend MaskExpr is_nan(const Expr& a) {
    return {ScalarExpr::call(ScalarOp::k_is_nan, Category::kBool, {&a.expr, 1})};
  }
  friend MaskExpr is_infinite(const Expr& a) {
    return {ScalarExpr::call(ScalarOp::k_is_infinite, Category::kBool, {&a.expr, 1})};
  }
  friend Expr conj(const Expr& a) { return a; }
  friend Expr real(const Expr& a) { return a; }
  friend Expr where(const MaskExpr& mask, const Expr& a, const Expr& b) {
    ScalarExpr operands[] = {mask.expr, a.expr, b.expr};
    return Expr(ScalarExpr::call(ScalarOp::k_where, kCategory, operands));
  }
};

}  // namespace weft::scalar
