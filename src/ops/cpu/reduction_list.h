#pragma once

#include "ops/cpu/pointwise_list.h"

// Every reduction: X(kernel, ATen's name, functor, loops (a template of Isa and type), outputs, ordered,
// compute types).
// clang-format off
#define WEFT_REDUCTIONS_SUM(X) \
  X(kSum, "sum", SumReduction, SumLoops, 1, false, (kFloatsOrComplex | dtype_bit(DType::kInt64))) \
  X(kMean, "mean", MeanReduction, MeanLoops, 1, false, kFloatsOrComplex) \
  X(kProd, "prod", ProdReduction, ProdLoops, 1, false, (kFloatsOrComplex | dtype_bit(DType::kInt64))) \
  X(kSumSquares, "sum_squares", SumSquaresReduction, SumSquaresLoops, 1, false, kFloats) \
  X(kAmax, "amax", AmaxReduction, AmaxLoops, 1, false, kOrdered) \
  X(kAmin, "amin", AminReduction, AminLoops, 1, false, kOrdered) \
  X(kAny, "any", AnyReduction, AnyLoops, 1, false, kBooleans) \
  X(kAll, "all", AllReduction, AllLoops, 1, false, kBooleans)
#define WEFT_REDUCTIONS_OTHER(X) \
  X(kArgmax, "argmax", ArgmaxReduction, ArgmaxLoops, 1, true, kOrdered) \
  X(kArgmin, "argmin", ArgminReduction, ArgminLoops, 1, true, kOrdered) \
  X(kMaxDim, "max", MaxDimReduction, MaxDimLoops, 2, true, kOrdered) \
  X(kMinDim, "min", MinDimReduction, MinDimLoops, 2, true, kOrdered) \
  X(kVar, "var", VarReduction, VarLoops, 1, false, kFloats) \
  X(kStd, "std", StdReduction, StdLoops, 1, false, kFloats) \
  X(kVarMean, "var_mean", VarMeanReduction, VarMeanLoops, 2, false, kFloats) \
  X(kStdMean, "std_mean", StdMeanReduction, StdMeanLoops, 2, false, kFloats)
#define WEFT_REDUCTIONS(X) WEFT_REDUCTIONS_SUM(X) WEFT_REDUCTIONS_OTHER(X)
// clang-format on

#define WEFT_DEFINE_REDUCTION(symbol, name, functor, loops, outputs, ordered, dtypes) \
  extern const ReductionTable symbol;                                                 \
  constinit const ReductionTable symbol = reduction_table<Isa, loops, dtypes>();
