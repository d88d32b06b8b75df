#pragma once

#include <unordered_map>
#include <utility>

#include "weft/ops/layers.h"
#include "weft/sym/shape_env.h"

namespace weft {

// Tensors without data: operators answer with shape, type, layout and aliasing, from the meta functions.
struct FakeOptions {
  // Where symbolic sizes and values that come from data get their symbols; null: all sizes are plain.
  Ref<ShapeEnv> shape_env;
  // Whether real tensors may be among fake ones. A stand-in takes the place of each, and is what calls write
  // to: the real one never changes.
  bool allow_real_inputs = false;
};

// While it lives, operators of this thread compute nothing: factories make fake tensors.
class FakeMode {
 public:
  explicit FakeMode(FakeOptions options = {});
  ~FakeMode();
  FakeMode(const FakeMode&) = delete;

  const FakeOptions& options() const { return options_; }
  // The innermost mode of this thread, or null.
  static FakeMode* current();
  // A fake tensor with the sizes, strides, type and device of `real`; with a ShapeEnv the sizes become
  // symbols named after `source` ("x").
  Tensor fake_of(const Tensor& real, std::string_view source = "") const;
  // What takes the place of a real tensor as long as this mode lives: always the same one, and tensors that
  // share memory have stand-ins that share theirs.
  const Tensor& stand_in(const Tensor& real);

 private:
  struct Twin {
    Ref<Storage> real, fake;
  };
  FakeOptions options_;
  FakeMode* outer_;
  bool was_active_;
  std::unordered_map<uint64_t, std::pair<Tensor, Tensor>> stand_ins_;  // real and fake, by serial number
  std::unordered_map<const Storage*, Twin> memories_;
};

// A fake tensor of the same type and geometry, symbols included, that shares nothing with `tensor`.
Tensor shape_only(const Tensor& tensor);

inline bool is_fake(const Tensor& tensor) { return tensor.flags() & layer::kFake; }

// What `op` would return for these arguments, without data: the meta function, in the form that `op` has.
Value run_meta(const Operator& op, Args args);

// For meta functions of data-dependent operators: a size that only data could tell, at most `upper`.
SymInt unbacked_size(const char* op, const SymInt& upper);
// A value that only data could tell.
Value unbacked_item(const char* op, DType dtype);

}  // namespace weft
