#pragma once

#include <cstdint>

#include "weft/base/dtype.h"

namespace weft::cpu {

// The k largest (or smallest) elements along the middle dim of contiguous memory [outer, n, inner], best
// first, and where they were: values and positions are [outer, k, inner]. A NaN is larger than every number;
// of equal elements the earlier one comes first. Integers and floats.
struct TopkShape {
  int64_t outer, n, inner, k;
};
void topk(TopkShape shape, bool largest, const char* in, DType dtype, char* values, int64_t* positions);

}  // namespace weft::cpu
