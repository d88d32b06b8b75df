#pragma once

#include "weft/dispatch/operator.h"

namespace weft {

// What an out= call does to one of its targets, decided from the shape of what the functional form made for
// it: an error where type or device do not fit, other sizes where they differ. Values are the caller's
// business. `op` is the out= form, called with `args`.
void settle_out(const Operator& op, Args args, const Tensor& made, const Tensor& target);

}  // namespace weft
