#include "ops/cpu/isa/packs.h"
#include "ops/cpu/reduction_arg_loops.h"
#include "ops/cpu/reduction_list.h"
#include "ops/cpu/reduction_var_loops.h"

namespace weft::cpu::WEFT_ISA::reductions {

template <typename I, typename T>
using ArgmaxLoops = ArgReduction<I, T, true, false>;
template <typename I, typename T>
using ArgminLoops = ArgReduction<I, T, false, false>;
template <typename I, typename T>
using MaxDimLoops = ArgReduction<I, T, true, true>;
template <typename I, typename T>
using MinDimLoops = ArgReduction<I, T, false, true>;
template <typename I, typename T>
using VarLoops = VarianceReduction<I, T, false, false>;
template <typename I, typename T>
using StdLoops = VarianceReduction<I, T, true, false>;
template <typename I, typename T>
using VarMeanLoops = VarianceReduction<I, T, false, true>;
template <typename I, typename T>
using StdMeanLoops = VarianceReduction<I, T, true, true>;
WEFT_REDUCTIONS_OTHER(WEFT_DEFINE_REDUCTION)

}  // namespace weft::cpu::WEFT_ISA::reductions
