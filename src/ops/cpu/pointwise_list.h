#pragma once

#include <cstdint>

#include "weft/base/dtype.h"

// Every pointwise kernel. To add one: write its functor in ops/scalar/<family>.h and one line here,
//   X(kernel constant, ATen's name, functor, inputs, params, compute types)
// in the family whose file (isa/pointwise_<family>.cc) includes that header.
namespace weft::cpu {

// Sets of compute types.
constexpr uint16_t dtype_bit(DType t) { return static_cast<uint16_t>(1u << static_cast<int>(t)); }
inline constexpr uint16_t kBooleans = dtype_bit(DType::kBool);
inline constexpr uint16_t kIntegers = dtype_bit(DType::kUInt8) | dtype_bit(DType::kInt8) |
                                      dtype_bit(DType::kInt16) | dtype_bit(DType::kInt32) |
                                      dtype_bit(DType::kInt64);
inline constexpr uint16_t kFloats = dtype_bit(DType::kFloat16) | dtype_bit(DType::kBFloat16) |
                                    dtype_bit(DType::kFloat32) | dtype_bit(DType::kFloat64);
inline constexpr uint16_t kFloat16s = dtype_bit(DType::kFloat16);
inline constexpr uint16_t kBFloat16s = dtype_bit(DType::kBFloat16);
inline constexpr uint16_t kComplexes = dtype_bit(DType::kComplex64) | dtype_bit(DType::kComplex128);
inline constexpr uint16_t kReals = kIntegers | kFloats;
inline constexpr uint16_t kFloatsOrComplex = kFloats | kComplexes;
inline constexpr uint16_t kNumbers = kReals | kComplexes;
inline constexpr uint16_t kOrdered = kBooleans | kReals;
inline constexpr uint16_t kAllTypes = kBooleans | kNumbers;

}  // namespace weft::cpu

// clang-format off
// add, sub without alpha are what alpha = 1 means: a multiplication by complex one would spoil infinities.
#define WEFT_POINTWISE_ARITHMETIC(X)                                              \
  X(kAdd, "add", Add, 2, 0, kAllTypes)                                                 \
  X(kAddAlpha, "add", Add, 2, 1, kAllTypes)                                            \
  X(kSub, "sub", Sub, 2, 0, kNumbers)                                             \
  X(kSubAlpha, "sub", Sub, 2, 1, kNumbers)                                        \
  X(kMul, "mul", Mul, 2, 0, kAllTypes)                                                 \
  X(kDiv, "div", Div, 2, 0, kFloatsOrComplex)                                     \
  X(kNeg, "neg", Neg, 1, 0, kNumbers)                                             \
  X(kAbs, "abs", Abs, 1, 0, kAllTypes)                                                 \
  X(kSign, "sign", Sign, 1, 0, kOrdered)                                          \
  X(kSquare, "square", Square, 1, 0, kNumbers)                                    \
  X(kCube, "cube", Cube, 1, 0, kComplexes)                                         \
  X(kInverseSquare, "inverse_square", InverseSquare, 1, 0, kComplexes)                       \
  X(kSquaredDifference, "squared_difference", SquaredDifference, 2, 0, kFloatsOrComplex) \
  X(kReciprocal, "reciprocal", Reciprocal, 1, 0, kFloatsOrComplex)                \
  X(kConj, "conj", Conj, 1, 0, kComplexes)                                        \
  X(kReal, "real", RealPart, 1, 0, kComplexes)                                    \
  X(kMaximum, "maximum", Maximum, 2, 0, kOrdered)                                 \
  X(kMinimum, "minimum", Minimum, 2, 0, kOrdered)                                 \
  X(kClampMin, "clamp_min", Maximum, 1, 1, kOrdered)                              \
  X(kClampMax, "clamp_max", Minimum, 1, 1, kOrdered)                              \
  X(kClamp, "clamp", Clamp, 1, 2, kOrdered)                                       \
  X(kClampTensor, "clamp", Clamp, 3, 0, kOrdered)                                 \
  X(kLerp, "lerp", Lerp, 3, 0, kFloatsOrComplex)                                  \
  X(kLerpScalar, "lerp", Lerp, 2, 1, kFloatsOrComplex)                            \
  X(kAddCMul, "addcmul", AddCMul, 3, 1, kNumbers)                                 \
  X(kAddCDiv, "addcdiv", AddCDiv, 3, 1, kFloatsOrComplex)

