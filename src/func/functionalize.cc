// One functionalisation, three positions: the upper and lower layers, and a transform level.
#include "weft/func/functionalize.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/print.h"
#include "func/functional_call.h"
#include "ops/view_replay.h"
#include "weft/base/error.h"

namespace weft {
namespace {

// --- the fixed positions ---------------------------------------------------------------------------------

const Position& fixed_position(func::FunctionalPosition position) {
  static const Position upper{layer::kFunctionalizeUpper}, lower{layer::kFunctionalizeLower};
  return position == func::FunctionalPosition::kUpper ? upper : lower;
}

const Position* position_of(const Tensor& tensor) {
  for (auto position : {func::FunctionalPosition::kUpper, func::FunctionalPosition::kLower})
    if (fixed_position(position).box_of(tensor)) return &fixed_position(position);
  return nullptr;
}

FunctionalBox& functional_box(const Tensor& tensor) {
  auto* box = tensor.defined() ? dynamic_cast<FunctionalBox*>(tensor.impl()->box.get()) : nullptr;
  require(box != nullptr, "expected a functional tensor, but got {}", describe(tensor));
  return *box;
}

}  // namespace

std::string FunctionalBox::text_of(const Tensor& tensor) const {
  const Position own = level ? Position{layer::kLevels, level} : *position_of(tensor);
  std::optional<BelowPosition> below;  // for views that are taken of a new value
  if (!level || level->alive) below.emplace(own);
  const std::string text = functional_box(tensor).live_value().to_string();
  if (level) return fmt::format("FunctionalTensor(lvl={}, value=\\\n{})", level->depth, text);
  std::vector<std::string> suffixes;
  detail::add_device(suffixes, tensor);
  detail::add_history(suffixes, tensor);
  return detail::close_text("_to_functional_tensor(" + text, suffixes, std::string_view("tensor(").size());
}

Value layers::functionalize_upper(const Operator& op, Args args) {
  // A composite whose parts may share or write memory comes back part by part; any other is one value from
  // others.
  const Operator::Info& info = op.info();
  const Position& upper = fixed_position(func::FunctionalPosition::kUpper);
  const bool writes_or_views = info.is_mutable || info.is_view, may_alias = op.has(Traits::kMayAlias);
  // What draws stays whole, so that its numbers are those of the program (dropout).
  const bool stays_whole = op.has(Traits::kRandom) && !writes_or_views;
  if (op.is_composite() && (writes_or_views || may_alias) && !stays_whole && !with_written_results(op)) {
    MaskScope scope(layer::at_and_below(layer::kFunctionalizeUpper));
    return op.kernel().boxed(args);
  }
  Value result = functional_call(upper, op, args);
  // A write to the result might be one to an argument, and nobody can tell.
  if (stays_whole && may_alias && upper.box_of(result.tensor_ref()))
    func::freeze_functional(result.tensor_ref());
  return result;
}

Value layers::functionalize_lower(const Operator& op, Args args) {
  return functional_call(fixed_position(func::FunctionalPosition::kLower), op, args);
}

namespace func {

FunctionalizeScope::FunctionalizeScope(FunctionalPosition position) : saved_(layer_state().active) {
  layer_state().active |= fixed_position(position).bit;
}
FunctionalizeScope::~FunctionalizeScope() { layer_state().active = saved_; }

Tensor to_functional(const Tensor& value, FunctionalPosition position) {
  require(value.defined(), "to_functional: the tensor is undefined");
  return wrap_value(fixed_position(position), value);
}

bool is_functional(const Tensor& tensor) {
  return tensor.defined() && dynamic_cast<FunctionalBox*>(tensor.impl()->box.get());
}

Tensor from_functional(const Tensor& tensor) {
  FunctionalBox& box = functional_box(tensor);
  const Position* position = position_of(tensor);
  require(position != nullptr, "from_functional: {} belongs to a running functionalize(f)", describe(tensor));
  BelowPosition below(*position);
  return box.live_value();
}

FunctionalChanges functional_changes(const Tensor& tensor) {
  FunctionalBox& box = functional_box(tensor);
  FunctionalChanges changes = box.memory->changes;
  changes.generation = box.memory->generation;
  changes.metadata = box.metadata_changed;
  changes.storage_replaced = box.is_storage_replaced();
  return changes;
}

void freeze_functional(const Tensor& tensor) { functional_box(tensor).memory->changes.frozen = true; }

void expect_filled_again(const Tensor& tensor) { functional_box(tensor).memory->is_filled_elsewhere = true; }

void mark_mutation_hidden_from_autograd(const Tensor& tensor) {
  FunctionalChanges& changes = functional_box(tensor).memory->changes;
  require(changes.writes_hidden_from_autograd < changes.writes,
          "mark_mutation_hidden_from_autograd: {} has no write left that autograd could have seen",
          describe(tensor));
  ++changes.writes_hidden_from_autograd;
}

// --- the transform level ---------------------------------------------------------------------------------

namespace {

class FunctionalizeLevel final : public Level {
 public:
  Value handle(const Operator& op, Args args) override {
    Position position{layer::kLevels, Ref<Level>(this)};
    return functional_call(position, op, args);
  }
  bool sees_everything() const override { return true; }  // factories make functional tensors
  const char* name() const override { return "functionalize"; }
};

}  // namespace
}  // namespace func

Ref<Level> new_functionalize_level() { return make_ref<func::FunctionalizeLevel>(); }

namespace func {
namespace {

// The wrappers of a call's arguments; an argument that is given twice has one wrapper.
Tensors wrap_inputs(const Position& position, const Tensors& inputs) {
  Tensors wrapped;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto same = std::find_if(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(i),
                             [&](const Tensor& earlier) { return earlier.is_same(inputs[i]); });
    auto at = static_cast<size_t>(same - inputs.begin());
    if (!inputs[i].defined()) wrapped.emplace_back();
    else wrapped.push_back(at < i ? wrapped[at] : wrap_value(position, inputs[i]));
  }
  return wrapped;
}

// The arguments of a call and what became of them.
struct Arguments {
  const Tensors& inputs;
  const Tensors& wrapped;

