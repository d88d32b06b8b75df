#pragma once

#include <optional>

#include "func/level.h"
#include "weft/core/view_step.h"
#include "weft/func/functionalize.h"

// What the three positions of functionalisation share: wrappers that stand for values, and one call on them.

namespace weft {

// What all wrappers of one memory share: the value of the whole, and how often it was replaced.
struct FunctionalMemory : RefCounted {
  Tensor base;      // a tensor of the layers below; never written to
  SymInts strides;  // of the wrapper that `base` is the value of
  SymInt offset;    // of that wrapper into its storage
  uint64_t generation = 0;
  func::FunctionalChanges changes;   // of the memory; the tensor's own are in its box
  bool is_filled_elsewhere = false;  // before anybody reads what was emptied

  // Gives `base` the layout of the wrapper, where the steps, and `next`, can tell the difference.
  void restore_layout(const Ref<ViewStep>& steps, const Operator* next = nullptr);
  // The storage that the program knows of has no bytes: nothing may be read or written.
  bool is_emptied() const;
};

// `value` (of LevelBox) is the value as of `generation`; `steps` lead to it from the memory's base.
struct FunctionalBox final : LevelBox {
  Tensor live_value() override;
  Ref<TensorBox> untracked() const override;
  std::string text_of(const Tensor& tensor) const override;

  Ref<FunctionalMemory> memory;
  Ref<ViewStep> steps;  // without bases: replayed on whatever the memory holds
  uint64_t generation = 0;
  bool metadata_changed = false;
  Ref<FunctionalMemory> first_memory;  // what it looked at before `set_` gave it other memory; else null

  bool is_storage_replaced() const { return static_cast<bool>(first_memory); }
  FunctionalMemory& own_memory() const { return first_memory ? *first_memory : *memory; }
};

// A write that happens now, to `wrapper` with this box.
void note_write(const Tensor& wrapper, FunctionalBox& box);

// --- positions -------------------------------------------------------------------------------------------

// A position of functionalisation: which tensors are its own, and what is below.
struct Position {
  uint32_t bit;           // marks its wrappers
  Ref<Level> level = {};  // null for the fixed positions

  FunctionalBox* box_of(const Tensor& tensor) const {
    if (!tensor.defined() || !(tensor.impl()->flags() & bit)) return nullptr;
    auto* box = dynamic_cast<FunctionalBox*>(tensor.impl()->box.get());
    return box && box->level == level ? box : nullptr;
  }
};

// Calls inside the scope start below `position`.
class BelowPosition {
 public:
  explicit BelowPosition(const Position& position) {
    if (position.level) below_.emplace(*position.level);
    else mask_.emplace(layer::below(position.bit));
  }

 private:
  std::optional<BelowLevel> below_;
  std::optional<MaskScope> mask_;
};

// Calls inside the scope start at `position`, from wherever below.
class AtPosition {
 public:
  explicit AtPosition(const Position& position) {
    LayerState& state = layer_state();
    state.active |= position.bit;
    state.mask |= position.bit;  // the layers below stay as they are for the caller
    if (position.level) state.level_depth = position.level->depth;
  }

 private:
  LayerStateScope saved_;
};

// A wrapper with memory of its own.
Tensor wrap_value(const Position& position, const Tensor& value);
// Whether an element of one wrapper may be an element of the other. Exact where sizes are plain and few.
bool may_share_elements(const Tensor& a, const Tensor& b);
// ATen has such a pair for operators that write in passing: `name` and `name_functional`. Null for others.
const Operator* with_written_results(const Operator& op);
// The call on values, with wrappers of `position` for its results.
Value functional_call(const Position& position, const Operator& op, Args args);
// A call that changes which memory a wrapper looks at, or how much of it there is: an event, of which the
// layers below see at most a new value.
Value change_memory(const Position& position, const Operator& op, Args args);
// For functions of operators, which run at levels of their own.
Ref<Level> new_functionalize_level();

}  // namespace weft
