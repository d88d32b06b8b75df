// The memory of functional tensors, and the calls that change it as a whole: `set_`, `resize_`,
// `resize_storage_bytes_`.
#include <unordered_set>

#include "func/functional_arguments.h"
#include "ops/view_replay.h"
#include "weft/base/error.h"
#include "weft/ops/functions.h"

namespace weft {

namespace {

// Counts from the beginning of the storage, wherever the tensor itself begins.
bool reads_offset(const Operator& op) { return op.schema().argument_index("storage_offset").has_value(); }
bool reads_offset(const Ref<ViewStep>& steps) {
  for (const ViewStep* step = steps.get(); step; step = step->previous.get())
    if (reads_offset(*step->op)) return true;
  return false;
}

// The same elements `offset` after the beginning of their storage.
Tensor placed_at(const Tensor& tensor, const SymInts& strides, const SymInt& offset) {
  const Tensor dense = laid_out_as(tensor, strides);
  if (!dense.impl()->is_non_overlapping_and_dense())
    unsupported(
        "functionalize: {} begins within its storage and has gaps: what was written to it cannot be seen "
        "through other strides; clone it first",
        describe(tensor));
  const Tensor flat = as_strided(dense, {dense.numel()}, {1}, dense.storage_offset());
  return as_strided(cat({new_zeros(flat, {offset}), flat}), tensor.sizes(), strides, offset);
}

}  // namespace

// A value computed by other operators may have another layout than the program's tensor would; views that
// depend on the layout need it as the program knows it.
void FunctionalMemory::restore_layout(const Ref<ViewStep>& steps, const Operator* next) {
  const bool needs_offset = reads_offset(steps) || (next && reads_offset(*next));
  if (needs_offset && !guard_or(base.storage_offset() == offset, false)) {
    base = placed_at(base, strides, offset);
    ++generation;
    return;
  }
  const bool needs_strides = reads_strides(steps) || (next && next->has(Traits::kReadsStrides));
  if (!needs_strides || same_strides(strides, base.strides(), base.sizes())) return;
  base = laid_out_as(base, strides);
  ++generation;
}

Tensor FunctionalBox::live_value() {
  if (generation != memory->generation) {
    memory->restore_layout(steps);
    value = replay_view(steps, memory->base);
    generation = memory->generation;
  }
  return value;
}

bool FunctionalMemory::is_emptied() const {
  return !is_filled_elsewhere && changes.storage_resizes > 0 && known(changes.storage_bytes == SymInt(0));
}

Ref<TensorBox> FunctionalBox::untracked() const {
  auto box = make_ref<FunctionalBox>();
  box->level = level;
  box->value = value;
  box->memory = memory;
  box->steps = steps;
  box->generation = generation;
  return box;
}

namespace {

bool is_detached(const Ref<ViewStep>& steps) {
  for (const ViewStep* step = steps.get(); step; step = step->previous.get())
    if (step->op->has(Traits::kNotDifferentiable)) return true;
  return false;
}

}  // namespace

// The classes are apart, so that what is counted once is seen by autograd or not.
void note_write(const Tensor& wrapper, FunctionalBox& box) {
  func::FunctionalChanges& changes = box.memory->changes;
  const LayerState& state = layer_state();
  ++changes.writes;
  if (wrapper.impl()->has_own_version()) ++changes.writes_hidden_from_autograd;
  else if (!state.grad_mode || state.inference_mode) ++changes.writes_under_no_grad;
  else if (is_detached(box.steps)) ++changes.writes_to_detached;
  if (state.inference_mode) ++changes.writes_in_inference_mode;
}

namespace {

// What the storage of a tensor measures; of symbolic sizes, what they need.
SymInt storage_bytes(const Tensor& value) {
  if (!value.is_symbolic()) return static_cast<int64_t>(value.storage()->bytes());
  return value.numel() * SymInt(item_size(value.dtype()));
}

constexpr uint32_t kMirrored = tensor_flag::kConjugate | tensor_flag::kNegative | tensor_flag::kWrappedNumber;
}  // namespace

Tensor wrap_value(const Position& position, const Tensor& value) {
  auto box = make_ref<FunctionalBox>();
  box->level = position.level;
  box->value = value;
  box->memory = make_ref<FunctionalMemory>();
  box->memory->base = value;
  box->memory->strides = SymInts(value.strides());
  box->memory->offset = value.storage_offset();
  box->memory->changes.storage_bytes_before = box->memory->changes.storage_bytes = storage_bytes(value);
  size_t bytes = value.storage()->bytes();
  auto impl =
      make_ref<TensorImpl>(Storage::without_memory(bytes, value.device()), value.dtype(), value.device());
  impl->set_geometry(value.sizes(), value.strides(), value.storage_offset());
  impl->set_flags(position.bit | (value.flags() & kMirrored));
  impl->box = std::move(box);
  return Tensor(std::move(impl));
}

namespace {

class MemoryChange : FunctionalArguments {
 public:
  MemoryChange(const Position& position, const Operator& op, Args args)
      : FunctionalArguments(position, op, args) {}

