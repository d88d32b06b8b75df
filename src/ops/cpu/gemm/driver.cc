// The driver of weft's own GEMM: chooses a code path by sizes and strides, and divides c among threads. Its
// loops are BLIS's five, but for what is parallel: columns by NC, k by KC, then parts of c (rows by MC at
// most) on threads, and in each the macro-kernel. There are three paths:
//
// * at most MC rows: threads share c, and each part packs what it reads, without a barrier (`tiles`);
// * more rows: all threads pack the panels of b of one KC x NC block, then all of them read these;
// * few rows against contiguous columns: dot products, nothing is packed (`dots`).
//
// k is divided by its length alone and never among threads, so an element's bits follow from the sizes and
// strides of the GEMM, whatever the number of threads.
#include "ops/cpu/gemm/driver.h"

#include <algorithm>

#include "ops/cpu/gemm/blocking.h"
#include "ops/cpu/gemm/kernels.h"
#include "ops/cpu/gemm/partition.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/scratch.h"

namespace weft::cpu {

const bool kOwnGemm = true;

WEFT_IN_EVERY_ISA(extern const GemmKernels<float> gemm_f32; extern const GemmKernels<double> gemm_f64;)

template <>
const GemmKernels<float>& gemm_kernels() {
  return active_table<GemmKernels<float>>(WEFT_ISA_TABLES(gemm_f32));
}
template <>
const GemmKernels<double>& gemm_kernels() {
  return active_table<GemmKernels<double>>(WEFT_ISA_TABLES(gemm_f64));
}

namespace {

template <typename T>
void run_in_parts(const Gemm<T>& g, int64_t row_unit, int64_t column_unit,
                  void (*run)(const Gemm<T>&, const GemmPart&)) {
  run_in_parts({0, g.m, 0, g.n}, grid_of(g.m, g.n, g.k), row_unit, column_unit,
               [&](const GemmPart& part) { run(g, part); });
}

// Blocks of rows against the same panels: several for each thread, but so high that a panel is read often
// once it has come from the last-level cache. Each packs its rows of a, so columns are divided only where
// rows are few.
Grid grid_of_blocks(int64_t m, int64_t rows_of_block) {
  constexpr int64_t kFewestRows = 48;
  const int64_t threads = usable_threads();
  const int64_t blocks = std::max(ceil_div(m, rows_of_block), std::min(4 * threads, m / kFewestRows));
  if (blocks < 2 * threads) return {blocks, ceil_div(2 * threads, blocks)};
  return {ceil_div(blocks, threads) * threads, 1};
}

// Many rows: panels of b are packed once, by all threads, and then read by all.
template <typename T>
void run_by_blocks(const Gemm<T>& g) {
  const GemmKernels<T>& isa = gemm_kernels<T>();
  const int64_t depth = block_depth<T>(g.k);
  const Grid grid = grid_of_blocks(g.m, block_rows<T>(depth));
  const int64_t packed_columns = ceil_div(std::min(g.n, kBlockColumns), isa.tile_columns) * isa.tile_columns;
  Scratch panels(packed_columns * depth * static_cast<int64_t>(sizeof(T)));
  for (int64_t j = 0; j < g.n; j += kBlockColumns)
    for (int64_t p = 0; p < g.k; p += depth) {
      const int64_t columns = std::min(kBlockColumns, g.n - j), deep = std::min(depth, g.k - p);
      auto panels_from = [&](int64_t column) { return panels.as<T>() + (column - j) * deep; };
      parallel_for(0, columns, isa.columns_at_once, [&](int64_t first, int64_t last) {
        isa.pack_panels(g, p, deep, j + first, last - first, panels_from(j + first));
      });
      run_in_parts({0, g.m, j, columns}, grid, isa.tile_rows, isa.tile_columns, [&](const GemmPart& part) {
        isa.tiles_of_panels(g, part, p, deep, panels_from(part.column));
      });
    }
}

template <typename T>
bool suits_dots(const Gemm<T>& g) {
  return has_few_rows(g.m, g.n, g.k) && g.b.row_stride == 1;
}
template <typename T>
void run_by_dots(Gemm<T> g) {
  Scratch rows(g.a.column_stride == 1 ? 0 : g.m * g.k * static_cast<int64_t>(sizeof(T)));
  if (g.a.column_stride != 1) {
    for (int64_t i = 0; i < g.m; ++i)
      for (int64_t j = 0; j < g.k; ++j) rows.as<T>()[i * g.k + j] = *g.a.at(i, j);
    g.a = {rows.as<T>(), g.k, 1};
  }
  run_in_parts(g, 3, 4, gemm_kernels<T>().dots);
}

}  // namespace

template <typename T>
void run_gemm(const Gemm<T>& gemm) {
  if (gemm.m == 0 || gemm.n == 0) return;
  if (gemm.k == 0) return store_addend_only(gemm);
  const Gemm<T> other = transposed(gemm);
  if (suits_dots(gemm)) return run_by_dots(gemm);
  if (suits_dots(other)) return run_by_dots(other);
  // A single column whose elements are adjacent is a row.
  const bool transposes = gemm.c_column_stride != 1 || (gemm.n == 1 && gemm.c_row_stride == 1);
  const Gemm<T>& chosen = transposes ? other : gemm;
  const GemmKernels<T>& isa = gemm_kernels<T>();
  if (chosen.m > block_rows<T>(block_depth<T>(chosen.k))) run_by_blocks(chosen);
  else run_in_parts(chosen, isa.tile_rows, isa.tile_columns, isa.tiles);
}

template void run_gemm(const Gemm<float>&);
template void run_gemm(const Gemm<double>&);

}  // namespace weft::cpu
