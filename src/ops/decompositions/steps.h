#pragma once

#include "ops/support/type_promotion.h"
#include "weft/ops/functions.h"

namespace weft::ops {

// Steps of 16-bit floats are taken in f32, as kernels take them, and rounded once.
class Steps {
 public:
  template <typename... T>
  explicit Steps(const T&... tensors) : Steps(common_type(tensors...)) {}
  explicit Steps(DType result)
      : result_(result), compute_(is_floating(result) && item_size(result) == 2 ? kFloat32 : result) {}
  Tensor in(const Tensor& tensor) const { return tensor.defined() ? tensor.to(compute_) : tensor; }
  Tensor out(const Tensor& tensor) const { return tensor.to(result_); }
  DType compute() const { return compute_; }

 private:
  DType result_, compute_;
};

}  // namespace weft::ops
