#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/scalar/complex_pair.h"
#include "weft/base/dtype.h"
#include "weft/base/ref.h"

// The third use of a functor: called with expressions it yields its own formula, the code generator's input.
// Every node has a type of its own, and a value of that type: bool, an integer, f32 or f64. 16-bit floats are
// converted to f32 before they compute; complex numbers are pairs.
namespace weft::scalar {

// clang-format off
#define WEFT_SCALAR_UNARY(X)                                                                              \
  X(neg) X(abs) X(bit_not) X(logical_not) X(is_nan) X(is_infinite) X(exp) X(exp2) X(expm1) X(log) X(log2) \
  X(log10) X(log1p) X(sqrt) X(rsqrt) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) \
  X(asinh) X(acosh) X(atanh) X(sigmoid) X(erf) X(erfc) X(normal_cdf) X(floor) X(ceil) X(trunc) X(round)
#define WEFT_SCALAR_BINARY(X)                                                                             \
  X(add) X(sub) X(mul) X(div) X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(bit_and) X(bit_or) X(bit_xor)         \
  X(shift_left) X(shift_right) X(logical_and) X(logical_or) X(logical_xor) X(maximum) X(minimum)          \
  X(copysign) X(hypot) X(atan2) X(fmod) X(pow) X(floor_div) X(trunc_div) X(floor_mod) X(trunc_mod)
// clang-format on

enum class ScalarOp : uint8_t {
  kConstant,
  kInput,
  kParam,
  kConvert,  // to the node's type, as cpu::converter does
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
  DType dtype = DType::kFloat32;  // of the value; bool for masks
  Part part = Part::kWhole;
  uint8_t operand_count = 0;
  int index = 0;        // of an input or parameter
  double real = 0;      // of a constant of a floating-point type
  int64_t integer = 0;  // of any other constant
  uint64_t serial = 0;  // operands have smaller ones: sorting by it is a topological order
  Ref<const ScalarNode> operands[3];
};

// A shared, immutable expression.
class ScalarExpr {
 public:
  ScalarExpr() = default;
  // The number as `dtype` holds it.
  static ScalarExpr constant(double value, DType dtype);
  static ScalarExpr constant(int64_t value, DType dtype);
  static ScalarExpr input(int index, Part part, DType dtype);
  static ScalarExpr param(int index, Part part, DType dtype);
  static ScalarExpr call(ScalarOp op, DType dtype, std::span<const ScalarExpr> operands);
  // Converted to `dtype`; itself where it has that type.
  ScalarExpr converted(DType dtype) const;

  const ScalarNode& node() const { return *node_; }
  explicit operator bool() const { return static_cast<bool>(node_); }
  // "add(x0, mul(x1, p0))"; parts of complex leaves as "x0.re", conversions as "f32(x0)".
  std::string to_string() const;

 private:
  Ref<const ScalarNode> node_;
};

// The nodes of the expressions, each once, operands before users.
std::vector<const ScalarNode*> topological_order(std::span<const ScalarExpr> roots);

// The formula of a functor for one compute type. Inputs have the compute type, or bool for masks; parameters
// that of `param_dtype`. cpu::evaluate computes it.
struct ScalarFunction {
  std::vector<ScalarExpr> outputs;  // a complex output is two
  ScalarExpr error;                 // a mask: the result is refused where it holds; may be empty
};

// The formulas of a reduction for one compute type. Leaves count from 0: the accumulators are the first
// inputs, what else there is comes after them.
struct ReductionFormula {
  std::vector<DType> accumulators;
  std::vector<ScalarExpr> identity;  // of no leaf; a complex accumulator is two
  std::vector<ScalarExpr> step;     // of the accumulators, an element of the compute type and its index (i64)
  std::vector<ScalarExpr> combine;  // of the accumulators, and those of elements that come later
  std::vector<ScalarExpr>
      finish;  // of the accumulators; parameters: the count of elements, the correction (f64)
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
    return {ScalarExpr::call(ScalarOp::k_logical_not, DType::kBool, {&a.expr, 1})};
  }

 private:
  static MaskExpr make(ScalarOp op, const MaskExpr& a, const MaskExpr& b) {
    ScalarExpr operands[] = {a.expr, b.expr};
    return {ScalarExpr::call(op, DType::kBool, operands)};
  }
};

constexpr Category category_of(DType dtype) {
  if (dtype == DType::kBool) return Category::kBool;
  if (dtype == DType::kUInt8) return Category::kUnsigned;
  return dtype <= DType::kInt64 ? Category::kSigned : Category::kReal;
}

// Functions of expressions do not depend on the type: one copy of each serves all functors.
ScalarExpr unary_expr(ScalarOp op, DType dtype, const ScalarExpr& a);
ScalarExpr binary_expr(ScalarOp op, DType dtype, const ScalarExpr& a, const ScalarExpr& b);
ScalarExpr where_expr(DType dtype, const MaskExpr& mask, const ScalarExpr& a, const ScalarExpr& b);
ScalarExpr extreme_expr(DType dtype, bool highest);

