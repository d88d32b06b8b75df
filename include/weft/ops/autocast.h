#pragma once

#include <optional>

#include "weft/dispatch/layers.h"

namespace weft {

// While it lives, matmuls and convolutions of f32 tensors run in a narrower type, and losses run in f32,
// whatever their inputs: PyTorch's lists for the CPU. Everything else, softmax and normalisation too, runs in
// the type of its inputs.
class Autocast {
 public:
  explicit Autocast(DType dtype = kBFloat16, bool enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;

 private:
  DType saved_dtype_;
  bool was_active_;
};

namespace detail {
// The narrower type; nothing where autocast is off.
std::optional<DType> autocast_dtype();
// What autocast does to a call, for a layer that must do so itself. Nothing where it goes on in parts, which
// are looked at one by one; otherwise the arguments in the types that it runs in.
std::optional<ValueList> autocast_arguments(const Operator& op, Args args);
}  // namespace detail

}  // namespace weft
