#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "ops/cpu/convert.h"
#include "weft/base/error.h"

namespace weft::cpu {

// Tiles of a contiguous float array seen in precision T: the memory itself where the dtype is T, else a
// converted copy. A tile is `n` rows of `width` elements whose starts lie `inner` elements apart in memory.
template <typename T>
class FloatTile {
 public:
  FloatTile(const char* data, DType type, int64_t inner)
      : data_(const_cast<char*>(data)), type_(type), inner_(inner), is_direct_(type == dtype_of<T>) {
    invariant(is_floating(type), "a row kernel was given {}", dtype_name(type));
  }

  // Elements between the rows of the tile that `read` or `begin_write` returned.
  int64_t stride() const { return stride_; }

  const T* read(int64_t offset, int64_t n, int64_t width) {
    T* tile = begin_write(offset, n, width);
    if (!is_direct_) transfer<true>(offset, n, width);
    return tile;
  }
  T* begin_write(int64_t offset, int64_t n, int64_t width) {
    stride_ = is_direct_ ? inner_ : width;
    if (n > 1 && width == inner_) stride_ = inner_;
    if (is_direct_) return reinterpret_cast<T*>(data_) + offset;
    if (static_cast<int64_t>(buffer_.size()) < n * width) buffer_.resize(n * width);
    return buffer_.data();
  }
  void end_write(int64_t offset, int64_t n, int64_t width) {
    if (!is_direct_) transfer<false>(offset, n, width);
  }
  // Copies a tile of this array's stride to one of another.
  void copy(const T* from, T* to, int64_t n, int64_t width, int64_t to_stride) const {
    for (int64_t r = 0; r < n; ++r) std::memcpy(to + r * to_stride, from + r * stride_, width * sizeof(T));
  }

 private:
  template <bool reads>
  void transfer(int64_t offset, int64_t n, int64_t width) {
    Loop loop = reads ? converter(dtype_of<T>, type_) : converter(type_, dtype_of<T>);
    int64_t rows = width == inner_ ? 1 : n, run = width == inner_ ? n * width : width;
    for (int64_t r = 0; r < rows; ++r) {
      char* memory = data_ + (offset + r * inner_) * item_size(type_);
      char* tile = reinterpret_cast<char*>(buffer_.data() + r * width);
      char* pointers[] = {reads ? tile : memory, reads ? memory : tile};
      loop(run, pointers, nullptr);
    }
  }

  char* data_;
  DType type_;
  int64_t inner_, stride_ = 0;
  bool is_direct_;
  std::vector<T> buffer_;
};

}  // namespace weft::cpu
