#include "ops/cpu/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "ops/cpu/pointwise.h"
#include "ops/cpu/product.h"
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
struct BlasMatrix {
  const char* data;
  CBLAS_TRANSPOSE transpose;
  int leading;
};

bool fits(const Matrix& x, int64_t rows, int64_t columns, BlasMatrix& out) {
  auto usable = [](int64_t inner, int64_t outer, int64_t inner_size, int64_t outer_size) {
    return (inner == 1 || inner_size == 1) && (outer >= std::max<int64_t>(inner_size, 1) || outer_size == 1);
  };
  if (usable(x.column_stride, x.row_stride, columns, rows)) {
    out = {x.data, CblasNoTrans, static_cast<int>(rows == 1 ? std::max<int64_t>(columns, 1) : x.row_stride)};
    return true;
  }
  if (usable(x.row_stride, x.column_stride, rows, columns)) {
    out = {x.data, CblasTrans, static_cast<int>(columns == 1 ? std::max<int64_t>(rows, 1) : x.column_stride)};
    return true;
  }
  return false;
}

// The matrix as it is where BLAS can read it, otherwise a dense copy.
BlasMatrix prepare(DType dtype, const Matrix& x, int64_t rows, int64_t columns,
                   std::optional<Scratch>& copy) {
  BlasMatrix result;
  if (fits(x, rows, columns, result)) return result;
  copy.emplace(rows * columns * item_size(dtype));
  int64_t sizes[] = {rows, columns}, from[] = {x.row_stride, x.column_stride}, to[] = {columns, 1};
  copy_strided({copy->data(), dtype, to}, {const_cast<char*>(x.data), dtype, from}, sizes);
  return {copy->data(), CblasNoTrans, static_cast<int>(columns)};
}

struct Tile {
  int64_t row, rows, column, columns;
};

const char* advance(const BlasMatrix& x, DType dtype, int64_t row, int64_t column) {
  bool plain = x.transpose == CblasNoTrans;
  return x.data + (plain ? row * x.leading + column : column * x.leading + row) * item_size(dtype);
}

void clear_tile(DType dtype, const Tile& t, char* c, int64_t c_stride) {
  int64_t row_bytes = t.columns * item_size(dtype), step = c_stride * item_size(dtype);
  if (row_bytes == step) std::memset(c, 0, static_cast<size_t>(t.rows * row_bytes));
  else
    for (int64_t i = 0; i < t.rows; ++i) std::memset(c + i * step, 0, static_cast<size_t>(row_bytes));
}

void blas_tile(DType dtype, const Tile& t, int64_t k, Complex<double> alpha, const BlasMatrix& a,
               const BlasMatrix& b, Complex<double> beta, char* c, int64_t c_stride) {
  auto m = static_cast<int>(t.rows), n = static_cast<int>(t.columns), kk = static_cast<int>(k),
       ldc = static_cast<int>(c_stride);
  const char* pa = advance(a, dtype, t.row, 0);
  const char* pb = advance(b, dtype, 0, t.column);
  char* pc = c + (t.row * c_stride + t.column) * item_size(dtype);
  // OpenBLAS adds to a cleared result too, but clears it at a fraction of the speed of memset.
  if (beta.re == 0 && beta.im == 0) {
    clear_tile(dtype, t, pc, c_stride);
    beta = 1.0;
  }
  if (dtype == DType::kComplex64) {
    Complex<float> narrow_alpha(alpha), narrow_beta(beta);
    cblas_cgemm(CblasRowMajor, a.transpose, b.transpose, m, n, kk, &narrow_alpha, pa, a.leading, pb,
                b.leading, &narrow_beta, pc, ldc);
  } else {
    cblas_zgemm(CblasRowMajor, a.transpose, b.transpose, m, n, kk, &alpha, pa, a.leading, pb, b.leading,
                &beta, pc, ldc);
  }
}

// How many tiles a product is worth: by its size only. K is never split.
int64_t tile_count(int64_t m, int64_t n, int64_t k) {
  double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (work < 32768) return 1;
  return work < 1e9 ? 2 : 4;
}

void complex_gemm(DType dtype, int64_t m, int64_t n, int64_t k, Complex<double> alpha, const Matrix& a,
                  const Matrix& b, Complex<double> beta, char* c, int64_t c_stride) {
  use_one_blas_thread();
  std::optional<Scratch> copy_a, copy_b;
  BlasMatrix pa = prepare(dtype, a, m, k, copy_a), pb = prepare(dtype, b, k, n, copy_b);
  int64_t tiles = tile_count(m, n, k);
  bool by_rows = m >= n || m >= 64;
  int64_t extent = by_rows ? m : n;
  int64_t grain = tiles == 1 ? extent : std::max<int64_t>(8, ((extent + tiles - 1) / tiles + 7) / 8 * 8);
  parallel_for(0, extent, std::max<int64_t>(grain, 1), [&](int64_t first, int64_t last) {
    Tile tile = by_rows ? Tile{first, last - first, 0, n} : Tile{0, m, first, last - first};
    blas_tile(dtype, tile, k, alpha, pa, pb, beta, c, c_stride);
  });
}

