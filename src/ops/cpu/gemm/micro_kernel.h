#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "ops/cpu/gemm/blocking.h"
#include "ops/cpu/gemm/problem.h"
#include "ops/cpu/pack_generic.h"

// The micro-kernel, after BLIS: a tile of MR x NR accumulators in registers takes rank-1 updates from MR rows
// of a and a panel of NR columns of b. MR is kRows (6, or 12 with AVX-512), NR is kColumns (two packs).
// It differs from BLIS's in five ways:
//
// * Operands need no packing. Rows of a have any strides, and so has a panel of b along k; the layouts that
//   packing makes are known at compile time. Rows of a that are contiguous along k stay so when packed: they
//   are broadcast element by element either way, and copying rows is cheaper than interleaving them.
// * With AVX-512's embedded broadcast, an FMA reads its element of a from memory. Rows a fixed stride apart
//   then need no address arithmetic, and no register for an element: 30 instructions for 24 FMAs. Two rows of
//   three do so for both packs; all of them would be bound by the load ports.
// * The first tile that reads a panel of b may pack it on the way (`PanelOfB::pack_to`), which costs less
// than
//   a pass of its own.
// * A call computes a whole column of tiles, so that what they share is set up once; that counts for small k.
// * What is added (beta * addend: a bias, c itself) is read as the tile is stored. Without one, and with
// alpha
//   1, tiles only store.
//
// Each element is one chain of FMAs in the order of k, then alpha * sum, then beta * addend + that: its bits
// do not depend on the tile that it is in, on layouts, or on the instruction set (but for one without FMA).
// Included by the files of instruction sets only.
namespace weft::cpu {

template <typename T, typename Isa>
struct MicroKernel {
  using P = Pack<T, Isa>;
  // Three quarters of the registers are accumulators.
  static constexpr int kRows = Isa::kRegisters * 3 / 8, kLanes = P::kLanes, kColumns = 2 * kLanes;

  // Whether rows of a a fixed stride apart pay.
  static constexpr bool kEmbeddedBroadcast = Isa::kEmbeddedBroadcast;
  // The stride of such rows: not a power of two, or they would evict each other from the L1 cache.
  static constexpr int64_t kFixedRowStride = kMaxBlockDepth<T> + 64 / static_cast<int64_t>(sizeof(T));
  // Whether panels are so wide that they do not fit the L1 cache: then a tile would wait for each line of the
  // next one to come from the last-level cache.
  static constexpr bool kPrefetches = sizeof(P) > 32;

  // Rows of a: element (r, p) is data[r * row_stride + p * step], and the next kRows rows begin group_stride
  // elements on.
  struct RowsOfA {
    const T* data;
    int64_t row_stride, step, group_stride;
  };
  // kColumns columns of b: row p starts at data + p * row_stride. With `pack_to`, the first tile packs the
  // panel there for the others. `next` is a packed panel to prefetch meanwhile.
  struct PanelOfB {
    const T* data;
    int64_t row_stride;
    T* pack_to = nullptr;
    const T* next = nullptr;
  };
  // c = alpha * sums + beta * addend. Columns of the addend are adjacent, or all the same (stride 0).
  struct Target {
    T alpha, beta;
    MatrixView<T> addend;
    T* c;
    int64_t c_row_stride;

    Target below(int64_t rows) const {
      Target result = *this;
      result.c += rows * c_row_stride;
      if (addend.data) result.addend.data += rows * addend.row_stride;
      return result;
    }
  };

  // `rows` rows of c against one panel of b: whole tiles, then one or two with the rest of the rows. With one
  // pack, c and b have kLanes columns.
  template <int packs>
  [[gnu::noinline]] static void column_of_tiles(int64_t rows, int64_t depth, const RowsOfA& a,
                                                const PanelOfB& b, const Target& to) {
    if (!to.addend.data && to.alpha == T(1)) all_tiles<packs, true>(rows, depth, a, b, to);
    else all_tiles<packs, false>(rows, depth, a, b, to);
  }

 private:
  // What the compiler knows of the layout of rows of a: nothing; kRows elements a step of k; kFixedRowStride.
  enum class Layout { kAnyStrides, kInterleaved, kFixedStride };
  static constexpr Layout kFixedIfItPays = kEmbeddedBroadcast ? Layout::kFixedStride : Layout::kAnyStrides;

  struct TileKind {
    int packs;
    Layout layout;
    bool only_stores;
    bool is_packed = false;   // b is
    bool packs_b = false;     // on the way
    bool prefetches = false;  // the next panel
  };

