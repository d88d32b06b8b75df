#include "ops/cpu/gemm/openblas.h"

#include <cblas.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <optional>

#include "ops/cpu/gemm/blocking.h"
#include "ops/cpu/gemm/convert_matrix.h"
#include "ops/cpu/scratch.h"
#include "weft/base/error.h"
#include "weft/base/parallel.h"

extern "C" void openblas_set_num_threads(int);
extern "C" int openblas_get_num_threads();

namespace weft::cpu {
namespace {

// weft owns all parallelism: the library computes tiles on the calling thread.
void use_one_blas_thread() {
  static const bool done = [] {
    openblas_set_num_threads(1);
    invariant(openblas_get_num_threads() == 1, "OpenBLAS does not keep to one thread");
    return true;
  }();
  (void)done;
}

// A matrix as BLAS takes it: row-major, or the transpose of a row-major one.
template <typename T>
struct BlasMatrix {
  const T* data;
  CBLAS_TRANSPOSE transpose;
  int leading;

  const T* at(int64_t row, int64_t column) const {
    return data + (transpose == CblasNoTrans ? row * leading + column : column * leading + row);
  }
};

template <typename T>
std::optional<BlasMatrix<T>> as_blas(const MatrixView<T>& x, int64_t rows, int64_t columns) {
  auto is_usable = [](int64_t inner, int64_t outer, int64_t inner_size, int64_t outer_size) {
    return (inner == 1 || inner_size == 1) && (outer_size == 1 || (outer >= inner_size && outer <= INT_MAX));
  };
  if (is_usable(x.column_stride, x.row_stride, columns, rows))
    return BlasMatrix<T>{x.data, CblasNoTrans, static_cast<int>(rows == 1 ? columns : x.row_stride)};
  if (is_usable(x.row_stride, x.column_stride, rows, columns))
    return BlasMatrix<T>{x.data, CblasTrans, static_cast<int>(columns == 1 ? rows : x.column_stride)};
  return std::nullopt;
}

// The matrix as it is where BLAS can read it, otherwise a dense copy.
template <typename T>
BlasMatrix<T> readable(const MatrixView<T>& x, int64_t rows, int64_t columns, std::optional<Scratch>& copy) {
  if (auto result = as_blas(x, rows, columns)) return *result;
  copy.emplace(rows * columns * static_cast<int64_t>(sizeof(T)));
  convert_matrix(x, rows, columns, copy->as<T>(), columns, 1);
  return {copy->as<T>(), CblasNoTrans, static_cast<int>(columns)};
}

void cblas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, float alpha, const float* a,
                int lda, const float* b, int ldb, float beta, float* c, int ldc) {
  cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void cblas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, double alpha, const double* a,
                int lda, const double* b, int ldb, double beta, double* c, int ldc) {
  cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
using C64 = Complex<float>;
void cblas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, C64 alpha, const C64* a, int lda,
                const C64* b, int ldb, C64 beta, C64* c, int ldc) {
  cblas_cgemm(CblasRowMajor, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
}
using C128 = Complex<double>;
void cblas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, C128 alpha, const C128* a,
                int lda, const C128* b, int ldb, C128 beta, C128* c, int ldc) {
  cblas_zgemm(CblasRowMajor, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
}

// OpenBLAS clears c for a beta of zero itself, but at a fraction of the speed of memset.
template <typename T>
void clear(const GemmPart& part, T* c, int64_t c_stride) {
  for (int64_t i = 0; i < part.rows; ++i)
    std::memset(static_cast<void*>(c + i * c_stride), 0, static_cast<size_t>(part.columns) * sizeof(T));
}

// How many tiles a GEMM is worth, by its size only; k is never split. Every call packs its operands anew.
int64_t tile_count(int64_t m, int64_t n, int64_t k) {
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (work < 32768) return 1;
  return work < 1e9 ? 2 : work < 8e9 ? 4 : 8;
}

// Calls `run` for whole rows of c, or for whole columns where rows are few.
template <typename Run>
void run_in_tiles(int64_t m, int64_t n, int64_t k, Run run) {
  constexpr int64_t kUnit = 8;
  const int64_t tiles = tile_count(m, n, k);
  const bool by_rows = m >= n || m >= 64;
  const int64_t extent = by_rows ? m : n;
  const int64_t grain = tiles == 1 ? extent : ceil_div(ceil_div(extent, tiles), kUnit) * kUnit;
  parallel_for(0, extent, grain, [&](int64_t first, int64_t last) {
    run(by_rows ? GemmPart{first, last - first, 0, n} : GemmPart{0, m, first, last - first});
  });
}

}  // namespace

template <typename T>
void openblas_gemm(int64_t m, int64_t n, int64_t k, T alpha, const MatrixView<T>& a, const MatrixView<T>& b,
                   T beta, T* c, int64_t c_stride) {
  use_one_blas_thread();
  std::optional<Scratch> copy_a, copy_b;
  const BlasMatrix<T> pa = readable(a, m, k, copy_a), pb = readable(b, k, n, copy_b);
  const bool clears = beta == T(0);
  run_in_tiles(m, n, k, [&](const GemmPart& part) {
    T* pc = c + part.row * c_stride + part.column;
    if (clears) clear(part, pc, c_stride);
    cblas_gemm(pa.transpose, pb.transpose, static_cast<int>(part.rows), static_cast<int>(part.columns),
               static_cast<int>(k), alpha, pa.at(part.row, 0), pa.leading, pb.at(0, part.column), pb.leading,
               clears ? T(1) : beta, pc, static_cast<int>(std::max(c_stride, n)));
  });
}

#define WEFT_X(T)                                                                                          \
  template void openblas_gemm(int64_t, int64_t, int64_t, T, const MatrixView<T>&, const MatrixView<T>&, T, \
                              T*, int64_t);
WEFT_X(float)
WEFT_X(double)
WEFT_X(Complex<float>)
WEFT_X(Complex<double>)
#undef WEFT_X

}  // namespace weft::cpu
