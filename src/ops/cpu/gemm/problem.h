#pragma once

#include <cstdint>

// What the drivers, packing and kernels of a GEMM pass to each other.
namespace weft::cpu {

// A matrix by its first element and strides in elements.
template <typename T>
struct MatrixView {
  const T* data;
  int64_t row_stride, column_stride;

  const T* at(int64_t row, int64_t column) const { return data + row * row_stride + column * column_stride; }
  MatrixView from(int64_t row, int64_t column) const { return {at(row, column), row_stride, column_stride}; }
  MatrixView transposed() const { return {data, column_stride, row_stride}; }
};

// c[m, n] = alpha * a[m, k] * b[k, n] + beta * addend. The addend may be c itself, or broadcast by strides of
// zero; null: nothing is added, and c is not read. Sums are of type T; a and b are stored as `Input`, c and
// the addend as `Output`.
template <typename T, typename Input = T, typename Output = T>
struct Gemm {
  int64_t m, n, k;
  T alpha, beta;
  MatrixView<Input> a, b;
  MatrixView<Output> addend;
  Output* c;
  int64_t c_row_stride, c_column_stride;
};

// The same GEMM as c^T = b^T a^T.
template <typename T, typename Input, typename Output>
Gemm<T, Input, Output> transposed(const Gemm<T, Input, Output>& g) {
  return {g.n,
          g.m,
          g.k,
          g.alpha,
          g.beta,
          g.b.transposed(),
          g.a.transposed(),
          g.addend.transposed(),
          g.c,
          g.c_column_stride,
          g.c_row_stride};
}

// What is left where k is zero.
template <typename T>
void store_addend_only(const Gemm<T>& g) {
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j)
      g.c[i * g.c_row_stride + j * g.c_column_stride] = g.addend.data ? g.beta * *g.addend.at(i, j) : T(0);
}

// A rectangle of c.
struct GemmPart {
  int64_t row, rows, column, columns;
};

}  // namespace weft::cpu