  // --- addresses of a ------------------------------------------------------------------------------------

  struct RowPointers {
    const T* first;
    int64_t stride, at = 0;

    [[gnu::always_inline]] RowPointers(const T* first, int64_t stride) : first(first), stride(stride) {}
    template <size_t r>
    [[gnu::always_inline]] const T* row() const {
      return first + static_cast<int64_t>(r) * stride + at;
    }
    [[gnu::always_inline]] void advance(int64_t step) { at += step; }
  };
  // Twelve addresses do not fit the registers: every third one is kept, and a load finds the two rows after
  // it by their stride.
  struct TwelveRowPointers {
    const T *row0, *row3, *row6, *row9;
    int64_t one_row, two_rows;

    [[gnu::always_inline]] TwelveRowPointers(const T* first, int64_t row)
        : row0(first),
          row3(first + 3 * row),
          row6(first + 6 * row),
          row9(first + 9 * row),
          one_row(row),
          two_rows(2 * row) {}
    template <size_t r>
    [[gnu::always_inline]] const T* row() const {
      const T* kept = r < 3 ? row0 : r < 6 ? row3 : r < 9 ? row6 : row9;
      return r % 3 == 0 ? kept : kept + (r % 3 == 1 ? one_row : two_rows);
    }
    [[gnu::always_inline]] void advance(int64_t step) {
      row0 += step;
      row3 += step;
      row6 += step;
      row9 += step;
      // Else the compiler makes twelve addresses after all, and spills them.
      asm("" : "+r"(row0), "+r"(row3), "+r"(row6), "+r"(row9), "+r"(one_row), "+r"(two_rows));
    }
  };

  // --- the tile ------------------------------------------------------------------------------------------

  // The accumulators of one row.
  template <int packs>
  struct Accumulators {
    P x[packs];
    void clear() {
      x[0] = P(0);
      if constexpr (packs == 2) x[1] = P(0);
    }
    void add(P factor, P first, P second) {
      x[0] = multiply_add(factor, first, x[0]);
      if constexpr (packs == 2) x[1] = multiply_add(factor, second, x[1]);
    }
    void add_broadcast(const T* factor, P first, P second) {
      x[0] = multiply_add_broadcast(factor, first, x[0]);
      if constexpr (packs == 2) x[1] = multiply_add_broadcast(factor, second, x[1]);
    }
  };

  template <size_t n>
  using Index = std::integral_constant<size_t, n>;
  template <typename F, size_t... i>
  [[gnu::always_inline]] static void unrolled(F f, std::index_sequence<i...>) {
    (f(Index<i>()), ...);
  }

  // A tile of `height` rows, then the ones below it. Everything is inlined into `run`: accumulators that are
  // passed on would leave their registers.
  template <TileKind kind, size_t height>
  class Tile {
   public:
    [[gnu::always_inline]] Tile(int64_t depth, const RowsOfA& a, const PanelOfB& b, const Target& to)
        : depth_(depth),
          depth_together_(depth_together(depth)),
          a_row_stride_(kLayout == Layout::kInterleaved   ? 1
                        : kLayout == Layout::kFixedStride ? kFixedRowStride
                                                          : a.row_stride),
          a_step_(kLayout == Layout::kInterleaved   ? kRows
                  : kLayout == Layout::kFixedStride ? 1
                                                    : a.step),
          b_row_stride_(kind.is_packed ? kColumns : b.row_stride),
          c_row_stride_(to.c_row_stride),
          addend_strides_(to.addend),
          alpha_(to.alpha),
          beta_(to.beta),
          b_(b),
          c_(to.c),
          addend_(to.addend.data),
          next_(b.next),
          rows_(a.data, a_row_stride_) {}

    [[gnu::always_inline]] void run(int64_t tiles, const RowsOfA& a) {
      const T* group = a.data;
      for (int64_t i = 0; i < tiles; ++i, group += a.group_stride) {
        rows_ = Pointers(group, a_row_stride_);
        accumulate();
        unrolled([&](auto pair)
                     __attribute__((always_inline)) { this->template end_rows<2 * decltype(pair)::value>(); },
                 std::make_index_sequence<(height + 1) / 2>());
        if constexpr (kind.prefetches)
          if (next_ >= b_.next + depth_ * kColumns) next_ = b_.next;
        c_ += static_cast<int64_t>(height) * c_row_stride_;
        if (addend_) addend_ += static_cast<int64_t>(height) * addend_strides_.row_stride;
      }
    }

