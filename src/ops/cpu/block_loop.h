#pragma once

#include "ops/cpu/loop_nest.h"

namespace weft::cpu {

// An operand's dtype in memory and in the loop; a block is converted where they differ.
struct OperandTypes {
  DType memory, loop;
};

// A contiguous loop applied over a nest of any strides and dtypes: outputs first. Splits the work by its size
// over threads, and feeds the loop blocks that are either the operands' own memory or small buffers. True if
// the loop refused an element. A null loop copies operand 1 to operand 0, both of one dtype.
bool run_blocks(const LoopNest& nest, char* const* data, const OperandTypes* types, int outputs, Loop loop,
                const void* params);

}  // namespace weft::cpu
