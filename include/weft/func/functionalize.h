#pragma once

#include "weft/func/func.h"

// Functionalisation: the same program without in-place writes. Every tensor of the program becomes a wrapper
// that stands for a value; a write gives it another value, and whatever shares memory with it follows.
//
//   auto f = [](const Tensor& x) { Tensor y = x.clone(); y.select(0, 0).add_(1); return y; };
//   func::functionalize(f)(x);   // below, only `clone`, `select`, `add` and `select_scatter` are called

namespace weft::func {

// Calls of the result make no in-place calls on what they are given or make, until the end: then each
// argument that the function wrote to is written once (`copy_`). Results share memory with arguments and with
// each other as they would have. Arguments are taken to share no memory with one another.
Transformed functionalize_of(Fn f);
template <typename F>
Transformed functionalize(F f) {
  return functionalize_of(detail::fn_of(std::move(f)));
}

// --- the fixed positions of the layer stack --------------------------------------------------------------

// Upper: above autograd and the upper recorder, so that composites stay whole unless they may alias or
// mutate. Lower: below autograd and extensions, so that the backward pass is functionalised too.
enum class FunctionalPosition : uint8_t { kUpper, kLower };

// While it lives, tensors that operators of this thread make from nothing are functional.
class FunctionalizeScope {
 public:
  explicit FunctionalizeScope(FunctionalPosition position);
  ~FunctionalizeScope();
  FunctionalizeScope(const FunctionalizeScope&) = delete;

 private:
  uint32_t saved_;
};

// A functional tensor that begins as `value`; shares no memory with it as far as calls above can tell.
Tensor to_functional(const Tensor& value, FunctionalPosition position);
bool is_functional(const Tensor& tensor);
// What a functional tensor is now: every write to its memory is in it. An error for other tensors.
Tensor from_functional(const Tensor& tensor);

// What happened to a functional tensor since it was made.
struct FunctionalChanges {
  int64_t writes = 0;  // to its memory, through any alias
  int64_t writes_under_no_grad = 0;
  bool metadata = false;  // sizes or strides, by an in-place view (`t_`, `unsqueeze_`)
};
FunctionalChanges functional_changes(const Tensor& tensor);

}  // namespace weft::func
