#pragma once

#include "weft/core/tensor.h"

namespace weft {

enum class Reduction : uint8_t { kSum, kProd, kMax, kMin, kAny, kAll };

// out[rest] = the reduction of self over the dims in `mask`, computed in `compute` (sums in a wider type).
void reduce_values(Reduction reduction, DType compute, const Tensor& self, uint64_t mask, const Tensor& out);

}  // namespace weft
