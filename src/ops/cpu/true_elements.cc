#include "ops/cpu/true_elements.h"

namespace weft::cpu {

TrueElements::TrueElements(const bool* mask, int64_t n) : mask_(mask), n_(n) {
  int64_t blocks = (n + kBlock - 1) / kBlock;
  before_.assign(static_cast<size_t>(blocks) + 1, 0);
  parallel_for(0, n, kBlock, [&](int64_t begin, int64_t end) {
    int64_t found = 0;
    for (int64_t i = begin; i < end; ++i) found += mask[i];
    before_[static_cast<size_t>(begin / kBlock) + 1] = found;
  });
  for (size_t b = 1; b < before_.size(); ++b) before_[b] += before_[b - 1];
}

}  // namespace weft::cpu
