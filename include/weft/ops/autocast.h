#pragma once

#include "weft/ops/layers.h"

namespace weft {

// While it lives, matrix products and convolutions of f32 tensors run in a narrower type, and operators that
// lose by it (softmax, losses, normalisation) run in f32, whatever their inputs.
class Autocast {
 public:
  explicit Autocast(DType dtype = kBFloat16, bool enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;

 private:
  DType saved_dtype_;
  bool was_active_;
};

}  // namespace weft
