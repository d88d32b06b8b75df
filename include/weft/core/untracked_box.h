#pragma once

#include "weft/core/tensor_impl.h"

namespace weft {

// A TensorBox that derives from this too can have a second tensor of the same memory without history.
class UntrackedBox {
 public:
  virtual ~UntrackedBox() = default;
  // The box of that tensor (`.data`).
  virtual Ref<TensorBox> untracked() const = 0;
};

}  // namespace weft
