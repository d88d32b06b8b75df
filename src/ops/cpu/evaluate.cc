#include "ops/cpu/evaluate.h"

#include <cstring>
#include <unordered_map>

#include "ops/cpu/convert.h"
#include "ops/cpu/pointwise_kernels.h"
#include "weft/base/error.h"

namespace weft::cpu {
namespace {

using scalar::Part;
using scalar::ScalarExpr;
using scalar::ScalarNode;
using scalar::ScalarOp;

// The kernel whose functor is this one operation.
const PointwiseKernel& kernel_of(ScalarOp op) {
  switch (op) {
#define WEFT_X(name, kernel) \
  case ScalarOp::k_##name:   \
    return kernel;
    // clang-format off
    WEFT_X(neg, kNeg) WEFT_X(abs, kAbs) WEFT_X(bit_not, kBitwiseNot) WEFT_X(logical_not, kLogicalNot)
    WEFT_X(is_nan, kIsNan) WEFT_X(is_infinite, kIsInfinite) WEFT_X(exp, kExp) WEFT_X(exp2, kExp2)
    WEFT_X(expm1, kExpm1) WEFT_X(log, kLog) WEFT_X(log2, kLog2) WEFT_X(log10, kLog10) WEFT_X(log1p, kLog1p)
    WEFT_X(sqrt, kSqrt) WEFT_X(rsqrt, kRsqrt) WEFT_X(sin, kSin) WEFT_X(cos, kCos) WEFT_X(tan, kTan)
    WEFT_X(asin, kAsin) WEFT_X(acos, kAcos) WEFT_X(atan, kAtan) WEFT_X(sinh, kSinh) WEFT_X(cosh, kCosh)
    WEFT_X(tanh, kTanh) WEFT_X(asinh, kAsinh) WEFT_X(acosh, kAcosh) WEFT_X(atanh, kAtanh)
    WEFT_X(sigmoid, kSigmoid) WEFT_X(erf, kErf) WEFT_X(erfc, kErfc) WEFT_X(normal_cdf, kNormalCdf)
    WEFT_X(floor, kFloor) WEFT_X(ceil, kCeil) WEFT_X(trunc, kTrunc) WEFT_X(round, kRound)
    WEFT_X(add, kAdd) WEFT_X(sub, kSub) WEFT_X(mul, kMul) WEFT_X(div, kDiv) WEFT_X(eq, kEq) WEFT_X(ne, kNe)
    WEFT_X(lt, kLt) WEFT_X(le, kLe) WEFT_X(gt, kGt) WEFT_X(ge, kGe) WEFT_X(bit_and, kBitwiseAnd)
    WEFT_X(bit_or, kBitwiseOr) WEFT_X(bit_xor, kBitwiseXor) WEFT_X(shift_left, kShiftLeft)
    WEFT_X(shift_right, kShiftRight) WEFT_X(logical_and, kLogicalAnd) WEFT_X(logical_or, kLogicalOr)
    WEFT_X(logical_xor, kLogicalXor) WEFT_X(maximum, kMaximum) WEFT_X(minimum, kMinimum)
    WEFT_X(copysign, kCopySign) WEFT_X(hypot, kHypot) WEFT_X(atan2, kAtan2) WEFT_X(fmod, kFmod)
    WEFT_X(pow, kPow) WEFT_X(floor_div, kDivFloor) WEFT_X(trunc_div, kDivTrunc) WEFT_X(floor_mod, kRemainder)
    WEFT_X(trunc_mod, kFmod) WEFT_X(where, kWhere)
    // clang-format on
#undef WEFT_X
                                                                      case ScalarOp::kConstant:
  case ScalarOp::kInput:
  case ScalarOp::kParam:
  case ScalarOp::kConvert:
    break;
  }
  invariant(false, "{} is no operation", op_name(op));
  __builtin_unreachable();
}

class Evaluation {
 public:
  Evaluation(int64_t n, const Leaves& leaves) : n_(n), leaves_(leaves) {}

  void run(const ScalarNode& node) {
    std::vector<char>& values = values_[&node];
    values.resize(static_cast<size_t>(n_ * item_size(node.dtype)));
    if (node.op == ScalarOp::kConstant) repeat(values, constant_bytes(node));
    else if (node.op == ScalarOp::kInput) take(values, node, leaves_.inputs, n_);
    else if (node.op == ScalarOp::kParam) repeat(values, param_bytes(node));
    else if (node.op == ScalarOp::kConvert) convert(values, node);
    else apply(values, node);
  }
  const std::vector<char>& values(const ScalarNode& node) const { return values_.at(&node); }

 private:
  std::vector<char> constant_bytes(const ScalarNode& node) const {
    std::vector<char> bytes(static_cast<size_t>(item_size(node.dtype)));
    const bool is_real = node.dtype > DType::kInt64;
    write_param(bytes.data(), is_real ? ParamValue(node.real) : ParamValue(node.integer), node.dtype);
    return bytes;
  }
  std::vector<char> param_bytes(const ScalarNode& node) const {
    std::vector<char> bytes(static_cast<size_t>(item_size(node.dtype)));
    take(bytes, node, leaves_.params, 1);
    return bytes;
  }
  void repeat(std::vector<char>& values, const std::vector<char>& one) const {
    for (size_t i = 0; i < values.size(); i += one.size()) std::memcpy(&values[i], one.data(), one.size());
  }
  // Elements of a leaf's array; of complex ones, a part.
  void take(std::vector<char>& values, const ScalarNode& node, std::span<const char* const> arrays,
            int64_t n) const {
    const auto item = static_cast<size_t>(item_size(node.dtype));
    const size_t step = node.part == Part::kWhole ? item : 2 * item;
    const char* from =
        arrays[static_cast<size_t>(node.index)] + (node.part == Part::kImaginary ? item : size_t{0});
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) std::memcpy(&values[i * item], from + i * step, item);
  }
  void convert(std::vector<char>& to, const ScalarNode& node) {
    const ScalarNode& operand = *node.operands[0];
    char* pointers[] = {to.data(), values_.at(&operand).data()};
    converter(node.dtype, operand.dtype)(n_, pointers, nullptr);
  }
  void apply(std::vector<char>& to, const ScalarNode& node) {
    const PointwiseKernel& kernel = kernel_of(node.op);
    const DType compute = node.operands[node.op == ScalarOp::k_where ? 1 : 0]->dtype;
    Loop loop = active_table(kernel.loops).loops[static_cast<int>(compute)];
    invariant(loop, "{} has no loop for {}", op_name(node.op), dtype_name(compute));
    char* pointers[kMaxOperands] = {to.data()};
    for (int k = 0; k < node.operand_count; ++k) pointers[k + 1] = values_.at(node.operands[k].get()).data();
    loop(n_, pointers, nullptr);
  }

  int64_t n_;
  const Leaves& leaves_;
  std::unordered_map<const ScalarNode*, std::vector<char>> values_;
};

}  // namespace

std::vector<std::vector<char>> evaluate(std::span<const ScalarExpr> roots, int64_t n, const Leaves& leaves) {
  Evaluation evaluation(n, leaves);
  for (const ScalarNode* node : scalar::topological_order(roots)) evaluation.run(*node);
  std::vector<std::vector<char>> results;
  for (const ScalarExpr& root : roots) results.push_back(evaluation.values(root.node()));
  return results;
}

}  // namespace weft::cpu
