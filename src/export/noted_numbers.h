#pragma once

#include "weft/base/function_ref.h"
#include "weft/core/value.h"
#include "weft/sym/shape_env.h"

namespace weft {

// The symbolic numbers in what a node notes of its value: the sizes of tensors, and numbers themselves.
void for_each_number(const Value& value, FunctionRef<void(const sym::Expr*)> f);

}  // namespace weft