// Integers: a plain loop over rows of b, wrapping as the type does.
template <typename T>
void integer_gemm(int64_t m, int64_t n, int64_t k, T alpha, const Matrix& a, const Matrix& b, T beta, T* c,
                  int64_t c_stride) {
  using U = std::conditional_t<std::same_as<T, bool>, uint8_t,
                               std::make_unsigned_t<std::conditional_t<std::same_as<T, bool>, uint8_t, T>>>;
  const T* pa = reinterpret_cast<const T*>(a.data);
  const T* pb = reinterpret_cast<const T*>(b.data);
  parallel_for(
      0, m, std::max<int64_t>(1, 65536 / std::max<int64_t>(n * k, 1)), [&](int64_t first, int64_t last) {
        std::vector<U> row(static_cast<size_t>(n));
        for (int64_t i = first; i < last; ++i) {
          std::fill(row.begin(), row.end(), U(0));
          for (int64_t p = 0; p < k; ++p) {
            U x = static_cast<U>(pa[i * a.row_stride + p * a.column_stride]);
            for (int64_t j = 0; j < n; ++j)
              row[static_cast<size_t>(j)] =
                  static_cast<U>(row[static_cast<size_t>(j)] +
                                 x * static_cast<U>(pb[p * b.row_stride + j * b.column_stride]));
          }
          for (int64_t j = 0; j < n; ++j) {
            U product = static_cast<U>(row[static_cast<size_t>(j)] * static_cast<U>(alpha));
            T& target = c[i * c_stride + j];
            target = static_cast<T>(
                beta == T(0) ? product
                             : static_cast<U>(product + static_cast<U>(beta) * static_cast<U>(target)));
          }
        }
      });
}

template <typename T>
T number_as(Complex<double> value) {
  if constexpr (requires(T t) { t.re; }) return T(value);
  else return static_cast<T>(value.re);
}

// Few multiplications: a loop in the order of k costs less than to prepare for a fast one.
constexpr int64_t kPlainProduct = 400;
template <typename T>
void plain_gemm(int64_t m, int64_t n, int64_t k, T alpha, const Matrix& a, const Matrix& b, T beta, T* c,
                int64_t c_stride) {
  const T* pa = reinterpret_cast<const T*>(a.data);
  const T* pb = reinterpret_cast<const T*>(b.data);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      T sum{};
      for (int64_t p = 0; p < k; ++p)
        sum = sum + pa[i * a.row_stride + p * a.column_stride] * pb[p * b.row_stride + j * b.column_stride];
      T& target = c[i * c_stride + j];
      T product = alpha == T(1) ? sum : alpha * sum;
      target = beta == T{} ? product : beta * target + product;
    }
}

template <typename T>
MatrixView<T> view_of(const Matrix& x) {
  return {reinterpret_cast<const T*>(x.data), x.row_stride, x.column_stride};
}
template <typename T>
void real_gemm(int64_t m, int64_t n, int64_t k, Complex<double> alpha, const Matrix& a, const Matrix& b,
               const Addend& addend, char* c, int64_t c_stride) {
  MatrixView<T> added = addend.beta.re == 0 ? MatrixView<T>{} : view_of<T>(addend.matrix);
  multiply<T>({m, n, k, static_cast<T>(alpha.re), static_cast<T>(addend.beta.re), view_of<T>(a),
               view_of<T>(b), added, reinterpret_cast<T*>(c), c_stride, 1});
}

// 16-bit floats compute in f32 and round once at the end.
void widened_gemm(DType dtype, int64_t m, int64_t n, int64_t k, Complex<double> alpha, const Matrix& a,
                  const Matrix& b, const Addend& addend, char* c, int64_t c_stride) {
  auto widen = [&](const Matrix& x, int64_t rows, int64_t columns, const Scratch& buffer) {
    int64_t sizes[] = {rows, columns}, from[] = {x.row_stride, x.column_stride}, to[] = {columns, 1};
    copy_strided({buffer.data(), DType::kFloat32, to}, {const_cast<char*>(x.data), dtype, from}, sizes);
    return Matrix{buffer.data(), columns, 1};
  };
  Scratch wide_a(m * k * 4), wide_b(k * n * 4), wide_c(m * n * 4);
  if (addend.beta.re != 0) widen(addend.matrix, m, n, wide_c);
  real_gemm<float>(m, n, k, alpha, widen(a, m, k, wide_a), widen(b, k, n, wide_b),
                   {addend.beta, {wide_c.data(), n, 1}}, wide_c.data(), n);
  int64_t sizes[] = {m, n}, dense[] = {n, 1}, strided[] = {c_stride, 1};
  copy_strided({c, dtype, strided}, {wide_c.data(), DType::kFloat32, dense}, sizes);
}