template <DType dtype_>
struct Expr {
  static constexpr DType kDType = dtype_;
  static constexpr Category kCategory = category_of(dtype_);
  using Mask = MaskExpr;
  ScalarExpr expr;

  Expr() = default;
  explicit Expr(ScalarExpr expr) : expr(std::move(expr)) {}
  explicit Expr(std::floating_point auto value)
      : expr(ScalarExpr::constant(static_cast<double>(value), kDType)) {}
  explicit Expr(std::integral auto value) : expr(ScalarExpr::constant(static_cast<int64_t>(value), kDType)) {}

  // clang-format off
#define WEFT_X(symbol, name)                                        \
  friend Expr operator symbol(const Expr& a, const Expr& b) {       \
    return Expr(binary_expr(ScalarOp::k_##name, kDType, a.expr, b.expr)); \
  }
  WEFT_X(+, add) WEFT_X(-, sub) WEFT_X(*, mul) WEFT_X(/, div) WEFT_X(&, bit_and) WEFT_X(|, bit_or)
  WEFT_X(^, bit_xor)
#undef WEFT_X
#define WEFT_X(symbol, name)                                                   \
  friend MaskExpr operator symbol(const Expr& a, const Expr& b) {              \
    return {binary_expr(ScalarOp::k_##name, DType::kBool, a.expr, b.expr)};    \
  }
  WEFT_X(==, eq) WEFT_X(!=, ne) WEFT_X(<, lt) WEFT_X(<=, le) WEFT_X(>, gt) WEFT_X(>=, ge)
#undef WEFT_X
#define WEFT_X(name) \
  friend Expr name(const Expr& a) { return Expr(unary_expr(ScalarOp::k_##name, kDType, a.expr)); }
  WEFT_X(abs) WEFT_X(exp) WEFT_X(exp2) WEFT_X(expm1) WEFT_X(log) WEFT_X(log2) WEFT_X(log10) WEFT_X(log1p)
  WEFT_X(sqrt) WEFT_X(rsqrt) WEFT_X(sin) WEFT_X(cos) WEFT_X(tan) WEFT_X(asin) WEFT_X(acos) WEFT_X(atan)
  WEFT_X(sinh) WEFT_X(cosh) WEFT_X(tanh) WEFT_X(asinh) WEFT_X(acosh) WEFT_X(atanh) WEFT_X(sigmoid)
  WEFT_X(erf) WEFT_X(erfc) WEFT_X(normal_cdf) WEFT_X(floor) WEFT_X(ceil) WEFT_X(trunc) WEFT_X(round)
#undef WEFT_X
#define WEFT_X(name)                                                      \
  friend Expr name(const Expr& a, const Expr& b) {                        \
    return Expr(binary_expr(ScalarOp::k_##name, kDType, a.expr, b.expr)); \
  }
  WEFT_X(maximum) WEFT_X(minimum) WEFT_X(copysign) WEFT_X(hypot) WEFT_X(atan2) WEFT_X(fmod) WEFT_X(pow)
  WEFT_X(floor_div) WEFT_X(trunc_div) WEFT_X(floor_mod) WEFT_X(trunc_mod) WEFT_X(shift_left)
  WEFT_X(shift_right)
#undef WEFT_X
#define WEFT_X(name) \
  friend MaskExpr name(const Expr& a) { return {unary_expr(ScalarOp::k_##name, DType::kBool, a.expr)}; }
  WEFT_X(is_nan) WEFT_X(is_infinite)
#undef WEFT_X
      // clang-format on

      friend Expr
      operator-(const Expr& a) {
    return Expr(unary_expr(ScalarOp::k_neg, kDType, a.expr));
  }
  friend Expr operator~(const Expr& a) { return Expr(unary_expr(ScalarOp::k_bit_not, kDType, a.expr)); }
  friend Expr conj(const Expr& a) { return a; }
  friend Expr real(const Expr& a) { return a; }
  friend Expr where(const MaskExpr& mask, const Expr& a, const Expr& b) {
    return Expr(where_expr(kDType, mask, a.expr, b.expr));
  }
  // Rounded to a 16-bit type and back.
  friend Expr rounded_to_half(const Expr& a) {
    return Expr(a.expr.converted(DType::kFloat16).converted(kDType));
  }
  friend Expr rounded_to_bfloat16(const Expr& a) {
    return Expr(a.expr.converted(DType::kBFloat16).converted(kDType));
  }
  friend Expr lowest(const Expr&) { return Expr(extreme_expr(kDType, false)); }
  friend Expr highest(const Expr&) { return Expr(extreme_expr(kDType, true)); }
};

}  // namespace weft::scalar
