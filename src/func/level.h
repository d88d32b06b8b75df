#pragma once

#include "weft/base/function_ref.h"
#include "weft/core/from_data.h"
#include "weft/core/printable_box.h"
#include "weft/core/untracked_box.h"
#include "weft/core/value_walk.h"
#include "weft/dispatch/layers.h"
#include "weft/func/func.h"

// Transform levels: vmap, grad, jvp and functionalize as entries of one stack. Each owns wrapper tensors; a
// call meets the innermost level first, which answers by calls that meet only the levels below it.

namespace weft {

class Level : public RefCounted {
 public:
  virtual ~Level() = default;
  // Answers `op`, some argument of which is a wrapper of this level. Called with this level on top.
  virtual Value handle(const Operator& op, Args args) = 0;
  // Whether the level wants to see calls without wrappers of its own too (factories under vmap).
  virtual bool sees_everything() const { return false; }
  // Whether composites reach it in parts.
  virtual bool decomposes() const { return true; }
  // Whether wrappers of levels that have ended reach it as they are, and not as their values.
  virtual bool sees_ended() const { return false; }
  // Whether one draw of random numbers is for a whole batch of the program's.
  virtual bool draws_for_batch() const { return false; }
  // The level decides gradient recording by itself; below it the mode is what it was outside.
  virtual bool owns_grad_mode() const { return false; }
  virtual const char* name() const = 0;

  bool alive = true;
  uint16_t depth = 0;  // its position in the stack, from 1
  bool outer_grad_mode = true;
};

// A tensor of a level: stands for `value`, a tensor of the levels below.
struct LevelBox : TensorBox, PrintableBox, UntrackedBox {
  // What the wrapper stands for now; asked once its level has ended.
  virtual Tensor live_value() { return value; }
  const Tensor* stands_for() const override { return &value; }
  // Of the value's untracked tensor; a tangent is history too.
  Ref<TensorBox> untracked() const override;
  std::string text_of(const Tensor& tensor) const override;

  Ref<Level> level;
  Tensor value;
  int64_t batch_dim = -1;  // vmap: the dim of `value` that the user does not see
  Tensor tangent;          // jvp: undefined is zero
};

// The box of a wrapper; null for other tensors.
LevelBox* level_box(const Tensor& tensor);
// The value of a wrapper whose level has ended, all the way down; other tensors as they are.
Tensor living(Tensor tensor);
// The box if `tensor` is a wrapper of this very level.
LevelBox* box_at(const Tensor& tensor, const Level& level);
// A wrapper that shares identity and version with `value`, less its batch dim.
Tensor wrap_at(const Ref<Level>& level, const Tensor& value, int64_t batch_dim = -1, Tensor tangent = {});
// After an in-place call below: the wrapper shows what its value has become.
void refresh_wrapper(const Tensor& wrapper);

// Enters a level for a scope; it is dead afterwards, and its wrappers act as their values.
class LevelEntry {
 public:
  explicit LevelEntry(Ref<Level> level);
  ~LevelEntry();
  LevelEntry(const LevelEntry&) = delete;
  const Ref<Level>& level() const { return level_; }

 private:
  Ref<Level> level_;
  std::vector<Ref<Level>> saved_stack_;
  LayerStateScope saved_;
};

// What a program makes of numbers inside of a level is the level's: it may be written to.
class LevelLiterals final : public LiteralObserver {
 public:
  explicit LevelLiterals(Ref<Level> level)
      : level_(std::move(level)), outer_(detail::literal_observer), scope_(*this) {}
  Tensor literal(const Tensor& tensor) override;

 private:
  const Ref<Level> level_;
  LiteralObserver* const outer_;
  const LiteralScope scope_;
};

// Whether the tensor, and what it is a view of, are tensors of this level: what is written to keeps its
// derivative.
bool is_writable_at(const Tensor& tensor, const Level& level);

// Whether a call meets a level that draws for a batch.
bool meets_batch();

// Calls inside the scope start one level below `level`.
class BelowLevel {
 public:
  explicit BelowLevel(const Level& level);

 private:
  LayerStateScope saved_;
};

// The arguments of an in-place call for its functional rule. What the rule saves must outlive the write:
// where a layer below may record, the target is a copy (of its tangent too).
std::vector<Value> arguments_to_keep(const Ref<Level>& level, Args args);

// The result of a call below with written arguments as the wrappers they were given as. `wrap` makes wrappers
// of the others.
Value wrap_results(const Operator& op, Args args, const Value& result,
                   FunctionRef<Value(const Tensor&)> wrap);

namespace func {

// As vjp_of, for a function that has other arguments too. They may be written to: they are tensors of the
// level.
using FnOfBoth = std::function<Tensors(const Tensors& inputs, const Tensors& others)>;
std::pair<Tensors, Pullback> vjp_with_others(const FnOfBoth& f, const Tensors& inputs, const Tensors& others);

}  // namespace func
}  // namespace weft
