#pragma once

#include "weft/dispatch/operator.h"

namespace weft::dispatch {

// An in-place view (`t_`) touches no element: its tensor becomes another view of the same memory, and the
// story of how it came from its base gets one more step. Where others are views of that very tensor, what it
// was before becomes the base of all of them, so that they still see what they saw and a write to any reaches
// the others' histories.
class InplaceView {
 public:
  // Before the call. Any other call is none of its business. `box` is what a tensor that stands for others
  // held before it, for what it was; a wrapper whose level cannot give that keeps its views.
  InplaceView(const Operator& op, Args args, Ref<TensorBox> box = nullptr);
  // After it, when the tensor has its new geometry.
  void done() const;

 private:
  const Operator* functional_ = nullptr;
  Args args_;
  Tensor was_;  // what the tensor was, where others are views of it
};

}  // namespace weft::dispatch
