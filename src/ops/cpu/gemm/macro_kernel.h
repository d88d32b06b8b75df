#pragma once

#include <algorithm>
#include <type_traits>

#include "ops/cpu/gemm/packing.h"
#include "ops/cpu/scratch.h"

// The macro-kernel, after BLIS: a block of c, a block of a (MC x KC) and panels of b (KC x NC); loops over
// panels, and the micro-kernel over the tiles of each. It decides what is packed: a block of a where it is
// read by several panels, b where it is read by several tiles, and neither where its layout serves as it is.
// A part of c runs on one thread. Where parts share panels of b, the driver has packed those.
// Included by the files of instruction sets only.
namespace weft::cpu {

template <typename T, typename S, typename Isa>
class MacroKernel {
  using Micro = MicroKernel<T, Isa>;
  using Pack = Packing<T, S, Isa>;
  using RowsOfA = typename Micro::RowsOfA;
  using PanelOfB = typename Micro::PanelOfB;
  using Target = typename Micro::Target;
  static constexpr int kRows = Micro::kRows, kLanes = Micro::kLanes, kColumns = Micro::kColumns;
  static constexpr int64_t kColumnsAtOnce = Pack::kColumnsAtOnce;
  // Whether operands can be read in place: not those that packing widens.
  static constexpr bool kReadsInPlace = std::is_same_v<S, T>;

 public:
  // The functions of GemmKernels.
  static void tiles(const Gemm<T, S>& gemm, const GemmPart& part) {
    const int64_t depth = block_depth<T>(gemm.k);
    const bool packs_b = !kReadsInPlace || part.rows > 2 * kRows || gemm.b.column_stride != 1;
    const Panels panels = packs_b ? Panels::kPackedInTurn : Panels::kInPlace;
    const int64_t packed_columns = rounded_up(std::min(part.columns, kColumnsAtOnce), kColumns);
    Scratch packed_b(packed_columns * depth * static_cast<int64_t>(sizeof(T)));
    const int64_t last_column = part.column + part.columns;
    for (int64_t j = part.column; j < last_column; j += kBlockColumns)
      for (int64_t p = 0; p < gemm.k; p += depth)
        MacroKernel(gemm, {part.row, part.rows, j, std::min(kBlockColumns, last_column - j)}, p,
                    std::min(depth, gemm.k - p), panels, packed_b.as<T>())
            .run();
  }
  static void pack_panels(const Gemm<T, S>& gemm, int64_t p, int64_t depth, int64_t column, int64_t columns,
                          T* to) {
    Pack::pack_panels(gemm.b.from(p, column), depth, columns, to);
  }
  static void tiles_of_panels(const Gemm<T, S>& gemm, const GemmPart& part, int64_t p, int64_t depth,
                              T* panels) {
    MacroKernel(gemm, part, p, depth, Panels::kShared, panels).run();
  }

 private:
  // What the micro-kernel reads of b: b itself; a few panels at a time, packed when their turn comes, which
  // stay in the L1 or L2 cache while the rows of a pass by once; panels that all parts share.
  enum class Panels { kInPlace, kPackedInTurn, kShared };

  MacroKernel(const Gemm<T, S>& gemm, const GemmPart& part, int64_t p, int64_t depth, Panels panels,
              T* packed_b)
      : gemm_(gemm),
        part_(part),
        last_column_(part.column + part.columns),
        p_(p),
        depth_(depth),
        panels_(panels),
        packed_b_(packed_b) {}

  static int64_t rounded_up(int64_t n, int64_t unit) { return ceil_div(n, unit) * unit; }

  // Adds the terms p to p + depth.
  void run() {
    const bool packs = packs_a();
    const int64_t row_bytes = Pack::packed_row(gemm_.a, depth_) * static_cast<int64_t>(sizeof(T));
    Scratch packed_a(packs ? rounded_up(part_.rows, kRows) * row_bytes : 0);
    const RowsOfA rows =
        packs ? Pack::pack_rows(gemm_.a.from(part_.row, p_), part_.rows, depth_, packed_a.template as<T>())
              : rows_in_place();
    for (int64_t j = part_.column; j < last_column_; j += kColumns) column_of_tiles(rows, j);
  }

