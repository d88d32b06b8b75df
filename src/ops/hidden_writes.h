#pragma once

#include "weft/ops/operator.h"

namespace weft {

// Some operators write to arguments though their schema does not say so. For such a call, the operator of the
// same arguments and results whose schema does; null for every other call.
const Operator* openly_writing(const Operator& op, Args args);
// Whether a call writes to arguments though the schema of its operator does not say so. Arguments that are
// not known yet, nodes of a graph say, may be anything.
bool may_write_secretly(const Operator& op, Args args);

}  // namespace weft
