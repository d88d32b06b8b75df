#pragma once

#include "weft/base/detail/object_pool.h"
#include "weft/base/detail/small_vector.h"
#include "weft/base/function_ref.h"
#include "weft/core/value.h"

namespace weft {

class Operator;

// Under which mode a view was made; decides whether writing to it may be differentiated.
enum class ViewCreation : uint8_t { kDefault, kNoGrad, kInference, kMultiOutput, kCustomFunction };

// How a view was made: by `op` from the previous view or, at the chain's start, from the base. Replaying the
// chain on a new base gives the same view of it, whatever layers the base lives in.
struct ViewStep : RefCounted, Pooled {
  Tensor base;             // never a view itself
  Ref<ViewStep> previous;  // null when made from the base directly
  const Operator* op = nullptr;
  SmallVector<Value, 4> args;  // in schema order, the viewed argument left None
  int output = -1;             // which result of an operator with several (split, unbind)
  ViewCreation creation = ViewCreation::kDefault;

  // Makes this the last step of `view`, and registers the view with its base.
  static void attach(Ref<ViewStep> step, TensorImpl& view);
  // Calls f for every living view of `base`.
  static void for_each_view(const TensorImpl& base, FunctionRef<void(TensorImpl&)> f);
  // What was made from `from` was made from `to`, which nobody has seen yet.
  static void move_views(TensorImpl& from, const Tensor& to);
  // The view is gone; the step may live on as part of other views' chains.
  void forget_view() noexcept;
  ~ViewStep();

  // Frees a chain of any length without recursion.
  static void release_last(ViewStep* step) noexcept;

 private:
  TensorImpl* view_ = nullptr;
  ViewStep* next_ = nullptr;  // the other views of the base
  ViewStep* before_ = nullptr;
};

}  // namespace weft
