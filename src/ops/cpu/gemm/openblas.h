#pragma once

#include "ops/cpu/gemm/problem.h"
#include "weft/base/numbers.h"

namespace weft::cpu {

// c[m, n] (row-major, `c_stride` elements a row) = alpha * a[m, k] * b[k, n] + beta * c; with beta 0, c is
// not read. Tiles of c, cut by its size alone, are OpenBLAS calls, set to one thread, on weft's threads: the
// same bits for any number of them. Strides that BLAS has no name for are copied. T is float, double or
// complex.
template <typename T>
void openblas_gemm(int64_t m, int64_t n, int64_t k, T alpha, const MatrixView<T>& a, const MatrixView<T>& b,
                   T beta, T* c, int64_t c_stride);

}  // namespace weft::cpu
