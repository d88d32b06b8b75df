#include "ops/cpu/loop_nest.h"

#include <cstdlib>
#include <utility>

#include "weft/base/error.h"

namespace weft::cpu {

void LoopNest::append(int64_t size, const Operand* operand, int dim) {
  sizes[rank] = size;
  for (int k = 0; k < operands; ++k) strides[k][rank] = operand[k].strides[dim] * item_size(operand[k].dtype);
  ++rank;
}

namespace {

// Whether dimension `a` should lie inside `b`: the first operand that tells them apart decides. A broadcast
// dimension tells nothing.
bool is_inner(const LoopNest& nest, int a, int b) {
  for (int k = 0; k < nest.operands; ++k) {
    int64_t sa = std::llabs(nest.strides[k][a]), sb = std::llabs(nest.strides[k][b]);
    if (sa == 0 || sb == 0 || sa == sb) continue;
    return sa < sb;
  }
  return false;
}

void swap_dims(LoopNest& nest, int a, int b) {
  std::swap(nest.sizes[a], nest.sizes[b]);
  for (int k = 0; k < nest.operands; ++k) std::swap(nest.strides[k][a], nest.strides[k][b]);
}

bool can_merge(const LoopNest& nest, int inner, int outer) {
  for (int k = 0; k < nest.operands; ++k)
    if (nest.strides[k][outer] != nest.strides[k][inner] * nest.sizes[inner]) return false;
  return true;
}

}  // namespace

void LoopNest::order() {
  // Insertion: the usual case is in order already.
  for (int d = 1; d < rank; ++d)
    for (int i = d; i > 0 && is_inner(*this, i, i - 1); --i) swap_dims(*this, i, i - 1);
}

void LoopNest::merge() {
  int last = 0;
  for (int d = 1; d < rank; ++d) {
    if (can_merge(*this, last, d)) {
      sizes[last] *= sizes[d];
      continue;
    }
    if (++last != d) {
      sizes[last] = sizes[d];
      for (int k = 0; k < operands; ++k) strides[k][last] = strides[k][d];
    }
  }
  if (rank > 0) rank = last + 1;
}

bool make_loop_nest(LoopNest& nest, std::span<const Operand> operands, std::span<const int64_t> sizes) {
  invariant(operands.size() <= kMaxOperands, "a loop over {} operands; {} at most", operands.size(),
            kMaxOperands);
  require(sizes.size() <= kMaxRank, "a tensor of {} dimensions; {} at most", sizes.size(), kMaxRank);
  // Nothing to do, whatever the strides: those of a tensor without elements may be larger than any memory.
  for (const int64_t size : sizes)
    if (size == 0) return false;
  nest.rank = 0;
  nest.operands = static_cast<int>(operands.size());
  for (int d = static_cast<int>(sizes.size()) - 1; d >= 0; --d)
    if (sizes[d] != 1) nest.append(sizes[d], operands.data(), d);
  nest.order();
  nest.merge();
  return true;
}

}  // namespace weft::cpu
