#include "ops/out_dtype.h"

namespace weft {

std::span<const Operator* const> operators_with_out_dtype() {
  static const Operator* const kAll[] = {
      &operator_named("aten::linear"),     &operator_named("aten::mm"),
      &operator_named("aten::conv2d"),     &operator_named("aten::convolution"),
      &operator_named("aten::mul.Tensor"), &operator_named("aten::mul.Scalar"),
      &operator_named("aten::div.Tensor"), &operator_named("aten::div.Scalar"),
  };
  return kAll;
}

}  // namespace weft
