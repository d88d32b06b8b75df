#pragma once

#include <cstdint>

#include "weft/base/dtype.h"

namespace weft::cpu {

struct EmbeddingBackwardArgs {
  int64_t rows, width;     // of the table
  const int64_t* indices;  // of the rows that were looked up
  int64_t count;
  int64_t padding;  // a row that gets no gradient; -1 for none
  bool mean;        // divide by how often a row was looked up
};
// table[indices[i]] = the sum of grad[i], zero elsewhere; contiguous memory of a float or complex type.
// 16-bit floats add in f32. The sum of a row goes in the order of the lookups, whatever thread computes it.
void embedding_backward(const EmbeddingBackwardArgs& args, const char* grad, char* table, DType dtype);

}  // namespace weft::cpu
