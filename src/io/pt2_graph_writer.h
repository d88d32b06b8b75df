#pragma once

#include "base/json.h"
#include "weft/export/exported_program.h"

namespace weft::pt2 {

// The graph of a program, with those inside it. `inputs` are its signature's, empty for a graph inside
// another.
Json json_of(const GraphModule& module, const std::vector<InputSpec>& inputs, int depth = 0);
// What a file says of a tensor.
Json json_of(const Tensor& tensor);
// A value of a program, or a constant, as an argument of a signature.
Json argument_json(const Value& value);

}  // namespace weft::pt2
