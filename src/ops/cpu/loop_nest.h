#pragma once

#include <cstdint>
#include <span>

#include "ops/cpu/pointwise.h"

namespace weft::cpu {

// The dimensions of an operation over several operands, simplified: no dimension of size 1, ordered so that
// memory is walked as the first operand lies, neighbours merged where every operand allows. Dimension 0 is
// the innermost. Strides in bytes. Only the first `rank` entries of the arrays are set.
struct LoopNest {
  int rank = 0;
  int operands = 0;
  int64_t sizes[kMaxRank];
  int64_t strides[kMaxOperands][kMaxRank];

  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= sizes[d];
    return n;
  }
  int64_t size(int d) const { return d < rank ? sizes[d] : 1; }
  int64_t stride(int k, int d) const { return d < rank ? strides[k][d] : 0; }

  void append(int64_t size, const Operand* operand, int dim);
  void order();
  void merge();
};

// False if there is no element at all.
bool make_loop_nest(LoopNest& nest, std::span<const Operand> operands, std::span<const int64_t> sizes);

}  // namespace weft::cpu