  // A packed block is worth its while where it is read several times. So many columns make up for packing
  // rows whose only fault is that their stride is not the fixed one.
  static constexpr int64_t kColumnsThatPay = 384;
  bool packs_a() const {
    if constexpr (!kReadsInPlace) return true;
    const bool is_dense = gemm_.a.column_stride == 1 && gemm_.a.row_stride == depth_;
    if (!is_dense) return part_.columns > 3 * kColumns;
    return Pack::uses_fixed_stride(depth_) && panels_ != Panels::kInPlace && part_.columns > kColumnsThatPay;
  }
  RowsOfA rows_in_place() const {
    if constexpr (kReadsInPlace)
      return {gemm_.a.at(part_.row, p_), gemm_.a.row_stride, gemm_.a.column_stride,
              kRows * gemm_.a.row_stride};
    else return {};
  }

  void column_of_tiles(const RowsOfA& rows, int64_t column) {
    const int64_t columns = std::min<int64_t>(kColumns, last_column_ - column);
    const Target to = target_at(column);
    const bool loads_packs = !to.addend.data || to.addend.column_stride <= 1;
    const bool has_whole_tiles = columns == kColumns && loads_packs && part_.rows >= kRows;
    const PanelOfB panel = panel_at(column, has_whole_tiles);
    if (columns == kColumns && loads_packs)
      return Micro::template column_of_tiles<2>(part_.rows, depth_, rows, panel, to);
    if (columns == kLanes && loads_packs)
      return Micro::template column_of_tiles<1>(part_.rows, depth_, rows, panel, to);
    for (int64_t i = 0; i < part_.rows; i += kRows)
      buffered_tile(std::min<int64_t>(kRows, part_.rows - i), columns,
                    {rows.data + i / kRows * rows.group_stride, rows.row_stride, rows.step, 0}, panel,
                    to.below(i));
  }

  // Of the first block along k: what is added to the result. Of the others: the sums so far.
  Target target_at(int64_t column) const {
    T* c = gemm_.c + part_.row * gemm_.c_row_stride + column;
    if (p_ > 0) return {gemm_.alpha, T(1), {c, gemm_.c_row_stride, 1}, c, gemm_.c_row_stride};
    const MatrixView<T>& addend = gemm_.addend;
    const T* added = addend.data ? addend.at(part_.row, column) : nullptr;
    return {gemm_.alpha, gemm_.beta, {added, addend.row_stride, addend.column_stride}, c, gemm_.c_row_stride};
  }

  PanelOfB panel_at(int64_t column, bool has_whole_tiles) const {
    const MatrixView<S>& b = gemm_.b;
    if (panels_ == Panels::kShared)
      return packed_panel(column - part_.column, column + kColumns < last_column_);
    if constexpr (kReadsInPlace) {
      const bool in_place = panels_ == Panels::kInPlace, has_rows = b.column_stride == 1;
      if (in_place && column + kColumns <= last_column_) return {b.at(p_, column), b.row_stride};
      if (has_whole_tiles && has_rows) return {b.at(p_, column), b.row_stride, packed_b_};
      if (in_place || has_rows) return newly_packed_panel(column, kColumns);
    }
    return newly_packed_panel(column, kColumnsAtOnce);
  }
  PanelOfB newly_packed_panel(int64_t column, int64_t at_once) const {
    const int64_t offset = (column - part_.column) % at_once;
    if (offset == 0)
      Pack::pack_panels(gemm_.b.from(p_, column), depth_, std::min(at_once, last_column_ - column),
                        packed_b_);
    return packed_panel(offset, offset + kColumns < at_once && column + kColumns < last_column_);
  }
  PanelOfB packed_panel(int64_t offset, bool has_next) const {
    const T* data = packed_b_ + offset * depth_;
    return {data, kColumns, nullptr, has_next && Micro::kPrefetches ? data + kColumns * depth_ : nullptr};
  }

  // Fewer columns than a tile has, or an addend with gaps: through buffers, so that all elements are computed
  // alike.
  void buffered_tile(int64_t rows, int64_t columns, const RowsOfA& a, const PanelOfB& b,
                     const Target& to) const {
    T before[kRows * kColumns] = {}, after[kRows * kColumns];
    if (to.addend.data)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) before[r * kColumns + c] = *to.addend.at(r, c);
    const MatrixView<T> addend{to.addend.data ? before : nullptr, kColumns, 1};
    const Target buffer{to.alpha, to.beta, addend, after, kColumns};
    if (columns <= kLanes) Micro::template column_of_tiles<1>(rows, depth_, a, b, buffer);
    else Micro::template column_of_tiles<2>(rows, depth_, a, b, buffer);
    for (int64_t r = 0; r < rows; ++r) std::copy_n(after + r * kColumns, columns, to.c + r * to.c_row_stride);
  }

  const Gemm<T, S>& gemm_;
  const GemmPart part_;
  const int64_t last_column_, p_, depth_;
  const Panels panels_;
  T* const packed_b_;
};

}  // namespace weft::cpu
