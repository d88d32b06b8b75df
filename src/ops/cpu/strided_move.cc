#include "ops/cpu/strided_move.h"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace weft::cpu {
namespace {

struct Bytes16 {
  uint64_t low, high;
};

template <typename T>
T read(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}
template <typename T>
void write(char* p, T value) {
  std::memcpy(p, &value, sizeof(T));
}

template <typename T>
void move_plain(char* dst, Strides2 to, const char* src, Strides2 from, Rectangle size) {
  for (int64_t r = 0; r < size.rows; ++r, dst += to.row, src += from.row) {
    char* d = dst;
    const char* s = src;
    int64_t c = 0;
    for (; c + 4 <= size.columns; c += 4, d += 4 * to.column, s += 4 * from.column) {
      T v0 = read<T>(s), v1 = read<T>(s + from.column), v2 = read<T>(s + 2 * from.column),
        v3 = read<T>(s + 3 * from.column);
      write(d, v0);
      write(d + to.column, v1);
      write(d + 2 * to.column, v2);
      write(d + 3 * to.column, v3);
    }
    for (; c < size.columns; ++c, d += to.column, s += from.column) write(d, read<T>(s));
  }
}

// Every second element of 4 bytes: the one strided gather that vectors do well.
void move_every_second(char* dst, const char* src, int64_t count) {
  typedef uint32_t V __attribute__((vector_size(16)));
  int64_t c = 0;
  for (; c + 5 <= count; c += 4)  // the second load ends one element past the last that is wanted
    write(dst + 4 * c, __builtin_shufflevector(read<V>(src + 8 * c), read<V>(src + 8 * c + 16), 0, 2, 4, 6));
  for (; c < count; ++c) write(dst + 4 * c, read<uint32_t>(src + 8 * c));
}

// The elements at `src` and before it.
template <typename V, int... i>
V reversed(V x, std::integer_sequence<int, i...>) {
  return __builtin_shufflevector(x, x, (static_cast<int>(sizeof...(i)) - 1 - i)...);
}
template <typename T>
void move_backward(char* dst, const char* src, int64_t count) {
  constexpr int64_t kItem = sizeof(T), kLanes = 16 / kItem;
  int64_t c = 0;
  if constexpr (kLanes > 1) {
    typedef T V __attribute__((vector_size(16)));
    for (; c + kLanes <= count; c += kLanes)
      write(dst + c * kItem, reversed(read<V>(src - (c + kLanes - 1) * kItem),
                                      std::make_integer_sequence<int, static_cast<int>(kLanes)>()));
  }
  for (; c < count; ++c) write(dst + c * kItem, read<T>(src - c * kItem));
}

// A constant trip count lets the compiler use vector stores.
template <typename T>
void fill_row(char* dst, T value, int64_t count) {
  constexpr int kRun = 64 / sizeof(T);
  alignas(64) T run[kRun];
  for (int i = 0; i < kRun; ++i) run[i] = value;
  int64_t c = 0;
  for (; c + kRun <= count; c += kRun) std::memcpy(dst + c * sizeof(T), run, sizeof(run));
  for (; c < count; ++c) write(dst + c * sizeof(T), value);
}

// 4 x 4 elements of 4 bytes, source rows becoming columns.
void transpose_4x4(char* dst, int64_t dst_row, const char* src, int64_t src_row) {
  typedef uint32_t V __attribute__((vector_size(16)));
  V a = read<V>(src), b = read<V>(src + src_row), c = read<V>(src + 2 * src_row),
    d = read<V>(src + 3 * src_row);
  V ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  V cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  write(dst, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  write(dst + dst_row, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  write(dst + 2 * dst_row, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  write(dst + 3 * dst_row, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

// The destination is contiguous along columns, the source along rows.
template <typename T>
void transpose(char* dst, int64_t dst_row, const char* src, int64_t src_column, Rectangle size) {
  constexpr int64_t kTile = 4;
  int64_t c = 0;
  for (; c + kTile <= size.columns; c += kTile) {
    const char* s = src + c * src_column;
    char* d = dst + c * sizeof(T);
    int64_t r = 0;
    for (; r + kTile <= size.rows; r += kTile) {
      if constexpr (sizeof(T) == 4) {
        transpose_4x4(d + r * dst_row, dst_row, s + r * sizeof(T), src_column);
      } else {
        for (int64_t i = 0; i < kTile; ++i)
          for (int64_t j = 0; j < kTile; ++j)
            write(d + (r + i) * dst_row + j * sizeof(T), read<T>(s + (r + i) * sizeof(T) + j * src_column));
      }
    }
    for (; r < size.rows; ++r)
      for (int64_t j = 0; j < kTile; ++j)
        write(d + r * dst_row + j * sizeof(T), read<T>(s + r * sizeof(T) + j * src_column));
  }
  for (; c < size.columns; ++c)
    for (int64_t r = 0; r < size.rows; ++r)
      write(dst + c * sizeof(T) + r * dst_row, read<T>(src + c * src_column + r * sizeof(T)));
}

// Rows of a few bytes: a size known to the compiler makes each one or two moves.
template <int bytes>
void move_short_rows(char* dst, int64_t to_row, const char* src, int64_t from_row, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) std::memcpy(dst + r * to_row, src + r * from_row, bytes);
}
void move_rows(char* dst, int64_t to_row, const char* src, int64_t from_row, int64_t rows, int64_t bytes) {
  switch (bytes) {
#define WEFT_X(n) \
  case n:         \
    return move_short_rows<n>(dst, to_row, src, from_row, rows);
    WEFT_X(1)
    WEFT_X(2)
    WEFT_X(3)
    WEFT_X(4) WEFT_X(6) WEFT_X(8) WEFT_X(12) WEFT_X(16) WEFT_X(20) WEFT_X(24) WEFT_X(28) WEFT_X(32) WEFT_X(48)
        WEFT_X(64)
#undef WEFT_X
            default : break;
  }
  for (int64_t r = 0; r < rows; ++r) std::memcpy(dst + r * to_row, src + r * from_row, bytes);
}

template <typename T>
void move_typed(char* dst, Strides2 to, const char* src, Strides2 from, Rectangle size) {
  constexpr int64_t kItem = sizeof(T);
  if (to.column == kItem && from.column == 0) {
    for (int64_t r = 0; r < size.rows; ++r)
      fill_row<T>(dst + r * to.row, read<T>(src + r * from.row), size.columns);
  } else if (to.column == kItem && from.column == kItem) {
    move_rows(dst, to.row, src, from.row, size.rows, size.columns * kItem);
  } else if (to.column == kItem && from.column == -kItem) {
    for (int64_t r = 0; r < size.rows; ++r)
      move_backward<T>(dst + r * to.row, src + r * from.row, size.columns);
  } else if (kItem == 4 && to.column == kItem && from.column == 2 * kItem) {
    for (int64_t r = 0; r < size.rows; ++r)
      move_every_second(dst + r * to.row, src + r * from.row, size.columns);
  } else if (to.column == kItem && from.row == kItem && size.rows > 1) {
    transpose<T>(dst, to.row, src, from.column, size);
  } else if (to.row == kItem && from.column == kItem && size.rows > 1) {
    transpose<T>(dst, to.column, src, from.row, {size.columns, size.rows});
  } else if (std::llabs(from.row) < std::llabs(from.column) && std::llabs(to.row) < std::llabs(to.column)) {
    move_plain<T>(dst, {to.row, to.column}, src, {from.row, from.column}, {size.columns, size.rows});
  } else {
    move_plain<T>(dst, to, src, from, size);
  }
}

}  // namespace

void move_rectangle(char* dst, Strides2 to, const char* src, Strides2 from, Rectangle size, int64_t item) {
  switch (item) {
    case 1:
      return move_typed<uint8_t>(dst, to, src, from, size);
    case 2:
      return move_typed<uint16_t>(dst, to, src, from, size);
    case 4:
      return move_typed<uint32_t>(dst, to, src, from, size);
    case 8:
      return move_typed<uint64_t>(dst, to, src, from, size);
    default:
      return move_typed<Bytes16>(dst, to, src, from, size);
  }
}

}  // namespace weft::cpu
