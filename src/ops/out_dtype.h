#pragma once

#include <span>

#include "weft/dispatch/operator.h"

namespace weft {

// The operators whose results can be asked for in a type of their own, see func::out_dtype.
std::span<const Operator* const> operators_with_out_dtype();

}  // namespace weft