   private:
    static constexpr Layout kLayout = kind.layout;
    static constexpr int kPacks = kind.packs;
    using Pointers =
        std::conditional_t<height == 12 && kLayout == Layout::kAnyStrides, TwelveRowPointers, RowPointers>;
    static constexpr auto kEachRow = std::make_index_sequence<height>();
    template <size_t r>
    static constexpr bool kUsesBroadcast = kEmbeddedBroadcast && kLayout != Layout::kAnyStrides && r % 3 != 0;
    static constexpr int64_t kPrefetchStep = 16 / sizeof(T);  // elements of the next panel, a step of k

    // So many steps of k take all rows of a tile together. Then rows end two by two: each pair adds its last
    // terms and is stored, so that stores, which compete with FMAs for issue slots, come between the FMAs of
    // the next pair; all at once they would hold up a short tile for a fifteenth of its time. Processors with
    // AVX-512 have ports of their own for stores: there, the shorter loops count.
    static int64_t depth_together(int64_t depth) {
      constexpr int64_t kLast = 4;
      if constexpr (sizeof(P) > 32) return depth;
      return depth < 3 * kLast ? depth : depth - kLast;
    }

    [[gnu::always_inline]] void accumulate() {
      unrolled([&](auto r) __attribute__((always_inline)) { sums_[r].clear(); }, kEachRow);
      columns_ = b_.data;
      // Rows of c are prefetched one by one: all at once, they would delay the loads of the first terms.
      const T* c = c_;
      const int64_t early = std::min<int64_t>(height, depth_together_);
      for (int64_t p = 0; p < early; ++p, c += c_row_stride_) {
        __builtin_prefetch(c, 1);
        if constexpr (kPacks * sizeof(P) > 64) __builtin_prefetch(c + kLanes, 1);
        rank_one_update(p);
      }
#pragma GCC unroll 8
      for (int64_t p = early; p < depth_together_; ++p) rank_one_update(p);
    }

    [[gnu::always_inline]] void rank_one_update(int64_t p) {
      const P first = P::load(columns_), second = kPacks == 2 ? P::load(columns_ + kLanes) : first;
      if constexpr (kind.prefetches) __builtin_prefetch(next_);
      if constexpr (kind.packs_b) pack(first, second, p);
      unrolled(
          [&](auto r) __attribute__((always_inline)) {
            const T* factor = rows_.template row<r>();
            if constexpr (kUsesBroadcast<r>) sums_[r].add_broadcast(factor, first, second);
            else sums_[r].add(P(*factor), first, second);
          },
          kEachRow);
      columns_ += b_row_stride_;
      if constexpr (kind.prefetches) next_ += kPrefetchStep;
      rows_.advance(a_step_);
    }

    // The last terms of rows r and r + 1, and their stores.
    template <size_t r>
    [[gnu::always_inline]] void end_rows() {
      constexpr bool is_pair = r + 1 < height;
      constexpr size_t kNext = is_pair ? r + 1 : r;
      const T* last = columns_;
      for (int64_t p = depth_together_; p < depth_; ++p, last += b_row_stride_) {
        const P first = Isa::keep(P::load(last).v),
                second = kPacks == 2 ? Isa::keep(P::load(last + kLanes).v) : first.v;
        if constexpr (kind.packs_b && r == 0) pack(first, second, p);
        const int64_t ahead = (p - depth_together_) * a_step_;
        sums_[r].add(P(rows_.template row<r>()[ahead]), first, second);
        if constexpr (is_pair) sums_[kNext].add(P(rows_.template row<kNext>()[ahead]), first, second);
      }
      store_row<r>();
      if constexpr (is_pair) store_row<kNext>();
    }

    template <size_t r>
    [[gnu::always_inline]] void store_row() {
      store(r, 0, sums_[r].x[0]);
      if constexpr (kPacks == 2) store(r, kLanes, sums_[r].x[1]);
    }
    [[gnu::always_inline]] void store(int64_t row, int column, P x) {
      if constexpr (!kind.only_stores) {
        x = x * alpha_;
        if (addend_) {
          const T* added = addend_ + row * addend_strides_.row_stride;
          x = multiply_add(beta_, addend_strides_.column_stride == 0 ? P(*added) : P::load(added + column),
                           x);
        }
      }
      x.store(c_ + row * c_row_stride_ + column);
    }
    [[gnu::always_inline]] void pack(P first, P second, int64_t p) {
      first.store(b_.pack_to + p * kColumns);
      second.store(b_.pack_to + p * kColumns + kLanes);
    }

