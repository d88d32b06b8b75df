#pragma once

#include "weft/core/tensor.h"

// Checks of arguments that families share, most of them of backward operators, whose arguments must fit each
// other. Sizes that only data can tell count as equal.

namespace weft {

// Whether sizes are those that are expected.
bool sizes_fit(SymIntSpan sizes, SymIntSpan expected);
// `tensor`, the argument `name` of `op`, must have these sizes.
void check_sizes(const char* op, const char* name, const Tensor& tensor, SymIntSpan expected);
// It must have this many elements.
void check_numel(const char* op, const char* name, const Tensor& tensor, const SymInt& expected);
// It must have this type.
void check_dtype(const char* op, const char* name, const Tensor& tensor, DType expected);
// It must broadcast to these sizes.
void check_expandable(const char* op, const char* name, const Tensor& tensor, SymIntSpan target);

// A tensor of indices, unless it is empty, must be of an integer type that can name any element.
void check_index_type(const char* op, const Tensor& index);

struct NamedTensor {
  const char* name;
  const Tensor& tensor;
};
// The type of the statistics of a normalisation. Its parameters, those of them that are defined, have the
// type of its input, or all of them are f32 beside a 16-bit input.
DType check_parameter_types(const char* op, const Tensor& input,
                            std::initializer_list<NamedTensor> parameters);

}  // namespace weft
