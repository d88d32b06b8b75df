#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "ops/cpu/pack_generic.h"
#include "ops/cpu/product.h"
#include "ops/cpu/scratch.h"

// Included by the files of instruction sets only.
namespace weft::cpu {

template <typename T, typename Isa>
struct ProductOf {
  using P = Pack<T, Isa>;
  // Three quarters of the registers hold sums.
  static constexpr int kRows = Isa::kRegisters * 3 / 8, kLanes = P::kLanes, kColumns = 2 * kLanes;

  static constexpr int64_t kColumnsAtOnce = 4 * kColumns;  // of b: copied together

  // --- the tile of registers -----------------------------------------------------------------------------

  // Rows of a as the tile reads them: element (r, p) is data[r * row + p * step], and the next kRows rows
  // begin `group` elements on.
  struct Rows {
    const T* data;
    int64_t row, step, group;
  };
  // kColumns columns of b: row p starts at data + p * step. With a place for a copy, the first tile that
  // reads it makes one for the others. A next panel is asked for while this one is read.
  struct Panel {
    const T* data;
    int64_t step;
    T* copy = nullptr;
    const T* next = nullptr;
  };
  // Whether panels are so wide that they do not fit the first-level cache: then a tile would wait for each
  // line of the next one to come from the last level.
  static constexpr bool kLooksAhead = sizeof(P) > 32;
  static constexpr int64_t kAhead = 16 / sizeof(T);  // elements of the next panel asked for with each term
  // What the compiler knows of where the rows of a lie: nothing; that they are interleaved, kRows elements a
  // term; that they are kRowDistance apart.
  enum class Lie { kAny, kInterleaved, kApart };
  // Copies of contiguous rows lie so far apart: not a power of two, or they would push each other out of the
  // first-level cache.
  static constexpr int64_t kRowDistance = kLongestBlock<T> + 64 / static_cast<int64_t>(sizeof(T));
  // Whether a multiplication can read its factor from memory without a place in a register. Then rows at a
  // distance that the compiler knows need a third fewer instructions: their addresses are parts of these.
  static constexpr bool kReadsFactors = Isa::kReadsFactors;
  static constexpr Lie kApartIfItPays = kReadsFactors ? Lie::kApart : Lie::kAny;
  // Two rows of three read their factor once for each pack; all rows would wait for the ways to memory.
  template <Lie lie, size_t r>
  static constexpr bool kReadsTwice = kReadsFactors && lie != Lie::kAny && r % 3 != 0;
  // Where sums go: c = alpha * sums + beta * addend.
  struct Target {
    T alpha, beta;
    MatrixView<T> addend;
    T* c;
    int64_t c_row;

    Target below(int64_t rows) const {
      Target result = *this;
      result.c += rows * c_row;
      if (addend.data) result.addend.data += rows * addend.row_stride;
      return result;
    }
  };

  // Where a tile is in its rows.
  struct Walk {
    const T* first;
    int64_t distance, at = 0;

    [[gnu::always_inline]] Walk(const T* first, int64_t distance) : first(first), distance(distance) {}
    template <size_t r>
    [[gnu::always_inline]] const T* row() const {
      return first + static_cast<int64_t>(r) * distance + at;
    }
    [[gnu::always_inline]] void advance(int64_t step) { at += step; }
  };
  // The addresses of twelve rows do not fit the registers: every third one is kept, and a load finds the two
  // rows after it by their distance.
  struct WalkOfTwelve {
    const T *row0, *row3, *row6, *row9;
    int64_t one_row, two_rows;

    [[gnu::always_inline]] WalkOfTwelve(const T* first, int64_t row)
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
      // Else the compiler makes twelve addresses after all, and keeps them in memory.
      asm("" : "+r"(row0), "+r"(row3), "+r"(row6), "+r"(row9), "+r"(one_row), "+r"(two_rows));
    }
  };