    const int64_t depth_, depth_together_, a_row_stride_, a_step_, b_row_stride_, c_row_stride_;
    const MatrixView<T> addend_strides_;
    const P alpha_, beta_;
    const PanelOfB b_;
    T* c_;
    const T *addend_, *next_, *columns_ = nullptr;
    Pointers rows_;
    Accumulators<kPacks> sums_[height];
  };

  template <TileKind kind, size_t height = kRows>
  static void run(int64_t tiles, int64_t depth, const RowsOfA& a, const PanelOfB& b, const Target& to) {
    Tile<kind, height>(depth, a, b, to).run(tiles, a);
  }

  // --- a column of tiles ---------------------------------------------------------------------------------

  template <int packs, bool only_stores>
  static void all_tiles(int64_t rows, int64_t depth, RowsOfA a, PanelOfB b, Target to) {
    int64_t tiles = rows / kRows;
    if constexpr (packs == 2)
      if (b.pack_to && tiles > 0) {
        packing_tile<only_stores>(depth, a, b, to);
        b = {b.pack_to, kColumns};
        a.data += a.group_stride;
        to = to.below(kRows);
        --tiles;
      }
    if (tiles > 0) whole_tiles<packs, only_stores>(tiles, depth, a, b, to);
    a.data += tiles * a.group_stride;
    to = to.below(tiles * kRows);
    const int64_t rest = rows % kRows, first = rest > kShort ? (rest + 1) / 2 : rest;
    constexpr auto kHeights = std::make_index_sequence<kShort>();
    short_tile<packs, only_stores>(first, depth, a, b, to, kHeights);
    if (rest == first) return;
    a.data += first * a.row_stride;
    short_tile<packs, only_stores>(rest - first, depth, a, b, to.below(first), kHeights);
  }

  static bool is_interleaved(const RowsOfA& a) { return a.row_stride == 1 && a.step == kRows; }
  static bool has_fixed_stride(const RowsOfA& a) {
    return kEmbeddedBroadcast && a.row_stride == kFixedRowStride && a.step == 1;
  }

  template <bool only_stores>
  static void packing_tile(int64_t depth, const RowsOfA& a, const PanelOfB& b, const Target& to) {
    constexpr auto kKind = [](Layout layout) { return TileKind{2, layout, only_stores, false, true}; };
    if (is_interleaved(a)) run<kKind(Layout::kInterleaved)>(1, depth, a, b, to);
    else if (has_fixed_stride(a)) run<kKind(kFixedIfItPays)>(1, depth, a, b, to);
    else run<kKind(Layout::kAnyStrides)>(1, depth, a, b, to);
  }

  template <int packs, bool only_stores>
  static void whole_tiles(int64_t tiles, int64_t depth, const RowsOfA& a, const PanelOfB& b,
                          const Target& to) {
    constexpr auto kKind = [](Layout layout, bool is_packed, bool prefetches = false) {
      return TileKind{packs, layout, only_stores, is_packed, false, prefetches};
    };
    const bool is_packed = b.row_stride == kColumns;
    if (is_interleaved(a) && is_packed) run<kKind(Layout::kInterleaved, true)>(tiles, depth, a, b, to);
    else if (is_interleaved(a)) run<kKind(Layout::kInterleaved, false)>(tiles, depth, a, b, to);
    else if (has_fixed_stride(a) && is_packed && b.next)
      run<kKind(kFixedIfItPays, true, kPrefetches)>(tiles, depth, a, b, to);
    else if (has_fixed_stride(a) && is_packed) run<kKind(kFixedIfItPays, true)>(tiles, depth, a, b, to);
    else if (kPrefetches && b.next)
      run<kKind(Layout::kAnyStrides, false, kPrefetches)>(tiles, depth, a, b, to);
    else run<kKind(Layout::kAnyStrides, false)>(tiles, depth, a, b, to);
  }

  // Fewer rows than a whole tile: one or two of kShort rows at most, which are compiled for each height.
  static constexpr int kShort = 6;
  static_assert(kRows <= 2 * kShort);
  template <int packs, bool only_stores, size_t... less_one>
  static void short_tile(int64_t rows, int64_t depth, const RowsOfA& a, const PanelOfB& b, const Target& to,
                         std::index_sequence<less_one...>) {
    constexpr TileKind kKind{packs, Layout::kAnyStrides, only_stores};
    ((rows == less_one + 1 ? run<kKind, less_one + 1>(1, depth, a, b, to) : void()), ...);
  }
};

}  // namespace weft::cpu
