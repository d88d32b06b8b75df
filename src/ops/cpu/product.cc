#include "ops/cpu/product.h"

#include <unistd.h>

#include <algorithm>

#include "ops/cpu/isa.h"
#include "ops/cpu/scratch.h"
#include "weft/base/parallel.h"

namespace weft::cpu {

WEFT_IN_EVERY_ISA(extern const ProductLoops<float> product_f32;
                  extern const ProductLoops<double> product_f64;)

namespace {

template <typename T>
const ProductLoops<T>& product_loops();
template <>
const ProductLoops<float>& product_loops() {
  return active_table<ProductLoops<float>>(WEFT_ISA_TABLES(product_f32));
}
template <>
const ProductLoops<double>& product_loops() {
  return active_table<ProductLoops<double>>(WEFT_ISA_TABLES(product_f64));
}

constexpr double kThreadWork = 1 << 17;  // multiplications that are worth waking a thread
constexpr double kPartWork = 1 << 22;    // so many more that copies of the operands cost little

int64_t second_level_cache() {
  constexpr long kUsual = 512 * 1024, kLeast = 256 * 1024, kMost = 4096 * 1024;
#ifdef _SC_LEVEL2_CACHE_SIZE
  const long size = sysconf(_SC_LEVEL2_CACHE_SIZE);  // 0 or -1: not known
#else
  const long size = 0;
#endif
  return size > 0 ? std::clamp(size, kLeast, kMost) : kUsual;
}

int64_t quotient_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A result in `rows` times `columns` parts.
struct Grid {
  int64_t rows, columns;
};

// A few parts a thread: the others take over what one that is late has not begun. A part copies its rows of a
// and its columns of b, so they are as square as can be.
template <typename T>
Grid grid_of(const Product<T>& p) {
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const auto threads = static_cast<double>(usable_threads());
  const double most = threads == 1 ? 1 : std::clamp(work / kPartWork, threads, 4 * threads);
  const auto parts = static_cast<int64_t>(std::clamp(work / kThreadWork, 1.0, most));
  Grid best{1, parts};
  for (int64_t rows = 1; rows <= parts; ++rows) {
    if (parts % rows != 0) continue;
    auto copied = [&](const Grid& grid) { return p.m / grid.rows + p.n / grid.columns; };
    const Grid grid{rows, parts / rows};
    if (copied(grid) < copied(best)) best = grid;
  }
  return best;
}

// Calls `run` for the parts of a part of the result, cut in units of what the innermost loop computes at
// once. Neighbours differ by one unit, and so do halves.
template <typename Run>
void run_in_parts(const ProductPart& whole, const Grid& grid, int64_t row_unit, int64_t column_unit,
                  Run run) {
  auto begin_of = [](int64_t part, int64_t parts, int64_t extent, int64_t unit) {
    return std::min(quotient_up(extent, unit) * part / parts * unit, extent);
  };
  parallel_for(0, grid.rows * grid.columns, 1, [&](int64_t first, int64_t last) {
    for (; first < last; ++first) {
      const int64_t i = first / grid.columns, j = first % grid.columns;
      const int64_t row = begin_of(i, grid.rows, whole.rows, row_unit),
                    rows = begin_of(i + 1, grid.rows, whole.rows, row_unit) - row,
                    column = begin_of(j, grid.columns, whole.columns, column_unit),
                    columns = begin_of(j + 1, grid.columns, whole.columns, column_unit) - column;
      if (rows > 0 && columns > 0) run(ProductPart{whole.row + row, rows, whole.column + column, columns});
    }
  });
}
template <typename T>
void run_in_parts(const Product<T>& p, int64_t row_unit, int64_t column_unit,
                  void (*run)(const Product<T>&, const ProductPart&)) {
  run_in_parts({0, p.m, 0, p.n}, grid_of(p), row_unit, column_unit,
               [&](const ProductPart& part) { run(p, part); });
}

// Blocks of rows against the same panels: several for each thread, but so high that a panel is read often for
// one way from the last-level cache. Each copies its rows of a, so columns are divided only where rows are
// few.
template <typename T>
Grid grid_of_blocks(const Product<T>& p, int64_t block_rows) {
  constexpr int64_t kFewestRows = 48;
  const int64_t threads = usable_threads();
  const int64_t blocks = std::max(quotient_up(p.m, block_rows), std::min(4 * threads, p.m / kFewestRows));
  if (blocks < 2 * threads) return {blocks, quotient_up(2 * threads, blocks)};
  return {quotient_up(blocks, threads) * threads, 1};
}

// Many rows: panels of b are copied once, by all threads, and then read by all.
template <typename T>
void multiply_by_blocks(const Product<T>& p) {
  const ProductLoops<T>& isa = product_loops<T>();
  const int64_t depth = depth_of_blocks<T>(p.k);
  const Grid grid = grid_of_blocks(p, rows_of_blocks<T>(depth));
  Scratch panels(quotient_up(std::min(p.n, kBlockColumns), isa.columns) * isa.columns * depth *
                 static_cast<int64_t>(sizeof(T)));
  for (int64_t j = 0; j < p.n; j += kBlockColumns)
    for (int64_t q = 0; q < p.k; q += depth) {
      const int64_t columns = std::min(kBlockColumns, p.n - j), deep = std::min(depth, p.k - q);
      auto panels_from = [&](int64_t column) { return panels.as<T>() + (column - j) * deep; };
      parallel_for(0, columns, isa.columns_at_once, [&](int64_t first, int64_t last) {
        isa.copy_panels(p, q, deep, j + first, last - first, panels_from(j + first));
      });
      run_in_parts({0, p.m, j, columns}, grid, isa.rows, isa.columns, [&](const ProductPart& part) {
        isa.tiles_of_panels(p, part, q, deep, panels_from(part.column));
      });
    }
}

// Few rows against contiguous columns: no copy of b would be read often enough.
constexpr int64_t kFewRows = 6;
template <typename T>
bool suits_dots(const Product<T>& p) {
  return p.m <= kFewRows && p.n >= p.m && p.k >= 16 && p.b.row_stride == 1;
}
template <typename T>
void multiply_by_dots(Product<T> p) {
  Scratch rows(p.a.column_stride == 1 ? 0 : p.m * p.k * static_cast<int64_t>(sizeof(T)));
  if (p.a.column_stride != 1) {
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.k; ++j) rows.as<T>()[i * p.k + j] = *p.a.at(i, j);
    p.a = {rows.as<T>(), p.k, 1};
  }
  run_in_parts(p, 3, 4, product_loops<T>().dots);
}

// A sum without terms.
template <typename T>
void add_nothing(const Product<T>& p) {
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j)
      p.c[i * p.c_row_stride + j * p.c_column_stride] = p.addend.data ? p.beta * *p.addend.at(i, j) : T(0);
}

}  // namespace

template <typename T>
int64_t rows_of_blocks(int64_t depth) {
  static const int64_t cache = second_level_cache();
  return std::max<int64_t>(cache / 2 / (static_cast<int64_t>(sizeof(T)) * depth), 1);
}

template <typename T>
void multiply(const Product<T>& product) {
  if (product.m == 0 || product.n == 0) return;
  if (product.k == 0) return add_nothing(product);
  const Product<T> other = transposed(product);
  if (suits_dots(product)) return multiply_by_dots(product);
  if (suits_dots(other)) return multiply_by_dots(other);
  // A single column whose elements follow each other is a row.
  const bool turns = product.c_column_stride != 1 || (product.n == 1 && product.c_row_stride == 1);
  const Product<T>& chosen = turns ? other : product;
  const ProductLoops<T>& isa = product_loops<T>();
  if (chosen.m > rows_of_blocks<T>(depth_of_blocks<T>(chosen.k))) multiply_by_blocks(chosen);
  else run_in_parts(chosen, isa.rows, isa.columns, isa.tiles);
}

template int64_t rows_of_blocks<float>(int64_t);
template int64_t rows_of_blocks<double>(int64_t);
template void multiply(const Product<float>&);
template void multiply(const Product<double>&);

}  // namespace weft::cpu