  // The sums of one row and the packs of its columns.
  template <int packs>
  struct Sums {
    P x[packs];
    void clear() {
      x[0] = P(0);
      if constexpr (packs == 2) x[1] = P(0);
    }
    void add(P factor, P first, P second) {
      x[0] = multiply_add(factor, first, x[0]);
      if constexpr (packs == 2) x[1] = multiply_add(factor, second, x[1]);
    }
    void add_from(const T* factor, P first, P second) {
      x[0] = multiply_add_from(factor, first, x[0]);
      if constexpr (packs == 2) x[1] = multiply_add_from(factor, second, x[1]);
    }
  };

  // A tile, then the ones below it, `groups` in all, against the same panel: what is the same for all of them
  // is computed once, which counts where the inner dimension is short. Packed: the panel is a copy. Only
  // stores: c = sums. Copies: the panel goes to its copy on the way, which costs less than a pass over it of
  // its own. Looks ahead: asks for the next panel.
  template <int packs, Lie lie, bool is_packed, bool only_stores, bool copies, bool looks_ahead = false,
            size_t... r>
  static void tile(int64_t groups, int64_t depth, const Rows& a, const Panel& b, const Target& to,
                   std::index_sequence<r...>) {
    constexpr size_t kHeight = sizeof...(r);
    const int64_t row = lie == Lie::kInterleaved ? 1 : lie == Lie::kApart ? kRowDistance : a.row;
    const int64_t step = lie == Lie::kInterleaved ? kRows : lie == Lie::kApart ? 1 : a.step;
    const int64_t b_step = is_packed ? kColumns : b.step, c_row = to.c_row;
    const MatrixView<T> addend = to.addend;
    const P alpha(to.alpha), beta(to.beta);
    const int64_t together = terms_together(depth);
    const T* group_data = a.data;
    const T* addend_data = addend.data;
    T* c = to.c;
    [[maybe_unused]] const T* next = b.next;
    for (int64_t group = 0; group < groups; ++group) {
      Sums<packs> sums[kHeight];
      (sums[r].clear(), ...);
      constexpr bool kIsTwelve = kHeight == 12 && lie == Lie::kAny;
      std::conditional_t<kIsTwelve, WalkOfTwelve, Walk> rows(group_data, row);
      const T* columns = b.data;
      auto add_term = [&](int64_t p) __attribute__((always_inline)) {
        const P first = P::load(columns), second = packs == 2 ? P::load(columns + kLanes) : first;
        if constexpr (looks_ahead) __builtin_prefetch(next);
        if constexpr (copies) store_both(first, second, b.copy + p * kColumns);
        (
            [&]() __attribute__((always_inline)) {
              if constexpr (kReadsTwice<lie, r>) sums[r].add_from(rows.template row<r>(), first, second);
              else sums[r].add(P(*rows.template row<r>()), first, second);
            }(),
            ...);
        columns += b_step;
        if constexpr (looks_ahead) next += kAhead;
        rows.advance(step);
      };
      // The places of the sums are asked for one by one: all at once, they would keep the loads of the first
      // terms waiting.
      const T* place = c;
      const int64_t early = std::min<int64_t>(kHeight, together);
      for (int64_t p = 0; p < early; ++p, place += c_row) {
        __builtin_prefetch(place, 1);
        if constexpr (packs * sizeof(P) > 64) __builtin_prefetch(place + kLanes, 1);
        add_term(p);
      }
#pragma GCC unroll 8
      for (int64_t p = early; p < together; ++p) add_term(p);

      // Inline always: sums that are passed on would leave their registers.
      auto write = [&](int64_t at, int column, P x) __attribute__((always_inline)) {
        if constexpr (!only_stores) {
          x = x * alpha;
          if (addend_data) {
            const T* added = addend_data + at * addend.row_stride;
            x = multiply_add(beta, addend.column_stride == 0 ? P(*added) : P::load(added + column), x);
          }
        }
        x.store(c + at * c_row + column);
      };
      auto write_row = [&](int64_t at, const Sums<packs>& row_sums) __attribute__((always_inline)) {
        write(at, 0, row_sums.x[0]);
        if constexpr (packs == 2) write(at, kLanes, row_sums.x[1]);
      };
      auto end_rows = [&]<size_t i>(std::integral_constant<size_t, i>) __attribute__((always_inline)) {
        constexpr bool is_pair = i + 1 < kHeight;
        constexpr size_t kNext = is_pair ? i + 1 : i;
        const T* last = columns;
        for (int64_t p = together; p < depth; ++p, last += b_step) {
          const P first = Isa::keep(P::load(last).v),
                  second = packs == 2 ? Isa::keep(P::load(last + kLanes).v) : first.v;
          if constexpr (copies && i == 0) store_both(first, second, b.copy + p * kColumns);
          const int64_t ahead = (p - together) * step;
          sums[i].add(P(rows.template row<i>()[ahead]), first, second);
          if constexpr (is_pair) sums[kNext].add(P(rows.template row<kNext>()[ahead]), first, second);
        }
        write_row(i, sums[i]);
        if constexpr (is_pair) write_row(kNext, sums[kNext]);
      };
      [&]<size_t... pair>(std::index_sequence<pair...>) __attribute__((always_inline)) {
        (end_rows(std::integral_constant<size_t, 2 * pair>()), ...);
      }(std::make_index_sequence<(kHeight + 1) / 2>());
      if constexpr (looks_ahead)
        if (next >= b.next + depth * kColumns) next = b.next;
      group_data += a.group;
      c += kHeight * c_row;
      if (addend_data) addend_data += kHeight * addend.row_stride;
    }
  }
  static void store_both(P first, P second, T* to) {
    first.store(to);
    second.store(to + kLanes);
  }
  // How many terms all rows of a tile add together. Then they end two by two: each pair adds its last terms
  // and is written, so that writes, which take turns with the multipliers, come between the terms of the next
  // pair. All at once they would hold up a short tile for a fifteenth of its time. Processors with AVX-512
  // have ways of their own for writes: there, the shorter loops count.
  static constexpr bool kEndsAtOnce = sizeof(P) > 32;
  static int64_t terms_together(int64_t depth) {
    constexpr int64_t kLast = 4;
    if constexpr (kEndsAtOnce) return depth;
    return depth < 3 * kLast ? depth : depth - kLast;
  }

