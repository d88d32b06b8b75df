#pragma once

#include "ops/cpu/pointwise.h"
#include "ops/cpu/pointwise_list.h"

// The kernels by name: `kAdd`, `kExp`, ... are constant-initialised, so that an OpDef may point at them.
namespace weft::cpu {

#define WEFT_X(symbol, name, functor, inputs, params, dtypes) extern const PointwiseKernel symbol;
WEFT_POINTWISE_KERNELS(WEFT_X)
#undef WEFT_X

// All of them, for tests.
std::span<const PointwiseKernel* const> pointwise_kernels();

}  // namespace weft::cpu
