#pragma once

#include <cstdint>
#include <vector>

#include "weft/base/parallel.h"

namespace weft::cpu {

// The true elements of a mask of `n` bytes, numbered in order. Counted block by block, so that they can be
// visited in parallel.
class TrueElements {
 public:
  TrueElements(const bool* mask, int64_t n);

  int64_t count() const { return before_.back(); }
  // Calls visit(number, position) for each, from several threads.
  template <typename F>
  void for_each(const F& visit) const {
    parallel_for(0, n_, kBlock, [&](int64_t begin, int64_t end) {
      int64_t number = before_[static_cast<size_t>(begin / kBlock)];
      for (int64_t i = begin; i < end; ++i)
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
