#pragma once

#include <cstdint>

#include "weft/base/dtype.h"

// Matrix products of raw memory, on weft's own threads: a product is cut into tiles by its size alone, and
// OpenBLAS, set to one thread, computes each; so the bits do not depend on the number of threads.
namespace weft::cpu {

// A matrix by its first element and strides in elements.
struct Matrix {
  const char* data;
  int64_t row_stride, column_stride;
};

// c[m, n] (row-major, `c_stride` elements a row) = alpha * a[m, k] * b[k, n] + beta * c. All of `dtype`;
// alpha and beta are read as numbers of that type. With beta 0, c is not read.
void gemm(DType dtype, int64_t m, int64_t n, int64_t k, Complex<double> alpha, const Matrix& a,
          const Matrix& b, Complex<double> beta, char* c, int64_t c_stride);

// The same for a batch: matrices `*_step` elements apart.
void batched_gemm(DType dtype, int64_t batch, int64_t m, int64_t n, int64_t k, Complex<double> alpha,
                  const Matrix& a, int64_t a_step, const Matrix& b, int64_t b_step, Complex<double> beta,
                  char* c, int64_t c_step, int64_t c_stride);

}  // namespace weft::cpu
