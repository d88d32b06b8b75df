#pragma once

#include "weft/core/typed_value.h"
#include "weft/ops/operator_value.h"

namespace weft::func {

// op(args...) with a result of type `dtype`: captures keep it as one call, so that a compiler may choose how
// to compute it. Run, the arguments are promoted together with `dtype`, and the result is cast. `op` is
// functional, gives one tensor, and is a linear layer, matmul, convolution, multiplication or division; it
// has no derivative.
//
//   Tensor y = func::out_dtype(operator_named("aten::mm"), kInt32, a, b);  // a, b of int8
Tensor out_dtype_of(const Operator& op, DType dtype, const ValueList& args);
template <typename... A>
Tensor out_dtype(const Operator& op, DType dtype, const A&... args) {
  return out_dtype_of(op, dtype, {to_value(args)...});
}

}  // namespace weft::func