#define WEFT_POINTWISE_DIVISION(X)                                                \
  X(kDivFloor, "div_floor", DivFloor, 2, 0, kReals)                               \
  X(kDivTrunc, "div_trunc", DivTrunc, 2, 0, kReals)                               \
  X(kRemainder, "remainder", Remainder, 2, 0, kReals)                             \
  X(kFmod, "fmod", Fmod, 2, 0, kReals)                                            \
  X(kDivFloorHalf, "div_floor_half", DivFloorHalf, 2, 0, kFloat16s)                    \
  X(kDivFloorBFloat16, "div_floor_bfloat16", DivFloorBFloat16, 2, 0, kBFloat16s)           \
  X(kDivTruncHalf, "div_trunc_half", DivTruncHalf, 2, 0, kFloat16s)                    \
  X(kDivTruncBFloat16, "div_trunc_bfloat16", DivTruncBFloat16, 2, 0, kBFloat16s)           \
  X(kPow, "pow", Pow, 2, 0, kNumbers)

#define WEFT_POINTWISE_ELEMENTARY(X)                                              \
  X(kExp, "exp", Exp, 1, 0, kFloatsOrComplex)                                     \
  X(kExp2, "exp2", Exp2, 1, 0, kFloatsOrComplex)                                           \
  X(kExpm1, "expm1", Expm1, 1, 0, kFloatsOrComplex)                               \
  X(kLog, "log", Log, 1, 0, kFloatsOrComplex)                                     \
  X(kLog2, "log2", Log2, 1, 0, kFloatsOrComplex)                                           \
  X(kLog10, "log10", Log10, 1, 0, kFloatsOrComplex)                                        \
  X(kLog1p, "log1p", Log1p, 1, 0, kFloatsOrComplex)                               \
  X(kSqrt, "sqrt", Sqrt, 1, 0, kFloatsOrComplex)                                  \
  X(kRsqrt, "rsqrt", Rsqrt, 1, 0, kFloatsOrComplex)                               \
  X(kSin, "sin", Sin, 1, 0, kFloatsOrComplex)                                     \
  X(kCos, "cos", Cos, 1, 0, kFloatsOrComplex)                                     \
  X(kTan, "tan", Tan, 1, 0, kFloatsOrComplex)                                     \
  X(kAsin, "asin", Asin, 1, 0, kFloats)                                           \
  X(kAcos, "acos", Acos, 1, 0, kFloats)                                           \
  X(kAtan, "atan", Atan, 1, 0, kFloats)                                           \
  X(kSinh, "sinh", Sinh, 1, 0, kFloatsOrComplex)                                  \
  X(kCosh, "cosh", Cosh, 1, 0, kFloatsOrComplex)                                  \
  X(kAsinh, "asinh", Asinh, 1, 0, kFloats)                                        \
  X(kAcosh, "acosh", Acosh, 1, 0, kFloats)                                        \
  X(kAtanh, "atanh", Atanh, 1, 0, kFloats)                                        \
  X(kErf, "erf", Erf, 1, 0, kFloats)                                              \
  X(kErfc, "erfc", Erfc, 1, 0, kFloats)                                           \
  X(kFloor, "floor", Floor, 1, 0, kReals)                                        \
  X(kCeil, "ceil", Ceil, 1, 0, kReals)                                           \
  X(kTrunc, "trunc", Trunc, 1, 0, kReals)                                        \
  X(kRound, "round", Round, 1, 0, kReals)                                        \
  X(kHypot, "hypot", Hypot, 2, 0, kFloats)                                        \
  X(kAtan2, "atan2", Atan2, 2, 0, kFloats)                                        \
  X(kCopySign, "copysign", CopySign, 2, 0, kFloats)

