#pragma once

#include <cstdint>

// Matrix products of f32 and f64 in memory. In which order the terms of an element are added follows from the
// sizes and strides of the whole product, never from how it is cut into parts: `multiply` may give each
// thread what it likes, and the bits are the same.
namespace weft::cpu {

// A matrix by its first element and strides in elements.
template <typename T>
struct MatrixView {
  const T* data;
  int64_t row_stride, column_stride;

  const T* at(int64_t row, int64_t column) const { return data + row * row_stride + column * column_stride; }
  MatrixView transposed() const { return {data, column_stride, row_stride}; }
};

// c[m, n] = alpha * a[m, k] * b[k, n] + beta * addend. The addend may be c itself, or broadcast by strides of
// zero; null: nothing is added, and c is not read.
template <typename T>
struct Product {
  int64_t m, n, k;
  T alpha, beta;
  MatrixView<T> a, b, addend;
  T* c;
  int64_t c_row_stride, c_column_stride;
};

// The same product seen the other way: c^T = b^T a^T.
template <typename T>
Product<T> transposed(const Product<T>& p) {
  return {p.n,
          p.m,
          p.k,
          p.alpha,
          p.beta,
          p.b.transposed(),
          p.a.transposed(),
          p.addend.transposed(),
          p.c,
          p.c_column_stride,
          p.c_row_stride};
}

// A part of the result.
struct ProductPart {
  int64_t row, rows, column, columns;
};

// One instruction set's loops for a type. `rows` and `columns` are what the innermost one computes at once.
template <typename T>
struct ProductLoops {
  int64_t rows, columns;
  // c has contiguous rows.
  void (*tiles)(const Product<T>&, const ProductPart&);
  // For few rows: a and the transpose of b have contiguous rows.
  void (*dots)(const Product<T>&, const ProductPart&);
};

// Computes the product on weft's threads.
template <typename T>
void multiply(const Product<T>& product);

}  // namespace weft::cpu
