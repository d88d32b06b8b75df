#pragma once

#include <algorithm>

#include "ops/cpu/gemm/blocking.h"
#include "ops/cpu/gemm/problem.h"
#include "weft/base/parallel.h"

// How a driver of weft's own loops divides c among threads. Any division gives the same bits, so these follow
// the number of threads.
namespace weft::cpu {

// c in `rows` times `columns` parts.
struct Grid {
  int64_t rows, columns;
};

// A few parts a thread: the others take over what one that is late has not begun. A part packs its rows of a
// and its columns of b, so it is as square as can be.
inline Grid grid_of(int64_t m, int64_t n, int64_t k) {
  constexpr double kThreadWork = 1 << 17;  // multiplications that are worth waking a thread
  constexpr double kPartWork = 1 << 22;    // so many more that packing costs little
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const auto threads = static_cast<double>(usable_threads());
  const double most = threads == 1 ? 1 : std::clamp(work / kPartWork, threads, 4 * threads);
  const auto parts = static_cast<int64_t>(std::clamp(work / kThreadWork, 1.0, most));
  auto packed = [&](const Grid& grid) { return m / grid.rows + n / grid.columns; };
  Grid best{1, parts};
  for (int64_t rows = 1; rows <= parts; ++rows)
    if (const Grid grid{rows, parts / rows}; parts % rows == 0 && packed(grid) < packed(best)) best = grid;
  return best;
}

// Calls `run` for the parts of a part of c, cut in units of tiles. Neighbours differ by one tile at most.
template <typename Run>
void run_in_parts(const GemmPart& whole, const Grid& grid, int64_t row_unit, int64_t column_unit, Run run) {
  auto begin_of = [](int64_t part, int64_t parts, int64_t extent, int64_t unit) {
    return std::min(ceil_div(extent, unit) * part / parts * unit, extent);
  };
  parallel_for(0, grid.rows * grid.columns, 1, [&](int64_t first, int64_t last) {
    for (; first < last; ++first) {
      const int64_t i = first / grid.columns, j = first % grid.columns;
      const int64_t row = begin_of(i, grid.rows, whole.rows, row_unit),
                    rows = begin_of(i + 1, grid.rows, whole.rows, row_unit) - row,
                    column = begin_of(j, grid.columns, whole.columns, column_unit),
                    columns = begin_of(j + 1, grid.columns, whole.columns, column_unit) - column;
      if (rows > 0 && columns > 0) run(GemmPart{whole.row + row, rows, whole.column + column, columns});
    }
  });
}

}  // namespace weft::cpu
