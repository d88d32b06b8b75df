#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "ops/cpu/gemm/micro_kernel.h"

// Packing, after BLIS: blocks of a and panels of b are copied into the order in which the micro-kernel reads
// them. What differs from BLIS:
//
// * Rows of a that are contiguous along k stay rows (the micro-kernel broadcasts single elements, and takes
//   any stride), each a fixed stride apart where that saves instructions. Only others are interleaved, MR
//   elements a step of k.
// * Panels of b are NR columns wide as usual, `depth` rows each, side by side. Columns that are contiguous
//   along k go through a transpose in registers, a square of packs at a time.
// * A ragged last panel of b is padded with zeros; a ragged last group of rows of a is not, since the
//   micro-kernel has every height.
//
// `S` is how the operand is stored: the type T of the sums, or a 16-bit float that is widened to f32 on the
// way. Only this file is compiled for each S; the micro-kernel sees packed T.
// Included by the files of instruction sets only.
namespace weft::cpu {

template <typename T, typename S, typename Isa>
struct Packing {
  using Micro = MicroKernel<T, Isa>;
  using P = Pack<T, Isa>;
  using RowsOfA = typename Micro::RowsOfA;
  static constexpr int kRows = Micro::kRows, kLanes = Micro::kLanes, kColumns = Micro::kColumns;
  static constexpr int64_t kColumnsAtOnce = 4 * kColumns;  // of b: best packed together

  // --- a -------------------------------------------------------------------------------------------------

  // Short rows would waste too much of the fixed stride.
  static bool uses_fixed_stride(int64_t depth) {
    return Micro::kEmbeddedBroadcast && depth >= kMaxBlockDepth<T> / 2;
  }
  // Elements that a packed row takes.
  static int64_t packed_row(const MatrixView<S>& a, int64_t depth) {
    return a.column_stride == 1 && uses_fixed_stride(depth) ? Micro::kFixedRowStride : depth;
  }

  static RowsOfA pack_rows(const MatrixView<S>& a, int64_t rows, int64_t depth, T* to) {
    if (a.column_stride == 1) {
      const int64_t stride = packed_row(a, depth);
      for (int64_t r = 0; r < rows; ++r) copy(a.at(r, 0), depth, to + r * stride);
      return {to, stride, 1, kRows * stride};
    }
    const int64_t packed = a.row_stride == 1 ? interleave_columns(a, rows, depth, to) : 0;
    for (int64_t first = packed; first < rows; first += kRows)
      for (int64_t p = 0; p < depth; ++p)
        gather(a.at(first, p), a.row_stride, std::min<int64_t>(kRows, rows - first),
               to + first * depth + p * kRows);
    return {to, 1, kRows, kRows * depth};
  }

  // --- b -------------------------------------------------------------------------------------------------

  // All panels of some columns, depth * kColumns elements apart.
  static void pack_panels(const MatrixView<S>& b, int64_t depth, int64_t columns, T* to) {
    int64_t packed = 0;
    if (b.column_stride == 1) {
      // Rows may be pages apart: several panels at once look up each page once.
      const int64_t whole = columns / kColumns * kColumns;
      for (; packed < whole; packed = std::min(packed + kColumnsAtOnce, whole))
        split_rows(b.from(0, packed), depth, std::min(kColumnsAtOnce, whole - packed), to + packed * depth);
    }
    for (; packed < columns; packed += kColumns)
      pack_panel(b.from(0, packed), depth, std::min<int64_t>(kColumns, columns - packed),
                 to + packed * depth);
  }

 private:
  // --- elements of S as T --------------------------------------------------------------------------------

  static constexpr bool kIsCopy = std::is_same_v<S, T>;

  static P load(const S* from) {
    if constexpr (kIsCopy) return P::load(from);
    else if constexpr (std::is_same_v<S, Half>) return Isa::template from_half<typename P::V>(from);
    else return Isa::template from_bfloat16<typename P::V>(from);
  }
  static void copy(const S* from, int64_t count, T* to) {
    if constexpr (kIsCopy) {
      std::copy_n(from, count, to);
    } else {
      const int64_t whole = count / kLanes * kLanes;
      for (int64_t i = 0; i < whole; i += kLanes) load(from + i).store(to + i);
      if (whole < count) copy_tail(from + whole, count - whole, to + whole);
    }
  }
  static void copy_tail(const S* from, int64_t count, T* to) {
    S narrow[kLanes] = {};
    T wide[kLanes];
    __builtin_memcpy(narrow, from, static_cast<size_t>(count) * sizeof(S));
    load(narrow).store(wide);
    __builtin_memcpy(to, wide, static_cast<size_t>(count) * sizeof(T));
  }
  // At most kColumns elements.
  static void gather(const S* from, int64_t stride, int64_t count, T* to) {
    if constexpr (kIsCopy) {
      for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
    } else {
      S narrow[kColumns];
      for (int64_t i = 0; i < count; ++i) narrow[i] = from[i * stride];
      copy(narrow, count, to);
    }
  }

