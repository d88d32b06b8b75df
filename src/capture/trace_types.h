#pragma once

#include <string>

#include "weft/core/value.h"

namespace weft {

// The type of a value as TorchScript's messages write it: "Tensor", "Tuple[int]", "Dict[str, Tensor]".
std::string script_type_name(const Value& value);

// An error unless a trace can take these arguments: tensors, and lists, dictionaries and tuples of them;
// lists and dictionaries with entries, all of one type.
void check_traceable(const Value& arguments);

// An error, or a warning, unless a trace can give this.
void check_trace_result(const Value& result, bool strict);

}  // namespace weft
