#pragma once

#include "weft/dispatch/operator.h"

namespace weft::detail {

// Every overload of weft, sorted by name; written by weft-opgen.
extern const size_t operator_count;
extern const Operator operator_table[];
// Operators over functions, which are found by name but have no row in the table: what they do is in the
// functions. Defined by the folder that has their rules.
std::span<const Operator> operators_over_functions();
// Operators that make nested tensors, likewise without a row: what they give is no plain tensor.
std::span<const Operator> nested_operators();

}  // namespace weft::detail
