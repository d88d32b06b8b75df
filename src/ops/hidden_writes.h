#pragma once

#include "weft/ops/operator.h"

namespace weft {

// Some operators write to arguments though their schema does not say so. For such a call, the operator of the
// same arguments and results whose schema does; null for every other call.
const Operator* openly_writing(const Operator& op, Args args);

}  // namespace weft
