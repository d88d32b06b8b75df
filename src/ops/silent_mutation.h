#pragma once

#include <optional>

#include "weft/dispatch/operator.h"

namespace weft {

// Some operators mutate arguments that their schema does not mark. For such a call, the operator of the same
// arguments and results whose schema marks them; null for every other call.
const Operator* mutating_equivalent(const Operator& op, Args args);
// Of a call that writes to nothing, of such an operator: the same call of an operator that never does.
struct EquivalentCall {
  const Operator* op;
  ValueList args;
};
std::optional<EquivalentCall> writeless_equivalent(const Operator& op, Args args);
// Whether a call mutates arguments that the schema of its operator does not mark. Arguments that are not
// known yet, nodes of a graph say, may be anything.
bool may_mutate_silently(const Operator& op, Args args);

}  // namespace weft