  // --- the parts -----------------------------------------------------------------------------------------

  // Rows of a that are adjacent in memory, kRows by kRows; gives how many that are. Several groups at once
  // use the whole of the cache lines that they read.
  static int64_t interleave_columns(const MatrixView<S>& a, int64_t rows, int64_t depth, T* to) {
    constexpr int64_t kGroupsAtOnce = 8;
    const int64_t whole = rows / kRows * kRows;
    for (int64_t first = 0; first < whole; first += kGroupsAtOnce * kRows) {
      const int64_t groups = std::min((whole - first) / kRows, kGroupsAtOnce);
      for (int64_t p = 0; p < depth; ++p) {
        T wide[kIsCopy ? 1 : kGroupsAtOnce * kRows];
        const T* column = wide;
        if constexpr (kIsCopy) column = a.at(first, p);
        else copy(a.at(first, p), groups * kRows, wide);
        for (int64_t g = 0; g < groups; ++g)
          __builtin_memcpy(to + first * depth + (g * depth + p) * kRows, column + g * kRows,
                           kRows * sizeof(T));
      }
    }
    return whole;
  }

  // Whole panels from contiguous rows.
  static void split_rows(const MatrixView<S>& b, int64_t depth, int64_t columns, T* to) {
    for (int64_t p = 0; p < depth; ++p)
      for (int64_t c = 0; c < columns; c += kColumns) {
        const S* from = b.at(p, c);
        T* target = to + c * depth + p * kColumns;
        load(from).store(target);
        load(from + kLanes).store(target + kLanes);
      }
  }

  // A panel by any strides. Columns that the matrix does not have are zero.
  static void pack_panel(const MatrixView<S>& b, int64_t depth, int64_t columns, T* to) {
    if (columns < kColumns) std::fill_n(to, depth * kColumns, T(0));
    int64_t transposed_columns = 0, transposed_depth = 0;
    if (b.row_stride == 1) {
      transposed_columns = columns / kLanes * kLanes;
      transposed_depth = depth / kLanes * kLanes;
      for (int64_t c = 0; c < transposed_columns; c += kLanes)
        for (int64_t p = 0; p < transposed_depth; p += kLanes)
          transpose(b.from(p, c), to + p * kColumns + c, std::make_index_sequence<kLanes>());
    }
    for (int64_t p = 0; p < depth; ++p) {
      const int64_t c = p < transposed_depth ? transposed_columns : 0;
      gather(b.at(p, c), b.column_stride, columns - c, to + p * kColumns + c);
    }
  }

  // kLanes columns, each contiguous, become rows of a panel: the first half of the packs is merged with the
  // second, log2 times.
  template <size_t... i>
  static void transpose(const MatrixView<S>& b, T* to, std::index_sequence<i...>) {
    P x[] = {load(b.data + static_cast<int64_t>(i) * b.column_stride)...};
    constexpr auto kHalf = std::make_index_sequence<kLanes / 2>();
    merge_halves(x, kHalf);
    if constexpr (kLanes > 2) merge_halves(x, kHalf);
    if constexpr (kLanes > 4) merge_halves(x, kHalf);
    if constexpr (kLanes > 8) merge_halves(x, kHalf);
    static_assert(kLanes <= 16);
    (x[i].store(to + static_cast<int64_t>(i) * kColumns), ...);
  }
  template <size_t... i>
  static void merge_halves(P (&x)[kLanes], std::index_sequence<i...>) {
    P merged[kLanes];
    (merge_lanes(x[i], x[i + kLanes / 2], merged[2 * i], merged[2 * i + 1]), ...);
    ((x[2 * i] = merged[2 * i], x[2 * i + 1] = merged[2 * i + 1]), ...);
  }
};

}  // namespace weft::cpu
