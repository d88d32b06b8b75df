// The drivers where the build has no micro-kernels for its processor (WEFT_OWN_GEMM is off): OpenBLAS
// computes tiles. The contract is that of driver.cc, but strides that BLAS has no name for and 16-bit
// operands are copied whole, and the addend is copied into c first.
#include "ops/cpu/gemm/convert_matrix.h"
#include "ops/cpu/gemm/driver.h"
#include "ops/cpu/gemm/openblas.h"
#include "ops/cpu/scratch.h"

namespace weft::cpu {

const bool kOwnGemm = false;

template <typename T>
void run_gemm(const Gemm<T>& gemm) {
  if (gemm.m == 0 || gemm.n == 0) return;
  if (gemm.k == 0) return store_addend_only(gemm);
  const Gemm<T> g = gemm.c_column_stride != 1 && gemm.n > 1 ? transposed(gemm) : gemm;
  if (g.addend.data && g.addend.data != g.c) convert_matrix(g.addend, g.m, g.n, g.c, g.c_row_stride, 1);
  openblas_gemm(g.m, g.n, g.k, g.alpha, g.a, g.b, g.addend.data ? g.beta : T(0), g.c, g.c_row_stride);
}

template <typename S>
void run_widening_gemm(const Gemm<float, S, S>& g) {
  auto widened = [](const MatrixView<S>& x, int64_t rows, int64_t columns, const Scratch& to) {
    convert_matrix(x, rows, columns, to.as<float>(), columns, 1);
    return MatrixView<float>{to.as<float>(), columns, 1};
  };
  const Scratch a(g.m * g.k * 4), b(g.k * g.n * 4), c(g.m * g.n * 4);
  const MatrixView<float> addend = g.addend.data ? widened(g.addend, g.m, g.n, c) : MatrixView<float>{};
  run_gemm(Gemm<float>{g.m, g.n, g.k, g.alpha, g.beta, widened(g.a, g.m, g.k, a), widened(g.b, g.k, g.n, b),
                       addend, c.as<float>(), g.n, 1});
  convert_matrix(MatrixView<float>{c.as<float>(), g.n, 1}, g.m, g.n, g.c, g.c_row_stride, g.c_column_stride);
}

template void run_gemm(const Gemm<float>&);
template void run_gemm(const Gemm<double>&);
template void run_widening_gemm(const Gemm<float, Half, Half>&);
template void run_widening_gemm(const Gemm<float, BFloat16, BFloat16>&);

}  // namespace weft::cpu
