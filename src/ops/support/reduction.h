#pragma once

#include "ops/cpu/reduction.h"
#include "weft/core/tensor.h"

namespace weft {

// outputs[rest] = the reduction of `self` over the dims in `mask`, computed in `compute`. Outputs may or may
// not keep the reduced dims.
void run_reduction(const cpu::ReductionKernel& kernel, DType compute, const Tensor& self, uint64_t mask,
                   std::initializer_list<const Tensor*> outputs, double param = 0);

}  // namespace weft
