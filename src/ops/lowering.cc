#include "ops/lowering.h"

#include "ops/support/pointwise.h"
#include "weft/base/error.h"
#include "weft/dispatch/operator.h"

namespace weft {

void PointwiseCall::add_param(uint8_t argument, const Scalar& number) {
  param_arguments[param_count] = argument;
  if (number.is_symbolic()) symbolic_params = static_cast<uint8_t>(symbolic_params | 1u << param_count);
  else params[param_count] = param_of(number, compute);
  ++param_count;
}

Lowering lower(const Operator& op, Args args) {
  const LowerRule& rule = op.def().lower;
  if (rule.reason) return NotLowered{rule.reason};
  if (!rule.of_call)
    return NotLowered{op.is_composite() ? "it is made of other operators, which are lowered one by one"
                                        : "it is neither pointwise nor a reduction"};
  return rule.of_call(args);
}

}  // namespace weft
