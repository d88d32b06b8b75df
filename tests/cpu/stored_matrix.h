#pragma once

#include <random>

#include "guarded_memory.h"
#include "ops/cpu/gemm/problem.h"

namespace weft::cpu::testing {

enum class MatrixLayout { kRows, kColumns, kGaps };
inline constexpr MatrixLayout kMatrixLayouts[] = {MatrixLayout::kRows, MatrixLayout::kColumns,
                                                  MatrixLayout::kGaps};

// A matrix whose memory ends with its last element: reading on is a fault.
template <typename T>
struct StoredMatrix {
  GuardedVector<T> memory;
  MatrixView<T> view;
};
template <typename T>
StoredMatrix<T> random_matrix(int64_t rows, int64_t columns, MatrixLayout layout, std::mt19937& bits) {
  StoredMatrix<T> result;
  const int64_t step = layout == MatrixLayout::kGaps ? 2 : 1;
  const bool by_rows = layout != MatrixLayout::kColumns;
  const int64_t pitch = (by_rows ? columns : rows) * step + (layout == MatrixLayout::kGaps ? 3 : 0);
  const int64_t lines = by_rows ? rows : columns, line = by_rows ? columns : rows;
  result.memory.resize(static_cast<size_t>((lines - 1) * pitch + (line - 1) * step + 1));
  std::uniform_real_distribution<double> numbers(-1, 1);
  for (T& x : result.memory) x = static_cast<T>(numbers(bits));
  result.view = {result.memory.data(), by_rows ? pitch : step, by_rows ? step : pitch};
  return result;
}

}  // namespace weft::cpu::testing
