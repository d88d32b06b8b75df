#pragma once

#include "weft/func/func.h"

// Functionalisation: the same program without mutation. Every tensor of the program becomes a wrapper
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

// What happened to a functional tensor, and to its memory through any alias, since it was made.
struct FunctionalChanges {
  // Of the memory: how often it got another value by a write, and how many of these writes autograd did not
  // follow.
  int64_t writes = 0;
  int64_t writes_under_no_grad = 0;  // in inference mode too
  int64_t writes_in_inference_mode = 0;
  int64_t writes_to_detached = 0;           // through an alias made by `detach`
  int64_t writes_hidden_from_autograd = 0;  // through `.data`, or marked so: no version counts them
  uint64_t generation = 0;                  // how often it got another value at all
  bool frozen = false;                      // nobody may write to it
  bool resized = false;                     // has other sizes than it began with (`resize_`)
  int64_t storage_resizes = 0;              // emptied or filled again (`resize_storage_bytes_`)
  SymInt storage_bytes_before, storage_bytes;
  // Of the tensor itself.
  bool metadata = false;  // other sizes, strides or memory, by an in-place view (`t_`) or one of these
  bool storage_replaced = false;  // looks at other memory (`set_`)

  // The questions of AOT autograd, in PyTorch's words. The ones about all mutations are true for none.
  bool has_data_mutation() const { return writes > 0; }
  bool has_metadata_mutation() const { return metadata; }
  bool was_storage_changed() const { return storage_replaced; }
  bool was_storage_resized() const { return storage_resizes > 0; }
  // Neither history nor version of the tensor know of a write.
  bool are_all_mutations_hidden_from_autograd() const { return writes <= writes_hidden_from_autograd; }
  bool are_all_mutations_under_no_grad_or_inference_mode() const {
    return writes <= writes_under_no_grad + writes_hidden_from_autograd;
  }
  // No write has become part of a history: writing the tensor back may not either.
  bool are_all_mutations_untracked() const {
    return writes <= writes_under_no_grad + writes_to_detached + writes_hidden_from_autograd;
  }
};
FunctionalChanges functional_changes(const Tensor& tensor);

// From now on a write to the tensor's memory is an error.
void freeze_functional(const Tensor& tensor);
// Reading the tensor is no error from now on, although its storage was emptied: somebody else fills it first.
void expect_filled_again(const Tensor& tensor);
// The last write to the tensor's memory is one that autograd must not hear of: it came from a kernel that is
// not an operator.
void mark_mutation_hidden_from_autograd(const Tensor& tensor);

}  // namespace weft::func
