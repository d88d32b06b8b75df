#include "ops/cpu/product.h"

#include <algorithm>

#include "ops/cpu/isa.h"
#include "ops/cpu/scratch.h"
#include "weft/base/parallel.h"

namespace weft::cpu {

#define WEFT_ISA_LOOPS(isa)                      \
  namespace isa {                                \
  extern const ProductLoops<float> product_f32;  \
  extern const ProductLoops<double> product_f64; \
  }
WEFT_ISA_LOOPS(baseline)
WEFT_ISA_LOOPS(avx2)
#undef WEFT_ISA_LOOPS

namespace {

template <typename T>
const ProductLoops<T>& loops() {
  constexpr bool is_float = sizeof(T) == 4;
#if defined(WEFT_HAS_AVX2)
  if (active_isa() == IsaLevel::kAvx2) {
    if constexpr (is_float) return avx2::product_f32;
    else return avx2::product_f64;
  }
#endif
  if constexpr (is_float) return baseline::product_f32;
  else return baseline::product_f64;
}

constexpr double kThreadWork = 1 << 17;  // multiplications that are worth waking a thread
constexpr double kPartWork = 1 << 22;    // so many more that copies of the operands cost little

// A result in `rows` times `columns` parts.
struct Grid {
  int64_t rows, columns;
};

// A few parts a thread: the others take over what one that is late has not begun. A part copies its rows of a
// and its columns of b, so they are as square as can be.
template <typename T>
Grid grid_of(const Product<T>& p) {
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const double threads = num_threads();
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

// Parts are cut in units of what the innermost loop computes at once.
template <typename T>
void run_in_parts(const Product<T>& p, int64_t row_unit, int64_t column_unit,
                  void (*run)(const Product<T>&, const ProductPart&)) {
  const Grid grid = grid_of(p);
  auto step_of = [](int64_t extent, int64_t parts, int64_t unit) {
    const int64_t units = (extent + unit - 1) / unit;
    return (units + parts - 1) / parts * unit;
  };
  const int64_t row_step = step_of(p.m, grid.rows, row_unit),
                column_step = step_of(p.n, grid.columns, column_unit);
  parallel_for(0, grid.rows * grid.columns, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = i / grid.columns * row_step, column = i % grid.columns * column_step;
      const ProductPart part{row, std::min(row_step, p.m - row), column, std::min(column_step, p.n - column)};
      if (part.rows > 0 && part.columns > 0) run(p, part);
    }
  });
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
  run_in_parts(p, 3, 4, loops<T>().dots);
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
void multiply(const Product<T>& product) {
  if (product.m == 0 || product.n == 0) return;
  if (product.k == 0) return add_nothing(product);
  const Product<T> other = transposed(product);
  if (suits_dots(product)) return multiply_by_dots(product);
  if (suits_dots(other)) return multiply_by_dots(other);
  // A single column whose elements follow each other is a row.
  const bool turns = product.c_column_stride != 1 || (product.n == 1 && product.c_row_stride == 1);
  run_in_parts(turns ? other : product, loops<T>().rows, loops<T>().columns, loops<T>().tiles);
}

template void multiply(const Product<float>&);
template void multiply(const Product<double>&);

}  // namespace weft::cpu