  // Rows of c against one panel: whole tiles, then one or two with the rest of the rows.
  template <int packs>
  static void tiles_below(int64_t rows, int64_t depth, const Rows& a, const Panel& b, const Target& to) {
    if (!to.addend.data && to.alpha == T(1)) tiles_below<packs, true>(rows, depth, a, b, to);
    else tiles_below<packs, false>(rows, depth, a, b, to);
  }
  template <int packs, bool only_stores>
  static void tiles_below(int64_t rows, int64_t depth, Rows a, Panel b, Target to) {
    constexpr auto kWhole = std::make_index_sequence<kRows>();
    const bool is_interleaved = a.row == 1 && a.step == kRows;
    const bool is_apart = kReadsFactors && a.row == kRowDistance && a.step == 1;
    int64_t groups = rows / kRows;
    if constexpr (packs == 2)
      if (b.copy && groups > 0) {
        if (is_interleaved) tile<2, Lie::kInterleaved, false, only_stores, true>(1, depth, a, b, to, kWhole);
        else if (is_apart) tile<2, kApartIfItPays, false, only_stores, true>(1, depth, a, b, to, kWhole);
        else tile<2, Lie::kAny, false, only_stores, true>(1, depth, a, b, to, kWhole);
        b = {b.copy, kColumns};
        a.data += a.group;
        to = to.below(kRows);
        --groups;
      }
    if (groups > 0) {
      const bool is_packed = b.step == kColumns;
      if (is_interleaved && is_packed)
        tile<packs, Lie::kInterleaved, true, only_stores, false>(groups, depth, a, b, to, kWhole);
      else if (is_interleaved)
        tile<packs, Lie::kInterleaved, false, only_stores, false>(groups, depth, a, b, to, kWhole);
      else if (is_apart && is_packed && b.next)
        tile<packs, kApartIfItPays, true, only_stores, false, kLooksAhead>(groups, depth, a, b, to, kWhole);
      else if (is_apart && is_packed)
        tile<packs, kApartIfItPays, true, only_stores, false>(groups, depth, a, b, to, kWhole);
      else if (kLooksAhead && b.next)
        tile<packs, Lie::kAny, false, only_stores, false, kLooksAhead>(groups, depth, a, b, to, kWhole);
      else tile<packs, Lie::kAny, false, only_stores, false>(groups, depth, a, b, to, kWhole);
    }
    a.data += groups * a.group;
    to = to.below(groups * kRows);
    const int64_t rest = rows % kRows, first = rest > kShort ? (rest + 1) / 2 : rest;
    short_tile<packs, only_stores>(first, depth, a, b, to, std::make_index_sequence<kShort>());
    if (rest == first) return;
    a.data += first * a.row;
    short_tile<packs, only_stores>(rest - first, depth, a, b, to.below(first),
                                   std::make_index_sequence<kShort>());
  }
  // Fewer rows than a whole tile: one or two of kShort rows at most, which are compiled for each number.
  static constexpr int kShort = 6;
  static_assert(kRows <= 2 * kShort);
  template <int packs, bool only_stores, size_t... less_one>
  static void short_tile(int64_t rows, int64_t depth, const Rows& a, const Panel& b, const Target& to,
                         std::index_sequence<less_one...>) {
    auto run = [&](auto height) {
      tile<packs, Lie::kAny, false, only_stores, false>(1, depth, a, b, to, height);
    };
    ((rows == less_one + 1 ? run(std::make_index_sequence<less_one + 1>()) : void()), ...);
  }
  // Fewer columns than the tile has, or an addend with gaps: through copies, so that all elements are
  // computed alike.
  static void narrow_tile(int64_t rows, int64_t columns, int64_t depth, const Rows& a, const Panel& b,
                          const Target& to) {
    T before[kRows * kColumns] = {}, after[kRows * kColumns];
    if (to.addend.data)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) before[r * kColumns + c] = *to.addend.at(r, c);
    MatrixView<T> addend{to.addend.data ? before : nullptr, kColumns, 1};
    const Target copy{to.alpha, to.beta, addend, after, kColumns};
    if (columns <= kLanes) tiles_below<1>(rows, depth, a, b, copy);
    else tiles_below<2>(rows, depth, a, b, copy);
    for (int64_t r = 0; r < rows; ++r) std::copy_n(after + r * kColumns, columns, to.c + r * to.c_row);
  }

  // --- copies of the operands into the order in which tiles read them ------------------------------------

  // Short rows would waste too much of the fixed distance.
  static bool copies_apart(int64_t depth) { return kReadsFactors && depth >= kLongestBlock<T> / 2; }
  static int64_t distance_of_copies(int64_t depth) { return copies_apart(depth) ? kRowDistance : depth; }

  // Contiguous rows are copied as they are, others by groups of kRows, element by element; the last group may
  // have fewer rows.
  static Rows copy_rows(const MatrixView<T>& a, int64_t rows, int64_t depth, T* to) {
    if (a.column_stride == 1) {
      const int64_t distance = distance_of_copies(depth);
      for (int64_t r = 0; r < rows; ++r) std::copy_n(a.at(r, 0), depth, to + r * distance);
      return {to, distance, 1, kRows * distance};
    }
    int64_t copied = 0;
    if (a.row_stride == 1) {
      // Several groups at once use the whole of the cache lines that they read.
      constexpr int64_t kAtOnce = 8;
      while (rows - copied >= kRows) {
        const int64_t groups = std::min((rows - copied) / kRows, kAtOnce);
        for (int64_t p = 0; p < depth; ++p)
          for (int64_t g = 0; g < groups; ++g)
            __builtin_memcpy(to + copied * depth + (g * depth + p) * kRows, a.at(copied + g * kRows, p),
                             kRows * sizeof(T));
        copied += groups * kRows;
      }
    }
    for (; copied < rows; copied += kRows) {
      const int64_t height = std::min<int64_t>(kRows, rows - copied);
      for (int64_t p = 0; p < depth; ++p)
        for (int64_t r = 0; r < height; ++r) to[copied * depth + p * kRows + r] = *a.at(copied + r, p);
    }
    return {to, 1, kRows, kRows * depth};
  }

  // kLanes rows of kLanes numbers, turned: the first half of the rows is merged with the second, log2 times.
  template <size_t... i>
  static void merge_halves(P (&x)[kLanes], std::index_sequence<i...>) {
    P merged[kLanes];
    (merge_lanes(x[i], x[i + kLanes / 2], merged[2 * i], merged[2 * i + 1]), ...);
    ((x[2 * i] = merged[2 * i], x[2 * i + 1] = merged[2 * i + 1]), ...);
  }
  template <size_t... i>
  static void turn(const T* const (&rows)[kLanes], int64_t at, T* to, int64_t to_row,
                   std::index_sequence<i...>) {
    P x[] = {P::load(rows[i] + at)...};
    constexpr auto kHalf = std::make_index_sequence<kLanes / 2>();
    merge_halves(x, kHalf);
    if constexpr (kLanes > 2) merge_halves(x, kHalf);
    if constexpr (kLanes > 4) merge_halves(x, kHalf);
    if constexpr (kLanes > 8) merge_halves(x, kHalf);
    static_assert(kLanes <= 16);
    (x[i].store(to + static_cast<int64_t>(i) * to_row), ...);
  }
  // A panel by any strides. Columns that the matrix does not have are zero.
  static void copy_panel(const MatrixView<T>& b, int64_t depth, int64_t columns, T* to) {
    if (columns < kColumns) std::fill_n(to, depth * kColumns, T(0));
    int64_t turned_columns = 0, turned_depth = 0;
    if (b.row_stride == 1) {
      turned_columns = columns / kLanes * kLanes;
      turned_depth = depth / kLanes * kLanes;
      for (int64_t c = 0; c < turned_columns; c += kLanes) {
        const T* sources[kLanes];
        for (int64_t i = 0; i < kLanes; ++i) sources[i] = b.at(0, c + i);
        for (int64_t p = 0; p < turned_depth; p += kLanes)
          turn(sources, p, to + p * kColumns + c, kColumns, std::make_index_sequence<kLanes>());
      }
    }
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t p = c < turned_columns ? turned_depth : 0; p < depth; ++p)
        to[p * kColumns + c] = *b.at(p, c);
  }

  // All panels, depth * kColumns apart.
  static void copy_panels(const MatrixView<T>& b, int64_t depth, int64_t columns, T* to) {
    int64_t copied = 0;
    if (b.column_stride == 1) {
      // Rows may be pages apart: several panels at once look up each page once.
      const int64_t whole = columns / kColumns * kColumns;
      while (copied < whole) {
        const int64_t end = std::min(copied + kColumnsAtOnce, whole);
        for (int64_t p = 0; p < depth; ++p)
          for (int64_t c = copied; c < end; c += kColumns) {
            const T* from = b.at(p, c);
            T* place = to + c * depth + p * kColumns;
            P::load(from).store(place);
            P::load(from + kLanes).store(place + kLanes);
          }
        copied = end;
      }
    }
    for (; copied < columns; copied += kColumns)
      copy_panel({b.at(0, copied), b.row_stride, b.column_stride}, depth,
                 std::min<int64_t>(kColumns, columns - copied), to + copied * depth);
  }

  // --- the whole product ---------------------------------------------------------------------------------

  // What tiles read of b: b itself; copies of a few panels made when their turn comes, which stay in the
  // nearest caches while the rows of a pass by once; copies of all panels, for several blocks of rows.
  enum class Panels { kOriginal, kCopiedInTurn, kCopied };

  static int64_t rounded_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

  static void tiles(const Product<T>& product, const ProductPart& part) {
    const int64_t depth = depth_of_blocks<T>(product.k);
    const bool copies_b = part.rows > 2 * kRows || product.b.column_stride != 1;
    const Panels panels = copies_b ? Panels::kCopiedInTurn : Panels::kOriginal;
    const int64_t kept_columns = rounded_up(std::min(part.columns, kColumnsAtOnce), kColumns);
    Scratch b_copy(kept_columns * depth * static_cast<int64_t>(sizeof(T)));
    const int64_t last_column = part.column + part.columns;
    for (int64_t j = part.column; j < last_column; j += kBlockColumns)
      for (int64_t p = 0; p < product.k; p += depth)
        block(product, {part.row, part.rows, j, std::min(kBlockColumns, last_column - j)}, p,
              std::min(depth, product.k - p), panels, b_copy.as<T>());
  }
  static void copy_shared_panels(const Product<T>& product, int64_t p, int64_t depth, int64_t column,
                                 int64_t columns, T* to) {
    const MatrixView<T>& b = product.b;
    copy_panels({b.at(p, column), b.row_stride, b.column_stride}, depth, columns, to);
  }
  static void tiles_of_shared_panels(const Product<T>& product, const ProductPart& part, int64_t p,
                                     int64_t depth, T* panels) {
    block(product, part, p, depth, Panels::kCopied, panels);
  }

  // So many columns make up for a copy of rows whose only fault is that the compiler does not know their
  // distance.
  static constexpr int64_t kColumnsThatPay = 384;

  // The terms p to p + depth of a block of c.
  static void block(const Product<T>& product, const ProductPart& part, int64_t p, int64_t depth,
                    Panels panels, T* b_copy) {
    const MatrixView<T>&a = product.a, &b = product.b;
    // A copy is worth its while where it is read several times.
    const bool lies_as_copied = a.column_stride == 1 && a.row_stride == depth;
    const bool moves_apart = lies_as_copied && copies_apart(depth) && panels != Panels::kOriginal;
    const bool copies_a =
        lies_as_copied ? moves_apart && part.columns > kColumnsThatPay : part.columns > 3 * kColumns;
    const int64_t row_of_copy = a.column_stride == 1 ? distance_of_copies(depth) : depth;
    Scratch a_copy(copies_a ? rounded_up(part.rows, kRows) * row_of_copy * static_cast<int64_t>(sizeof(T))
                            : 0);
    const int64_t last_column = part.column + part.columns;
    auto panel_at = [&](int64_t column, bool by_whole_tiles) -> Panel {
      if (panels == Panels::kCopied) {
        const T* data = b_copy + (column - part.column) * depth;
        const bool has_next = kLooksAhead && column + kColumns < last_column;
        return {data, kColumns, nullptr, has_next ? data + kColumns * depth : nullptr};
      }
      const bool is_original = panels == Panels::kOriginal, has_rows = b.column_stride == 1;
      if (is_original && column + kColumns <= last_column) return {b.at(p, column), b.row_stride};
      if (by_whole_tiles && has_rows) return {b.at(p, column), b.row_stride, b_copy};
      const int64_t at_once = is_original || has_rows ? kColumns : kColumnsAtOnce;
      const int64_t place = (column - part.column) % at_once;
      if (place == 0)
        copy_panels({b.at(p, column), b.row_stride, b.column_stride}, depth,
                    std::min(at_once, last_column - column), b_copy);
      return {b_copy + place * depth, kColumns};
    };
    const MatrixView<T> rows_of_a{a.at(part.row, p), a.row_stride, a.column_stride};
    const Rows rows = copies_a ? copy_rows(rows_of_a, part.rows, depth, a_copy.as<T>())
                               : Rows{rows_of_a.data, a.row_stride, a.column_stride, kRows * a.row_stride};
    for (int64_t j = part.column; j < last_column; j += kColumns) {
      const int64_t columns = std::min<int64_t>(kColumns, last_column - j);
      T* c = product.c + part.row * product.c_row_stride + j;
      Target target{product.alpha, T(1), {c, product.c_row_stride, 1}, c, product.c_row_stride};
      if (p == 0) {
        target.beta = product.beta;
        const MatrixView<T>& addend = product.addend;
        target.addend = {addend.data ? addend.at(part.row, j) : nullptr, addend.row_stride,
                         addend.column_stride};
      }
      const bool reads_packs = !target.addend.data || target.addend.column_stride <= 1;
      const bool by_whole_tiles = columns == kColumns && reads_packs && part.rows >= kRows;
      const Panel panel = panel_at(j, by_whole_tiles);
      if (columns == kColumns && reads_packs) {
        tiles_below<2>(part.rows, depth, rows, panel, target);
        continue;
      }
      if (columns == kLanes && reads_packs) {
        tiles_below<1>(part.rows, depth, rows, panel, target);
        continue;
      }
      for (int64_t i = 0; i < part.rows; i += kRows)
        narrow_tile(std::min<int64_t>(kRows, part.rows - i), columns, depth,
                    {rows.data + i / kRows * rows.group, rows.row, rows.step, 0}, panel, target.below(i));
    }
  }

  // --- few rows ------------------------------------------------------------------------------------------

  static T sum_of(P x) {
    T sum = x.v[0];
    for (int i = 1; i < kLanes; ++i) sum += x.v[i];
    return sum;
  }

  // Products of `rows` rows of a and `columns` columns of b, both contiguous.
  template <size_t... cell>
  static void dots_of(const Product<T>& product, int64_t row, int64_t column, int64_t columns,
                      std::index_sequence<cell...>) {
    P sums[sizeof...(cell)];
    ((sums[cell] = P(0)), ...);
    const T* a[] = {product.a.at(row + static_cast<int64_t>(cell / 4), 0)...};
    const T* b[] = {product.b.at(0, column + std::min<int64_t>(cell % 4, columns - 1))...};
    const int64_t whole = product.k / kLanes * kLanes;
    for (int64_t p = 0; p < whole; p += kLanes)
      ((sums[cell] = multiply_add(P::load(a[cell] + p), P::load(b[cell] + p), sums[cell])), ...);
    if (const int64_t rest = product.k - whole; rest > 0) {
      auto tail = [&](const T* x) {
        T lanes[kLanes] = {};
        std::copy_n(x + whole, rest, lanes);
        return P::load(lanes);
      };
      ((sums[cell] = multiply_add(tail(a[cell]), tail(b[cell]), sums[cell])), ...);
    }
    auto write = [&](size_t at, P sum) {
      const int64_t r = row + static_cast<int64_t>(at / 4), c = column + static_cast<int64_t>(at % 4);
      if (static_cast<int64_t>(at % 4) >= columns) return;
      T value = product.alpha * sum_of(sum);
      if (product.addend.data) value += product.beta * *product.addend.at(r, c);
      product.c[r * product.c_row_stride + c * product.c_column_stride] = value;
    };
    (write(cell, sums[cell]), ...);
  }

  static void dots(const Product<T>& product, const ProductPart& part) {
    const int64_t last_column = part.column + part.columns, last_row = part.row + part.rows;
    for (int64_t c = part.column; c < last_column; c += 4) {
      const int64_t columns = std::min<int64_t>(4, last_column - c);
      int64_t r = part.row;
      for (; r + 3 <= last_row; r += 3) dots_of(product, r, c, columns, std::make_index_sequence<12>());
      if (r + 2 <= last_row) dots_of(product, r, c, columns, std::make_index_sequence<8>());
      else if (r < last_row) dots_of(product, r, c, columns, std::make_index_sequence<4>());
    }
  }

  static constexpr ProductLoops<T> kLoops = {
      kRows, kColumns, kColumnsAtOnce, tiles, copy_shared_panels, tiles_of_shared_panels, dots};
};

}  // namespace weft::cpu
