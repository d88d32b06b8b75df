#pragma once

#include <algorithm>
#include <utility>

#include "ops/cpu/gemm/problem.h"
#include "ops/cpu/pack_generic.h"

// Few rows of a against contiguous columns of b: no packed panel of b would be read often enough to pay for
// packing, so b is read in place, along k, as BLIS does in its "sup" kernels of the dot product kind. An
// element is a dot product with one accumulator a lane; 3 x 4 elements at a time keep enough FMAs in flight
// to hide their latency. Lanes are summed at the end, so these bits depend on the width of a pack, unlike
// those of the micro-kernel. Included by the files of instruction sets only.
namespace weft::cpu {

template <typename T, typename Isa>
struct DotKernel {
  using P = Pack<T, Isa>;
  static constexpr int kLanes = P::kLanes;
  static constexpr int64_t kRows = 3, kColumns = 4;

  static void dots(const Gemm<T>& gemm, const GemmPart& part) {
    const int64_t last_column = part.column + part.columns, last_row = part.row + part.rows;
    for (int64_t c = part.column; c < last_column; c += kColumns) {
      const int64_t columns = std::min(kColumns, last_column - c);
      int64_t r = part.row;
      for (; r + 3 <= last_row; r += 3) tile(gemm, r, c, columns, std::make_index_sequence<3 * kColumns>());
      if (r + 2 <= last_row) tile(gemm, r, c, columns, std::make_index_sequence<2 * kColumns>());
      else if (r < last_row) tile(gemm, r, c, columns, std::make_index_sequence<kColumns>());
    }
  }

 private:
  // Columns beyond the last repeat it, and are not stored.
  template <size_t... cell>
  static void tile(const Gemm<T>& gemm, int64_t row, int64_t column, int64_t columns,
                   std::index_sequence<cell...>) {
    P sums[sizeof...(cell)];
    ((sums[cell] = P(0)), ...);
    const T* a[] = {gemm.a.at(row + row_of(cell), 0)...};
    const T* b[] = {gemm.b.at(0, column + std::min(column_of(cell), columns - 1))...};
    const int64_t whole = gemm.k / kLanes * kLanes;
    for (int64_t p = 0; p < whole; p += kLanes)
      ((sums[cell] = multiply_add(P::load(a[cell] + p), P::load(b[cell] + p), sums[cell])), ...);
    if (const int64_t rest = gemm.k - whole; rest > 0)
      ((sums[cell] = multiply_add(tail(a[cell] + whole, rest), tail(b[cell] + whole, rest), sums[cell])),
       ...);
    (store(gemm, row + row_of(cell), column + column_of(cell), column_of(cell) < columns, sums[cell]), ...);
  }
  static constexpr int64_t row_of(size_t cell) { return static_cast<int64_t>(cell) / kColumns; }
  static constexpr int64_t column_of(size_t cell) { return static_cast<int64_t>(cell) % kColumns; }

  static P tail(const T* x, int64_t count) {
    T lanes[kLanes] = {};
    std::copy_n(x, count, lanes);
    return P::load(lanes);
  }
  static T sum_of(P x) {
    T sum = x.v[0];
    for (int i = 1; i < kLanes; ++i) sum += x.v[i];
    return sum;
  }
  static void store(const Gemm<T>& gemm, int64_t row, int64_t column, bool exists, P sum) {
    if (!exists) return;
    T value = gemm.alpha * sum_of(sum);
    if (gemm.addend.data) value += gemm.beta * *gemm.addend.at(row, column);
    gemm.c[row * gemm.c_row_stride + column * gemm.c_column_stride] = value;
  }
};

}  // namespace weft::cpu
