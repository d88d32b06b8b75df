#pragma once

#include "weft/dispatch/operator.h"

namespace weft::detail {

// Adds a user's operator; it must live for the rest of the process.
void register_operator(const Operator& op);

}  // namespace weft::detail
