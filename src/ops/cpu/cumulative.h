#pragma once

#include <cstdint>

#include "weft/base/dtype.h"

namespace weft::cpu {

// Running sums over the middle dimension of contiguous memory [outer, n, inner]. `type` is a float, complex
// or i64; f32 and 16-bit floats accumulate in f64. `out` may be `in`.
void cumsum(int64_t outer, int64_t n, int64_t inner, const char* in, char* out, DType type);

// The largest (or smallest) element so far along the same dimension, and where it is: the last place among
// equal ones. A NaN beats all numbers. Any type but complex.
void cumulative_extremum(bool largest, int64_t outer, int64_t n, int64_t inner, const char* in, char* values,
                         int64_t* places, DType type);

}  // namespace weft::cpu
