#pragma once

#include <cstdint>

#include "weft/base/dtype.h"

// GEMM over raw memory of any dtype, on weft's own threads, with the same bits for any number of them: floats
// by gemm/driver.h, complex numbers by gemm/openblas.h.
namespace weft::cpu {

// A matrix by its first element and strides in elements.
struct Matrix {
  const char* data;
  int64_t row_stride, column_stride;
};

// What is added: `beta` times a matrix, which may be the result itself. With beta 0 it is not
// read.
struct Addend {
  Complex<double> beta = 0.0;
  Matrix matrix = {};
};

// c[m, n] (row-major, `c_stride` elements a row) = alpha * a[m, k] * b[k, n] + beta * addend. All of `dtype`;
// alpha and beta are read as numbers of that type. The addend is c, or shares no memory with it.
void gemm(DType dtype, int64_t m, int64_t n, int64_t k, Complex<double> alpha, const Matrix& a,
          const Matrix& b, const Addend& addend, char* c, int64_t c_stride);

// The same for a batch: matrices `*_step` elements apart, and beta times c added.
void batched_gemm(DType dtype, int64_t batch, int64_t m, int64_t n, int64_t k, Complex<double> alpha,
                  const Matrix& a, int64_t a_step, const Matrix& b, int64_t b_step, Complex<double> beta,
                  char* c, int64_t c_step, int64_t c_stride);

}  // namespace weft::cpu