  // `resize_` and `set_`: the kernel needs no memory to give the wrapper's layout after it.
  Value run() const {
    if (op_.has(Traits::kEffectful)) return resize_storage();
    const Operator& functional = op_.functional();
    const Value& self = args_[first_written()];
    require(own(self), "{}: a tensor from outside of functionalize cannot take functional memory",
            op_.name());
    const Tensor& target = self.tensor_ref();
    if (const Value* source = memory_source()) {
      take_memory(target, source->tensor_ref());
    } else {
      refuse_frozen(Args(&self, 1));
      const SymInts sizes(target.sizes()), strides(target.strides());
      run_on_wrappers();
      if (!same_geometry(target, sizes, strides)) resize_memory(functional, target, sizes, strides);
    }
    dispatch::bump_versions(op_, args_);
    return self;
  }

 private:
  // `resize_storage_bytes_`: nothing is called below. What was in the memory stays a value, and nobody may
  // read it through a tensor of this memory until the storage is there again and has been written to.
  Value resize_storage() const {
    FunctionalBox* box = own(args_[0]);
    if (!box) return call_below(op_, unwrapped(args_));
    func::FunctionalChanges& changes = box->memory->changes;
    const SymInt bytes = args_[1].to_sym_int();
    require(known(bytes == SymInt(0)) || known(changes.storage_bytes == SymInt(0)) ||
                known(bytes == changes.storage_bytes),
            "{}: a storage can be emptied, or an empty one be filled, but a storage of {} bytes cannot have "
            "{}",
            op_.name(), changes.storage_bytes.to_string(), bytes.to_string());
    changes.storage_bytes = bytes;
    ++changes.storage_resizes;
    return Value();
  }

  void run_on_wrappers() const {
    MaskScope mask(0);
    op_.kernel().boxed(args_);
  }

  // The tensor whose memory the target is to look at; null for an operator that stays with its own.
  const Value* memory_source() const {
    for (size_t i = 0; i < args_.size(); ++i)
      if (args_[i].is_tensor() && !op_.info().written[i]) return &args_[i];
    return nullptr;
  }

  static bool same_geometry(const Tensor& tensor, const SymInts& sizes, const SymInts& strides) {
    if (sizes.size() != tensor.sizes().size()) return false;
    SymBool same(true);
    for (size_t d = 0; d < sizes.size(); ++d) same = same & (sizes[d] == tensor.sizes()[d]);
    return guard_or(same, false) && same_strides(strides, tensor.strides(), sizes);
  }

  // The memory of another wrapper; what still looks at the old one keeps it.
  void take_memory(const Tensor& target, const Tensor& source) const {
    FunctionalBox& box = *position_.box_of(target);
    const FunctionalBox* from = position_.box_of(source);
    if (!from)
      unsupported("functionalize: {} would take memory from outside of functionalize; clone it first",
                  op_.name());
    const Ref<FunctionalMemory> memory = from->memory;
    const size_t bytes = source.storage()->bytes();
    Tensor value = from->value;
    Ref<ViewStep> steps = from->steps;
    run_on_wrappers();
    if (source.storage()->bytes() != bytes)
      unsupported("functionalize: {} would make the memory of its source larger; resize the source first",
                  op_.name());
    if (!same_geometry(source, SymInts(target.sizes()), SymInts(target.strides())) ||
        !guard_or(source.storage_offset() == target.storage_offset(), false)) {
      steps = strided_step(memory, target);
      BelowPosition below(position_);
      value = replay_view(steps, memory->base);
    }
    if (!box.first_memory) box.first_memory = box.memory;
    box.value = std::move(value);
    box.memory = memory;
    box.steps = std::move(steps);
    box.generation = memory->generation;
    box.metadata_changed = true;
    if (memory.get() == box.first_memory.get()) come_back(target, box);
  }

