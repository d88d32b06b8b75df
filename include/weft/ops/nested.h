#pragma once

#include "weft/ops/extension.h"

// Nested tensors: tensors of different sizes and one rank as one tensor, packed in one storage.
//
//   Tensor rows = nested_tensor({rand({2, 4}), rand({3, 4})});
//   std::vector<Tensor> parts = rows.cos().unbind();
//
// They take elementwise operators, with other nested tensors of the same sizes, numbers and
// 0-d tensors, in place too; copies, conversions and `..._like`; and `unbind`. Gradients pass through all of
// these. Anything else, transforms of weft::func included, is an error: take them apart.

namespace weft {

// The components concatenated in memory; of the first one's type. The rank must be the same.
Tensor nested_tensor(const std::vector<Tensor>& components);
// The rows of `values` (dim 0) as components: the first lengths[0] of them, the next lengths[1], ... A trace
// has this as one step, and so for other lengths and another number of them too.
Tensor nested_from_lengths(const Tensor& values, const Tensor& lengths);

bool is_nested(const Tensor& tensor);
// The sizes of each component. `size(0)` of the whole is how many there are, and a dim in which they differ
// has the size -1.
std::vector<std::vector<int64_t>> nested_sizes(const Tensor& tensor);

}  // namespace weft
