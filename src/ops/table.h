#pragma once

#include "weft/ops/operator.h"

namespace weft::detail {

// Every overload of weft, sorted by name; written by weft-opgen.
extern const size_t operator_count;
extern const Operator operator_table[];

}  // namespace weft::detail
