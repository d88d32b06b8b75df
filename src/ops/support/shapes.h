#pragma once

#include <span>

#include "weft/core/tensor.h"

// Shape arithmetic that meta functions share, on sizes that may be symbolic.

namespace weft {

// The sizes that `a` and `b` broadcast to; an error in PyTorch's words when they do not.
SymInts broadcast_sizes(SymIntSpan a, SymIntSpan b);
// The sizes that all the defined tensors broadcast to.
SymInts broadcast_sizes(std::initializer_list<const Tensor*> tensors);

// The layout that a pointwise operator gives its result: that of its inputs where they agree, otherwise dense
// in the order of dims that their strides suggest.
SymInts pointwise_strides(std::initializer_list<const Tensor*> inputs, SymIntSpan sizes);
SymInts pointwise_strides(std::span<const Tensor* const> inputs, SymIntSpan sizes);
TensorSpec pointwise_spec(std::initializer_list<const Tensor*> inputs, DType dtype);
// The layout of a pointwise result of one tensor and a number: as PyTorch, it does not take the shortcut for
// equal shapes, which shows in the strides of dims of size 0 and 1.
SymInts strides_beside_number(const Tensor& self);
// What empty_like(x) with preserve_format gives: x's own strides where it is dense, else dense in x's order.
SymInts preserved_strides(const Tensor& like);

// channels_last where the strides of 4 dims are in that order, with or without gaps; contiguous otherwise,
// and where they fit both.
MemoryFormat suggested_format(const Tensor& tensor);

// Normalises, checks for repeats, and returns a bit for each dim. No dims, or none given: all of them.
uint64_t dim_mask(IntSpan dims, int64_t rank, bool empty_means_all = true);
inline uint64_t dim_mask(const Tensor& self, const OptionalIntSpan& dim) {
  return dim_mask(dim ? *dim : IntSpan(), self.dim());
}
// The sizes left after reducing the masked dims.
SymInts reduced_sizes(SymIntSpan sizes, uint64_t mask, bool keepdim);

// Whether two lists of sizes are the same; undecided symbolic sizes guard.
bool same_sizes(SymIntSpan a, SymIntSpan b);
// The same where undecided sizes are taken to be equal: for checks that must not refuse them.
bool may_be_same_sizes(SymIntSpan a, SymIntSpan b);

// The device of the first tensor that is not a 0-dim CPU tensor beside others.
Device device_of(std::initializer_list<const Tensor*> tensors);

// A list argument of a fixed number of dims (stride, padding): one value stands for all.
SymInts expand_param(SymIntSpan values, size_t count, const char* op, const char* name);
Ints expand_param(IntSpan values, size_t count, const char* op, const char* name);

}  // namespace weft