void scale_only(DType dtype, int64_t m, int64_t n, Complex<double> beta, char* c, int64_t c_stride) {
  visit_dtype(dtype, [&]<typename T>() {
    T* data = reinterpret_cast<T*>(c);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        T& x = data[i * c_stride + j];
        if (beta.re == 0 && beta.im == 0) x = T{};
        else if constexpr (requires { x.re; }) x = T(Complex<double>(x) * beta);
        else x = static_cast<T>(static_cast<double>(x) * beta.re);
      }
  });
}

}  // namespace

void gemm(DType dtype, int64_t m, int64_t n, int64_t k, Complex<double> alpha, const Matrix& a,
          const Matrix& b, const Addend& addend, char* c, int64_t c_stride) {
  if (m == 0 || n == 0) return;
  if (k > 0) {
    if (dtype == DType::kFloat32) return real_gemm<float>(m, n, k, alpha, a, b, addend, c, c_stride);
    if (dtype == DType::kFloat64) return real_gemm<double>(m, n, k, alpha, a, b, addend, c, c_stride);
    if (dtype == DType::kFloat16 || dtype == DType::kBFloat16)
      return widened_gemm(dtype, m, n, k, alpha, a, b, addend, c, c_stride);
  }
  Complex<double> beta = addend.beta;
  if ((beta.re != 0 || beta.im != 0) && addend.matrix.data != c) {
    int64_t sizes[] = {m, n}, from[] = {addend.matrix.row_stride, addend.matrix.column_stride},
            to[] = {c_stride, 1};
    copy_strided({c, dtype, to}, {const_cast<char*>(addend.matrix.data), dtype, from}, sizes);
  }
  if (k == 0) return scale_only(dtype, m, n, beta, c, c_stride);
  if (dtype >= DType::kFloat32) return complex_gemm(dtype, m, n, k, alpha, a, b, beta, c, c_stride);
  visit_dtype(dtype, [&]<typename T>() {
    if constexpr (std::integral<T> && !std::same_as<T, bool>)
      integer_gemm<T>(m, n, k, static_cast<T>(alpha.re), a, b, static_cast<T>(beta.re),
                      reinterpret_cast<T*>(c), c_stride);
    else fail("matrix products are not implemented for {}", dtype_name(dtype));
  });
}

void batched_gemm(DType dtype, int64_t batch, int64_t m, int64_t n, int64_t k, Complex<double> alpha,
                  const Matrix& a, int64_t a_step, const Matrix& b, int64_t b_step, Complex<double> beta,
                  char* c, int64_t c_step, int64_t c_stride) {
  int64_t size = item_size(dtype);
  if (dtype >= DType::kFloat32 && k > 0 && m * n * k < kPlainProduct) {
    visit_dtype(dtype, [&]<typename T>() {
      if constexpr (!std::integral<T> && !std::same_as<T, Half> && !std::same_as<T, BFloat16>)
        parallel_for(
            0, batch, std::max<int64_t>(1, 8192 / (m * n * k + 1)), [&](int64_t first, int64_t last) {
              for (int64_t i = first; i < last; ++i)
                plain_gemm<T>(m, n, k, number_as<T>(alpha),
                              {a.data + i * a_step * size, a.row_stride, a.column_stride},
                              {b.data + i * b_step * size, b.row_stride, b.column_stride}, number_as<T>(beta),
                              reinterpret_cast<T*>(c + i * c_step * size), c_stride);
            });
    });
    return;
  }
  auto one = [&](int64_t i) {
    gemm(dtype, m, n, k, alpha, {a.data + i * a_step * size, a.row_stride, a.column_stride},
         {b.data + i * b_step * size, b.row_stride, b.column_stride},
         {beta, {c + i * c_step * size, c_stride, 1}}, c + i * c_step * size, c_stride);
  };
  // Small products are spread over threads whole; a large one splits itself.
  bool small = tile_count(m, n, k) == 1 || batch >= 4;
  if (!small) {
    for (int64_t i = 0; i < batch; ++i) one(i);
    return;
  }
  int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, m * n * k));
  parallel_for(0, batch, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) one(i);
  });
}

}  // namespace weft::cpu
