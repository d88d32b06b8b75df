#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "weft/base/parallel.h"

namespace weft::cpu {

// The true elements of a mask of `n` bytes, numbered in order. Counted block by block, so that they can be
// visited in parallel.
class TrueElements {
  static_assert(std::endian::native == std::endian::little, "bytes of a word come in order");

 public:
  TrueElements(const bool* mask, int64_t n);

  int64_t count() const { return before_.back(); }
  // Calls visit(number, position) for each, from several threads.
  template <typename F>
  void for_each(const F& visit) const {
    parallel_for(0, n_, kBlock, [&](int64_t begin, int64_t end) {
      int64_t number = before_[static_cast<size_t>(begin / kBlock)], i = begin;
      // Eight at a time: a true byte is one bit, so there is no branch for each element.
      for (; i + 8 <= end; i += 8) {
        uint64_t word;
        std::memcpy(&word, mask_ + i, 8);
        for (; word; word &= word - 1) visit(number++, i + std::countr_zero(word) / 8);
      }
      for (; i < end; ++i)
        if (mask_[i]) visit(number++, i);
    });
  }

 private:
  static constexpr int64_t kBlock = 32768;
  const bool* mask_;
  int64_t n_;
  std::vector<int64_t> before_;  // how many come before each block, and in the end all of them
};

}  // namespace weft::cpu
