#pragma once

#include <cstdint>

namespace weft::cpu {

// A rectangle of elements in memory: `columns` is the inner dimension. Strides in bytes.
struct Rectangle {
  int64_t rows, columns;
};
struct Strides2 {
  int64_t column, row;
};

// Copies a rectangle of elements of `item` bytes (1, 2, 4, 8 or 16). Each side may have any strides; a source
// stride may be 0. Walks whichever side is contiguous, in tiles if the two disagree.
void move_rectangle(char* dst, Strides2 to, const char* src, Strides2 from, Rectangle size, int64_t item);

}  // namespace weft::cpu