  // It has the memory again that it began with: nothing was replaced.
  static void come_back(const Tensor& target, FunctionalBox& box) {
    FunctionalMemory& memory = *box.memory;
    box.first_memory = nullptr;
    box.metadata_changed = !same_geometry(target, SymInts(memory.base.sizes()), memory.strides) ||
                           !guard_or(target.storage_offset() == memory.offset, false);
  }

  // How a tensor of this layout is made from the whole memory: as a view of a wrapper of all of it.
  Ref<ViewStep> strided_step(const Ref<FunctionalMemory>& memory, const Tensor& target) const {
    auto box = make_ref<FunctionalBox>();
    box->level = position_.level;
    box->value = memory->base;
    box->memory = memory;
    box->generation = memory->generation;
    Tensor whole = alias_with(target, memory->base.sizes(), memory->strides, memory->offset);
    whole.impl()->set_flags(position_.bit);
    whole.impl()->box = std::move(box);
    MaskScope from_here(layer::at_and_below(position_.bit));
    const Tensor view = as_strided(whole, target.sizes(), target.strides(), target.storage_offset());
    return position_.box_of(view)->steps;
  }

  // Memory that nobody else looks at has a new value of the new size.
  void resize_memory(const Operator& functional, const Tensor& target, const SymInts& sizes,
                     const SymInts& strides) const {
    FunctionalBox& box = *position_.box_of(target);
    if (box.steps || box.memory->use_count() > 1) {
      target.impl()->set_geometry(sizes, strides, target.storage_offset());
      unsupported("functionalize: {} would resize memory that views look at", op_.name());
    }
    box.memory->base = call_below(functional, unwrapped(args_)).to_tensor();
    box.memory->strides = SymInts(target.strides());
    box.memory->offset = target.storage_offset();
    box.value = box.memory->base;
    box.generation = ++box.memory->generation;
    box.memory->changes.storage_bytes = storage_bytes(box.value);
    box.metadata_changed = box.memory->changes.resized = true;
  }
};

}  // namespace

namespace {

// In bytes from the start of the storage; strides are not negative.
struct Reach {
  SymInt first, last;
};
Reach reach_of(const Tensor& t) {
  const SymInt size = item_size(t.dtype());
  SymInt last = t.storage_offset();
  for (size_t d = 0; d < t.sizes().size(); ++d) last = last + (t.sizes()[d] - 1) * t.strides()[d];
  return {t.storage_offset() * size, last * size + (size - 1)};
}

bool has_nothing(const Tensor& t) { return known(t.numel() == SymInt(0)); }

// Calls f with the offset of every element in bytes.
void for_each_offset(const Tensor& t, FunctionRef<void(int64_t)> f) {
  const IntSpan sizes = t.plain_sizes(), strides = t.plain_strides();
  const int64_t bytes = item_size(t.dtype());
  Ints index(sizes.size(), 0);
  for (int64_t n = t.plain_numel(); n > 0; --n) {
    int64_t offset = t.storage_offset().plain();
    for (size_t d = 0; d < sizes.size(); ++d) offset += index[d] * strides[d];
    f(offset * bytes);
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
}

bool share_elements(const Tensor& a, const Tensor& b) {
  std::unordered_set<int64_t> bytes;
  for_each_offset(a, [&](int64_t offset) {
    for (int64_t i = 0; i < item_size(a.dtype()); ++i) bytes.insert(offset + i);
  });
  bool found = false;
  for_each_offset(b, [&](int64_t offset) {
    for (int64_t i = 0; i < item_size(b.dtype()); ++i) found |= bytes.contains(offset + i);
  });
  return found;
}

}  // namespace

bool may_share_elements(const Tensor& a, const Tensor& b) {
  if (a.storage() != b.storage() || has_nothing(a) || has_nothing(b)) return false;
  const Reach x = reach_of(a), y = reach_of(b);
  if (known(x.last < y.first) || known(y.last < x.first)) return false;
  constexpr int64_t kFew = 1 << 16;
  const bool is_small = !a.is_symbolic() && !b.is_symbolic() && a.plain_numel() + b.plain_numel() <= kFew;
  return !is_small || share_elements(a, b);
}

Value change_memory(const Position& position, const Operator& op, Args args) {
  return MemoryChange(position, op, args).run();
}

}  // namespace weft
