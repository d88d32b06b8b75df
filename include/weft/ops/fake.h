#pragma once

#include "weft/dispatch/layers.h"
#include "weft/ops/fake_converter.h"

namespace weft {

// Tensors without data: operators answer with shape, type, layout and aliasing, from the meta functions.
struct FakeOptions {
  // Where symbolic sizes and values that come from data get their symbols; null: all sizes are plain.
  Ref<ShapeEnv> shape_env;
  // Whether real tensors may be among fake ones. A fake takes the place of each, and is what calls write
  // to: the real one never changes.
  bool allow_real_inputs = false;
};

// While it lives, operators of this thread compute nothing: factories make fake tensors. Its state, the
// converter, may outlive it, and be entered again.
class FakeMode {
 public:
  explicit FakeMode(FakeOptions options = {});
  // Goes on where another mode with this converter was left.
  FakeMode(Ref<FakeConverter> converter, bool allow_real_inputs);
  ~FakeMode();
  FakeMode(const FakeMode&) = delete;

  const FakeOptions& options() const { return options_; }
  const Ref<FakeConverter>& converter() const { return converter_; }
  // The innermost mode of this thread; null where there is none, or the layers are masked that it is one of.
  static FakeMode* current();
  // The fake tensor for `real`, always the same one. With a ShapeEnv its sizes become symbols.
  Tensor fake_of(const Tensor& real, const FakeRequest& request = {}) const {
    return converter_->convert(real, request);
  }

 private:
  FakeOptions options_;
  Ref<FakeConverter> converter_;
  FakeMode* outer_;
  bool was_active_;
};

// What `op` would return for these arguments, without data: the meta function, in the form that `op` has.
Value run_meta(const Operator& op, Args args);

// For meta functions of data-dependent operators: a size that only data could tell, at most `upper`.
SymInt unbacked_size(const char* op, const SymInt& upper);
// A value that only data could tell.
Value unbacked_item(const char* op, DType dtype);

}  // namespace weft
