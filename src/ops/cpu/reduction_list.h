#pragma once

#include "ops/cpu/pointwise_list.h"

// Every reduction: X(kernel, ATen's name, loops (a template of Isa and type), outputs, ordered, compute
// types).
// clang-format off
#define WEFT_REDUCTIONS_SUM(X)                                                            \
  X(kSum, "sum", SumLoops, 1, false, (kFloatsOrComplex | dtype_bit(DType::kInt64)))       \
  X(kMean, "mean", MeanLoops, 1, false, kFloatsOrComplex)                                 \
  X(kProd, "prod", ProdLoops, 1, false, (kFloatsOrComplex | dtype_bit(DType::kInt64)))    \
  X(kSumSquares, "sum_squares", SumSquaresLoops, 1, false, kFloats)                       \
  X(kAmax, "amax", AmaxLoops, 1, false, kOrdered)                                         \
  X(kAmin, "amin", AminLoops, 1, false, kOrdered)                                         \
  X(kAny, "any", AnyLoops, 1, false, kBooleans)                                           \
  X(kAll, "all", AllLoops, 1, false, kBooleans)
#define WEFT_REDUCTIONS_OTHER(X)                                                          \
  X(kArgmax, "argmax", ArgmaxLoops, 1, true, kOrdered)                                    \
  X(kArgmin, "argmin", ArgminLoops, 1, true, kOrdered)                                    \
  X(kMaxDim, "max", MaxDimLoops, 2, true, kOrdered)                                       \
  X(kMinDim, "min", MinDimLoops, 2, true, kOrdered)                                       \
  X(kVar, "var", VarLoops, 1, false, kFloats)                                             \
  X(kStd, "std", StdLoops, 1, false, kFloats)                                             \
  X(kVarMean, "var_mean", VarMeanLoops, 2, false, kFloats)                                \
  X(kStdMean, "std_mean", StdMeanLoops, 2, false, kFloats)
#define WEFT_REDUCTIONS(X) WEFT_REDUCTIONS_SUM(X) WEFT_REDUCTIONS_OTHER(X)
// clang-format on

#define WEFT_DEFINE_REDUCTION(symbol, name, loops, outputs, ordered, dtypes) \
  extern const ReductionTable symbol;                                        \
  constinit const ReductionTable symbol = reduction_table<Isa, loops, dtypes>();