#define WEFT_POINTWISE_ACTIVATION(X)                                              \
  X(kTanh, "tanh", Tanh, 1, 0, kFloatsOrComplex)                                  \
  X(kTanhBackward, "tanh_backward", TanhBackward, 2, 0, kFloatsOrComplex)         \
  X(kSigmoid, "sigmoid", Sigmoid, 1, 0, kFloatsOrComplex)                         \
  X(kSigmoidBackward, "sigmoid_backward", SigmoidBackward, 2, 0, kFloatsOrComplex) \
  X(kRelu, "relu", Relu, 1, 0, kReals)                                            \
  X(kThreshold, "threshold", Threshold, 1, 2, kReals)                             \
  X(kThresholdBackward, "threshold_backward", ThresholdBackward, 2, 1, kReals)    \
  X(kHardtanhBackward, "hardtanh_backward", HardtanhBackward, 2, 2, kFloats)      \
  X(kHardsigmoid, "hardsigmoid", Hardsigmoid, 1, 0, kFloats)                      \
  X(kHardsigmoidBackward, "hardsigmoid_backward", HardsigmoidBackward, 2, 0, kFloats) \
  X(kHardswish, "hardswish", Hardswish, 1, 0, kFloats)                            \
  X(kHardswishBackward, "hardswish_backward", HardswishBackward, 2, 0, kFloats)   \
  X(kLeakyRelu, "leaky_relu", LeakyRelu, 1, 1, kFloats)                           \
  X(kLeakyReluBackward, "leaky_relu_backward", LeakyReluBackward, 2, 1, kFloats)  \
  X(kElu, "elu", Elu, 1, 3, kFloats)                                              \
  X(kEluBackward, "elu_backward", EluBackward, 2, 3, kFloats)                     \
  X(kEluBackwardOfResult, "elu_backward_of_result", EluBackwardOfResult, 2, 3, kFloats) \
  X(kSoftplus, "softplus", Softplus, 1, 2, kFloats)                               \
  X(kSoftplusBackward, "softplus_backward", SoftplusBackward, 2, 2, kFloats)      \
  X(kSilu, "silu", Silu, 1, 0, kFloatsOrComplex)                                  \
  X(kSiluBackward, "silu_backward", SiluBackward, 2, 0, kFloatsOrComplex)                  \
  X(kGelu, "gelu", Gelu, 1, 0, kFloats)                                           \
  X(kGeluBackward, "gelu_backward", GeluBackward, 2, 0, kFloats)                  \
  X(kGeluTanh, "gelu_tanh", GeluTanh, 1, 0, kFloats)                              \
  X(kGeluTanhBackward, "gelu_tanh_backward", GeluTanhBackward, 2, 0, kFloats)     \
  X(kNormalCdf, "normal_cdf", NormalCdf, 1, 0, kFloats)

// Logical operators compute in bool: converting an operand to bool is the comparison with zero.
#define WEFT_POINTWISE_COMPARISON(X)                                              \
  X(kSgn, "sgn", Sgn, 1, 0, kAllTypes)                                            \
  X(kEq, "eq", Eq, 2, 0, kAllTypes)                                                    \
  X(kNe, "ne", Ne, 2, 0, kAllTypes)                                                    \
  X(kLt, "lt", Lt, 2, 0, kOrdered)                                                \
  X(kLe, "le", Le, 2, 0, kOrdered)                                                \
  X(kGt, "gt", Gt, 2, 0, kOrdered)                                                \
  X(kGe, "ge", Ge, 2, 0, kOrdered)                                                \
  X(kIsNan, "isnan", IsNan, 1, 0, kAllTypes)                               \
  X(kIsInfinite, "isinf", IsInfinite, 1, 0, kFloats)                              \
  X(kShiftLeft, "bitwise_left_shift", ShiftLeft, 2, 0, kIntegers)                 \
  X(kShiftRight, "bitwise_right_shift", ShiftRight, 2, 0, kIntegers)              \
  X(kCopy, "copy", Copy, 1, 0, kAllTypes)                                         \
  X(kFill, "fill", Fill, 0, 1, kAllTypes)                                         \
  X(kWhere, "where", Where, 3, 0, kAllTypes)                                           \
  X(kLogicalNot, "logical_not", BitwiseNot, 1, 0, kBooleans)                      \
  X(kLogicalAnd, "logical_and", BitwiseAnd, 2, 0, kBooleans)                      \
  X(kLogicalOr, "logical_or", BitwiseOr, 2, 0, kBooleans)                         \
  X(kLogicalXor, "logical_xor", BitwiseXor, 2, 0, kBooleans)                      \
  X(kBitwiseNot, "bitwise_not", BitwiseNot, 1, 0, kBooleans | kIntegers)          \
  X(kBitwiseAnd, "bitwise_and", BitwiseAnd, 2, 0, kBooleans | kIntegers)          \
  X(kBitwiseOr, "bitwise_or", BitwiseOr, 2, 0, kBooleans | kIntegers)             \
  X(kBitwiseXor, "bitwise_xor", BitwiseXor, 2, 0, kBooleans | kIntegers)

#define WEFT_POINTWISE_KERNELS(X)                                                 \
  WEFT_POINTWISE_ARITHMETIC(X) WEFT_POINTWISE_DIVISION(X) WEFT_POINTWISE_ELEMENTARY(X) \
  WEFT_POINTWISE_ACTIVATION(X) WEFT_POINTWISE_COMPARISON(X)
// clang-format on
