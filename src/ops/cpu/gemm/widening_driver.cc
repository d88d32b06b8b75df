// The driver of GEMM of 16-bit floats: packing widens a and b to f32, the f32 micro-kernel accumulates into
// an f32 block of c, and that is rounded into c once, when all of k has been added. There are no f32 copies
// of whole operands: a thread has a block of c, a packed block of a and a few packed panels of b.
//
// Panels of b are not shared by threads here. Each part of c is computed over all of k before the next, since
// its sums stay in f32 until then, and panels over all of k would be a copy of b; packing them again for each
// block of rows costs one widening load for block_rows() FMAs.
//
// Results have the bits of widened, dense operands in the f32 driver: a chain of FMAs along k (cut by k
// alone), or dot products where that driver would take them.
#include <algorithm>

#include "ops/cpu/gemm/blocking.h"
#include "ops/cpu/gemm/convert_matrix.h"
#include "ops/cpu/gemm/driver.h"
#include "ops/cpu/gemm/kernels.h"
#include "ops/cpu/gemm/partition.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/scratch.h"

namespace weft::cpu {

WEFT_IN_EVERY_ISA(extern const WideningKernels<Half> gemm_f16;
                  extern const WideningKernels<BFloat16> gemm_bf16;)

namespace {

template <typename S>
const WideningKernels<S>& widening_kernels();
template <>
const WideningKernels<Half>& widening_kernels() {
  return active_table<WideningKernels<Half>>(WEFT_ISA_TABLES(gemm_f16));
}
template <>
const WideningKernels<BFloat16>& widening_kernels() {
  return active_table<WideningKernels<BFloat16>>(WEFT_ISA_TABLES(gemm_bf16));
}

constexpr int64_t kFloatBytes = sizeof(float);

// Calls `run` with the GEMM of a part of c, whose result and addend are f32, and rounds the result into c.
template <typename S, typename Run>
void run_in_f32(const Gemm<float, S, S>& g, const GemmPart& part, Run run) {
  Scratch block(part.rows * part.columns * kFloatBytes);
  float* c = block.as<float>();
  const MatrixView<float> wide{c, part.columns, 1};
  if (g.addend.data)
    convert_matrix(g.addend.from(part.row, part.column), part.rows, part.columns, c, part.columns, 1);
  run(Gemm<float, S>{part.rows, part.columns, g.k, g.alpha, g.beta, g.a.from(part.row, 0),
                     g.b.from(0, part.column), g.addend.data ? wide : MatrixView<float>{}, c, part.columns,
                     1});
  convert_matrix(wide, part.rows, part.columns,
                 g.c + part.row * g.c_row_stride + part.column * g.c_column_stride, g.c_row_stride,
                 g.c_column_stride);
}

// Blocks of c are bounded, so that an f32 block and a packed block of a stay in the L2 cache.
template <typename S>
void run_by_widened_tiles(const Gemm<float, S, S>& g) {
  constexpr int64_t kMostRows = 512, kMostColumns = 1024;
  const GemmKernels<float>& isa = gemm_kernels<float>();
  const int64_t rows = std::min(block_rows<float>(block_depth<float>(g.k)), kMostRows);
  Grid grid = grid_of(g.m, g.n, g.k);
  grid.rows = std::max(grid.rows, ceil_div(g.m, rows));
  grid.columns = std::max(grid.columns, ceil_div(g.n, kMostColumns));
  run_in_parts({0, g.m, 0, g.n}, grid, isa.tile_rows, isa.tile_columns, [&](const GemmPart& part) {
    run_in_f32(g, part,
               [](const Gemm<float, S>& wide) { widening_kernels<S>().tiles(wide, {0, wide.m, 0, wide.n}); });
  });
}

// Dot products of few rows with columns that are widened some at a time.
template <typename S>
void run_by_widened_dots(const Gemm<float, S, S>& g) {
  Scratch rows(g.m * g.k * kFloatBytes);
  convert_matrix(g.a, g.m, g.k, rows.as<float>(), g.k, 1);
  constexpr int64_t kElementsAtOnce = 1 << 16;
  const int64_t at_once = std::clamp<int64_t>(kElementsAtOnce / g.k / 4 * 4, 4, 64);
  Grid grid = grid_of(g.m, g.n, g.k);
  grid = {1, std::max(grid.rows * grid.columns, ceil_div(g.n, at_once))};
  run_in_parts({0, g.m, 0, g.n}, grid, 3, 4, [&](const GemmPart& part) {
    Scratch columns(part.columns * g.k * kFloatBytes);
    convert_matrix(g.b.from(0, part.column), g.k, part.columns, columns.as<float>(), 1, g.k);
    run_in_f32(g, part, [&](const Gemm<float, S>& wide) {
      const Gemm<float> dense{wide.m,
                              wide.n,
                              wide.k,
                              wide.alpha,
                              wide.beta,
                              {rows.as<float>(), g.k, 1},
                              {columns.as<float>(), 1, g.k},
                              wide.addend,
                              wide.c,
                              wide.c_row_stride,
                              wide.c_column_stride};
      gemm_kernels<float>().dots(dense, {0, dense.m, 0, dense.n});
    });
  });
}

}  // namespace

template <typename S>
void run_widening_gemm(const Gemm<float, S, S>& gemm) {
  if (gemm.m == 0 || gemm.n == 0) return;
  // A dense a has contiguous rows, the columns of its transpose.
  if (has_few_rows(gemm.n, gemm.m, gemm.k)) run_by_widened_dots(transposed(gemm));
  else run_by_widened_tiles(gemm);
}

template void run_widening_gemm(const Gemm<float, Half, Half>&);
template void run_widening_gemm(const Gemm<float, BFloat16, BFloat16>&);

}  // namespace weft::cpu