  // A functional tensor as one of the caller: what aliases an argument is the same view of it, which the
  // value still is where nobody wrote.
  Tensor for_caller(const Tensor& tensor) const {
    FunctionalBox& box = functional_box(tensor);
    if (box.memory->generation == 0) return box.live_value();
    for (size_t i = 0; i < wrapped.size(); ++i)
      if (wrapped[i].defined() && &functional_box(wrapped[i]).own_memory() == box.memory.get())
        return replay_view(box.steps, inputs[i]);
    return box.live_value();
  }
};

void resize_caller_storage(const Tensor& input, const FunctionalChanges& changes) {
  static const Operator& resize = operator_named("inductor::resize_storage_bytes_");
  call(resize, {input, Value(changes.storage_bytes)});
}

// What the function wrote to an argument, in the caller's tensor.
void write_back(const Tensor& input, const Tensor& wrapper) {
  if (!wrapper.defined()) return;
  const FunctionalMemory& memory = functional_box(wrapper).own_memory();
  const FunctionalChanges& changes = memory.changes;
  if (changes.resized) {
    const SymIntSpan sizes = memory.base.sizes();
    input.resize_(sizes);
    if (!same_strides(memory.strides, input.strides(), sizes)) input.as_strided_(sizes, memory.strides);
  }
  const bool ends_empty = memory.is_emptied(), is_written = changes.resized || changes.writes > 0;
  // A storage that was empty at the start has room before the copy; one that ends empty is not worth a copy.
  const bool resizes =
      changes.storage_resizes > 0 && !known(changes.storage_bytes == changes.storage_bytes_before);
  if (resizes) resize_caller_storage(input, changes);
  if (is_written && !ends_empty) input.copy_(memory.base);
}

// An in-place view (`t_`) of an argument is one of the caller's tensor. Results that look at the same memory
// are taken before: they follow from what the argument was.
void write_back_geometry(const Tensor& input, const Tensor& wrapper) {
  if (!wrapper.defined()) return;
  const FunctionalBox& box = functional_box(wrapper);
  if (!box.steps || box.is_storage_replaced()) return;
  input.as_strided_(wrapper.sizes(), wrapper.strides(), wrapper.storage_offset());
}

// An argument that is returned is the caller's tensor itself.
Tensor unwrap_result(const Tensor& result, const Arguments& arguments) {
  for (size_t i = 0; i < arguments.wrapped.size(); ++i)
    if (result.is_same(arguments.wrapped[i])) return arguments.inputs[i];
  return arguments.for_caller(result);
}

// `set_` gave arguments the memory of other arguments, or of tensors that the function made.
void write_back_memories(const Arguments& arguments) {
  Tensors sources(arguments.inputs.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    const Tensor& wrapper = arguments.wrapped[i];
    if (wrapper.defined() && functional_box(wrapper).is_storage_replaced())
      sources[i] = arguments.for_caller(wrapper);
  }
  for (size_t i = 0; i < sources.size(); ++i)
    if (sources[i].defined()) set_(arguments.inputs[i], sources[i]);
}

}  // namespace

Transformed functionalize_of(Fn f) {
  return Transformed([f = std::move(f)](const Tensors& inputs) {
    Tensors wrapped, results;
    LevelEntry entry(new_functionalize_level());
    Position position{layer::kLevels, entry.level()};
    wrapped = wrap_inputs(position, inputs);
    results = f(wrapped);
    BelowPosition below(position);
    for (size_t i = 0; i < inputs.size(); ++i) write_back(inputs[i], wrapped[i]);
    const Arguments arguments{inputs, wrapped};
    // Results look at what the arguments were before these look elsewhere.
    for (Tensor& result : results)
      if (position.box_of(result)) result = unwrap_result(result, arguments);
    write_back_memories(arguments);
    for (size_t i = 0; i < inputs.size(); ++i) write_back_geometry(inputs[i], wrapped[i]);
    return results;
  });
}

}  // namespace func
}  // namespace weft
