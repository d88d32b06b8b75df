#pragma once

#include <cstdint>

#include "weft/base/dtype.h"

namespace weft::cpu {

// [batch, channels, height, width] of contiguous or channels_last memory.
struct ImageArray {
  char* data;
  DType type;
  int64_t batch, channels, height, width;
  bool is_channels_last;

  int64_t pixels() const { return height * width; }
};

}  // namespace weft::cpu
