#include "ops/cpu/isa/packs.h"
#include "ops/cpu/reduction_list.h"
#include "ops/cpu/reduction_loops.h"

namespace weft::cpu::WEFT_ISA::reductions {

template <typename I, typename T>
using SumLoops = SimpleReduction<I, scalar::SumReduction, T>;
template <typename I, typename T>
using MeanLoops = FinishedReduction<I, scalar::SumReduction, scalar::MeanReduction, T>;
template <typename I, typename T>
using ProdLoops = SimpleReduction<I, scalar::ProdReduction, T>;
template <typename I, typename T>
using SumSquaresLoops = SimpleReduction<I, scalar::SumSquaresReduction, T>;
template <typename I, typename T>
using AmaxLoops = SimpleReduction<I, scalar::AmaxReduction, T>;
template <typename I, typename T>
using AminLoops = SimpleReduction<I, scalar::AminReduction, T>;
template <typename I, typename T>
using AnyLoops = SimpleReduction<I, scalar::AnyReduction, T>;
template <typename I, typename T>
using AllLoops = SimpleReduction<I, scalar::AllReduction, T>;
WEFT_REDUCTIONS_SUM(WEFT_DEFINE_REDUCTION)

}  // namespace weft::cpu::WEFT_ISA::reductions
