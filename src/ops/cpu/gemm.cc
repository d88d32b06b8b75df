#include "ops/cpu/gemm.h"

#include <algorithm>
#include <vector>

#include "ops/cpu/gemm/driver.h"
#include "ops/cpu/gemm/openblas.h"
#include "ops/cpu/pointwise.h"
#include "weft/base/error.h"
#include "weft/base/parallel.h"

namespace weft::cpu {
namespace {

// Integers: a plain loop over rows of b, wrapping as the type does.
template <typename T>
void integer_gemm(int64_t m, int64_t n, int64_t k, T alpha, const Matrix& a, const Matrix& b, T beta, T* c,
                  int64_t c_stride) {
  // Narrower unsigned types are promoted to int, which does not wrap.
  using U = std::conditional_t<(sizeof(T) < sizeof(uint64_t)), uint32_t, uint64_t>;
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
constexpr int64_t kPlainGemm = 400;
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
  run_gemm<T>({m, n, k, static_cast<T>(alpha.re), static_cast<T>(addend.beta.re), view_of<T>(a),
               view_of<T>(b), added, reinterpret_cast<T*>(c), c_stride, 1});
}

template <typename S>
void widening_gemm(int64_t m, int64_t n, int64_t k, Complex<double> alpha, const Matrix& a, const Matrix& b,
                   const Addend& addend, char* c, int64_t c_stride) {
  MatrixView<S> added = addend.beta.re == 0 ? MatrixView<S>{} : view_of<S>(addend.matrix);
  run_widening_gemm<S>({m, n, k, static_cast<float>(alpha.re), static_cast<float>(addend.beta.re),
                        view_of<S>(a), view_of<S>(b), added, reinterpret_cast<S*>(c), c_stride, 1});
}

template <typename T>
void complex_gemm(int64_t m, int64_t n, int64_t k, Complex<double> alpha, const Matrix& a, const Matrix& b,
                  Complex<double> beta, char* c, int64_t c_stride) {
  openblas_gemm<T>(m, n, k, T(alpha), view_of<T>(a), view_of<T>(b), T(beta), reinterpret_cast<T*>(c),
                   c_stride);
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
    if (dtype == DType::kFloat16) return widening_gemm<Half>(m, n, k, alpha, a, b, addend, c, c_stride);
    if (dtype == DType::kBFloat16) return widening_gemm<BFloat16>(m, n, k, alpha, a, b, addend, c, c_stride);
  }
  Complex<double> beta = addend.beta;
  if ((beta.re != 0 || beta.im != 0) && addend.matrix.data != c) {
    int64_t sizes[] = {m, n}, from[] = {addend.matrix.row_stride, addend.matrix.column_stride},
            to[] = {c_stride, 1};
    copy_strided({c, dtype, to}, {const_cast<char*>(addend.matrix.data), dtype, from}, sizes);
  }
  if (k == 0) return scale_only(dtype, m, n, beta, c, c_stride);
  if (dtype == DType::kComplex64)
    return complex_gemm<Complex<float>>(m, n, k, alpha, a, b, beta, c, c_stride);
  if (dtype == DType::kComplex128)
    return complex_gemm<Complex<double>>(m, n, k, alpha, a, b, beta, c, c_stride);
  visit_dtype(dtype, [&]<typename T>() {
    if constexpr (std::integral<T> && !std::same_as<T, bool>)
      integer_gemm<T>(m, n, k, static_cast<T>(alpha.re), a, b, static_cast<T>(beta.re),
                      reinterpret_cast<T*>(c), c_stride);
    else fail("matmul is not implemented for {}", dtype_name(dtype));
  });
}

void batched_gemm(DType dtype, int64_t batch, int64_t m, int64_t n, int64_t k, Complex<double> alpha,
                  const Matrix& a, int64_t a_step, const Matrix& b, int64_t b_step, Complex<double> beta,
                  char* c, int64_t c_step, int64_t c_stride) {
  int64_t size = item_size(dtype);
  if (dtype >= DType::kFloat32 && k > 0 && m * n * k < kPlainGemm) {
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
  // Small GEMMs are spread over threads whole; a large one splits itself.
  constexpr double kSmallGemm = 32768;
  bool is_small = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) < kSmallGemm;
  if (!is_small && batch < 4) {
    for (int64_t i = 0; i < batch; ++i) one(i);
    return;
  }
  int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, m * n * k));
  parallel_for(0, batch, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) one(i);
  });
}

}  // namespace weft::cpu
