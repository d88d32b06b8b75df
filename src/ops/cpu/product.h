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

// How far a block of the inner dimension goes, by that dimension alone: a panel of b with so many rows stays
// in the nearest caches while the rows of a pass by. Blocks are of nearly equal length.
template <typename T>
inline constexpr int64_t kLongestBlock = 2048 / sizeof(T);
template <typename T>
int64_t depth_of_blocks(int64_t k) {
  const int64_t blocks = (k + kLongestBlock<T> - 1) / kLongestBlock<T>;
  return (k + blocks - 1) / blocks;
}
// So many rows of a, that deep, take half of the second-level cache. More rows are cut into blocks, which
// share copies of b.
template <typename T>
int64_t rows_of_blocks(int64_t depth);
inline constexpr int64_t kBlockColumns = 2048;  // of b: they stay in the last-level cache

// One instruction set's loops for a type. `rows` and `columns` are what the innermost one computes at once,
// `columns_at_once` what is best copied together. c has contiguous rows.
template <typename T>
struct ProductLoops {
  int64_t rows, columns, columns_at_once;
  // For no more rows than a block has: columns of b are copied when their turn comes.
  void (*tiles)(const Product<T>&, const ProductPart&);
  // For more: rows p to p + depth of columns of b are copied for all parts, depth elements a column ...
  void (*copy_panels)(const Product<T>&, int64_t p, int64_t depth, int64_t column, int64_t columns, T* to);
  // ... and a part, which has the rows of a block at most, adds these terms. `panels` is where its columns
  // begin.
  void (*tiles_of_panels)(const Product<T>&, const ProductPart&, int64_t p, int64_t depth, T* panels);
  // For few rows: a and the transpose of b have contiguous rows.
  void (*dots)(const Product<T>&, const ProductPart&);
};

// Computes the product on weft's threads.
template <typename T>
void multiply(const Product<T>& product);

}  // namespace weft::cpu
