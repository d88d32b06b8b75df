#pragma once

#include "ops/cpu/pointwise.h"

namespace weft::cpu {

// The loop that converts contiguous elements: pointers are {to, from}. Conversions are PyTorch's: floats to
// integers truncate (through int32 for narrow ones), integers keep their low bits, anything but zero is true,
// complex to real drops the imaginary part, f64 to 16 bits goes through f32.
Loop converter(DType to, DType from);

struct ConvertTable {
  Loop loops[kDTypeCount][kDTypeCount] = {};  // [to][from]
};

}  // namespace weft::cpu
