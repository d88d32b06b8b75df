#pragma once

#include "weft/graph/script_view.h"

namespace weft {

// "quoted \"text\"" with escapes.
std::string quoted_text(std::string_view text);
// A constant as TorchScript's graphs write it: 2, 2., "cpu", {3} for a tensor of one element, <Tensor> for
// one of many. `type` tells a number from a 0-d tensor that holds it.
std::string constant_text(const Value& value, const ScriptType& type);
// The same in code; tensors have no text there and are an error.
std::string constant_code(const Value& value, const ScriptType& type);
// The arguments of a custom function that hold no tensors: strings as they are, anything else as Python has
// it.
std::string scalars_text(const ValueList& scalars);
// A line of a graph, without its source location: "%2 : Tensor = aten::mul(%x, %1)".
std::string script_line(const ScriptNode& node, bool with_types);
// PyTorch's number for a dtype.
int64_t scalar_type_number(DType dtype);

}  // namespace weft
