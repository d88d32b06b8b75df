#pragma once

#include "ops/cpu/gemm/problem.h"
#include "ops/cpu/pointwise.h"

namespace weft::cpu {

// Copies a matrix, converted to `To`, between any strides.
template <typename To, typename From>
void convert_matrix(const MatrixView<From>& from, int64_t rows, int64_t columns, To* to, int64_t row_stride,
                    int64_t column_stride) {
  const int64_t sizes[] = {rows, columns}, from_strides[] = {from.row_stride, from.column_stride},
                to_strides[] = {row_stride, column_stride};
  // Operands have one type for what is read and what is written.
  char* data = const_cast<char*>(reinterpret_cast<const char*>(from.data));
  copy_strided({reinterpret_cast<char*>(to), dtype_of<To>, to_strides}, {data, dtype_of<From>, from_strides},
               sizes);
}

}  // namespace weft::cpu
