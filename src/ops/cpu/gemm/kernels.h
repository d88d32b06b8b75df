#pragma once

#include "ops/cpu/gemm/problem.h"

// What an instruction set has for GEMM (isa/gemm.cc): the tables that a driver chooses from at run time.
namespace weft::cpu {

// c has contiguous rows in all but `dots`.
template <typename T>
struct GemmKernels {
  int64_t tile_rows, tile_columns;  // MR and NR of the micro-kernel
  int64_t columns_at_once;          // of b: best packed together
  // A part of no more than block_rows() rows, over all of k; it packs what it needs for itself.
  void (*tiles)(const Gemm<T>&, const GemmPart&);
  // More rows: rows p to p + depth of some columns of b are packed for all parts, `depth` elements a column
  // ...
  void (*pack_panels)(const Gemm<T>&, int64_t p, int64_t depth, int64_t column, int64_t columns, T* to);
  // ... and a part, of no more than block_rows() rows, adds these terms. `panels` begin at its first column.
  void (*tiles_of_panels)(const Gemm<T>&, const GemmPart&, int64_t p, int64_t depth, T* panels);
  // Few rows: dot products, where a and the transpose of b have contiguous rows.
  void (*dots)(const Gemm<T>&, const GemmPart&);
};

// The same of 16-bit floats, which packing widens: c, of f32, has contiguous rows.
template <typename S>
struct WideningKernels {
  void (*tiles)(const Gemm<float, S>&, const GemmPart&);
};

// Those of the active instruction set.
template <typename T>
const GemmKernels<T>& gemm_kernels();

// Few rows against contiguous columns: no packed panel of b would be read often enough.
inline bool has_few_rows(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kFewRows = 6;
  return m <= kFewRows && n >= m && k >= 16;
}

}  // namespace weft::cpu
