#pragma once

#include <vector>

#include "weft/base/error.h"
#include "weft/dispatch/operator.h"

// The layer stack: how every operator call is observed. A call goes to the highest layer among those active
// on the thread and those that its arguments ask for; a layer answers, or calls on with itself masked.

namespace weft {

// The dispatch state of a thread. `mask` has a bit for each layer that a call may still meet.
struct LayerState {
  uint32_t active = 0;
  uint32_t mask = layer::kAll | layer::kNotLayers;
  bool grad_mode = true;
  bool inference_mode = false;
  uint16_t level_depth = 0;  // how many transform levels a call meets, innermost first
};

namespace detail {
extern constinit thread_local LayerState layer_state;
}
inline LayerState& layer_state() noexcept { return detail::layer_state; }

// Restores the whole of the thread's layer state at its end, exceptions included.
class LayerStateScope {
 public:
  LayerStateScope() : saved_(layer_state()) {}
  ~LayerStateScope() { layer_state() = saved_; }
  LayerStateScope(const LayerStateScope&) = delete;

 private:
  LayerState saved_;
};

// Calls inside the scope start at or below the layers left in `mask`.
class MaskScope {
 public:
  explicit MaskScope(uint32_t mask) : saved_(layer_state().mask) { layer_state().mask = saved_ & mask; }
  ~MaskScope() { layer_state().mask = saved_; }
  MaskScope(const MaskScope&) = delete;

 private:
  uint32_t saved_;
};

// Calls inside the scope start at the top again: what user code, backward and hooks do.
class FullStackScope {
 public:
  FullStackScope() : saved_(layer_state().mask) { layer_state().mask = layer::kAll | layer::kNotLayers; }
  ~FullStackScope() { layer_state().mask = saved_; }
  FullStackScope(const FullStackScope&) = delete;

 private:
  uint32_t saved_;
};

namespace layers {
// The upper recorder hears of switches that the program makes.
void note_grad_mode(bool enabled) noexcept;
}  // namespace layers

inline void set_grad_mode(bool enabled) {
  LayerState& state = layer_state();
  state.grad_mode = enabled;
  if (state.active & state.mask & layer::kRecorderUpper) [[unlikely]]
    layers::note_grad_mode(enabled);
}

// Switches gradient recording off or on for a scope.
class GradModeScope {
 public:
  explicit GradModeScope(bool enabled) : saved_(layer_state().grad_mode) { set_grad_mode(enabled); }
  ~GradModeScope() { set_grad_mode(saved_); }
  GradModeScope(const GradModeScope&) = delete;

 private:
  bool saved_;
};

// Results made in the scope will never take part in a gradient: no version counts, no view histories.
class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true);
  ~InferenceMode();
  InferenceMode(const InferenceMode&) = delete;

 private:
  LayerStateScope saved_;
  uint32_t saved_flags_;
};

namespace dispatch {

// An undefined tensor takes the slow path, where it is refused by name.
inline uint32_t flags_of(const Tensor& tensor) noexcept {
  return tensor.defined() ? tensor.impl()->flags() : layer::kKernelDetour;
}
// A `Tensor?` argument.
struct Maybe {
  const Tensor& tensor;
};
inline uint32_t flags_of(Maybe maybe) noexcept { return maybe.tensor.flags(); }
inline uint32_t flags_of(TensorSpan tensors) noexcept {
  uint32_t flags = 0;
  for (const Tensor& tensor : tensors) flags |= tensor.flags();
  return flags;
}
// All bits of a boxed argument list.
uint32_t flags_of(Args args) noexcept;

// The layers that a call with these tensors must pass; zero means straight to the kernel.
template <typename... T>
inline uint32_t pending(const T&... tensors) noexcept {
  const LayerState& state = layer_state();
  uint32_t mask = state.grad_mode ? state.mask : state.mask & ~layer::kAutograd;
  return (state.active | ... | flags_of(tensors)) & mask;
}

// Dispatches a complete argument list to the highest pending layer.
Value redispatch(const Operator& op, Args args);

// The end of the stack: the kernel, or the meta function for tensors without memory; then what the calling
// convention owes (version counts of written arguments, histories of views).
Value run_kernel(const Operator& op, Args args);

// An out= call as arguments of the functional form, and the tensors to write. Arguments go by their names; a
// type or device that only the functional form asks for is the target's.
struct OutCall {
  std::vector<Value> inputs, targets;
  // What the call returns: its targets.
  Value result() const { return targets.size() == 1 ? targets[0] : Value::tuple(targets); }
};
OutCall split_out_call(const Operator& op, Args args);

// What the calling convention of mutating and viewing operators owes after a call on tensors that own their
// identity: one more version for each written argument, and how each view was made.
void note_views(const Operator& op, Args args, const Value& result);
void bump_versions(const Operator& op, Args args);
// `args` in schema order, of which the first, the viewed tensor, is not kept.
void note_view(const Operator& op, const Tensor& source, const Tensor& view, Args args, int output);

inline void note_typed_views(const Operator& op, const Tensor& source, const Tensor& view,
                             std::initializer_list<Value> args) {
  if (view.storage() == source.storage()) note_view(op, source, view, Args(args.begin(), args.size()), -1);
}
inline void note_typed_views(const Operator& op, const Tensor& source, const std::vector<Tensor>& views,
                             std::initializer_list<Value> args) {
  for (size_t i = 0; i < views.size(); ++i)
    note_view(op, source, views[i], Args(args.begin(), args.size()), static_cast<int>(i));
}

// A typed call that could not take the fast path.
template <typename R, typename... A>
[[gnu::noinline]] R call_typed(const Operator& op, const A&... args) {
  const Value boxed[] = {boxing::box(args)...};
  return boxing::Result<R>::from(redispatch(op, Args(boxed, sizeof...(A))));
}
template <typename R>
R call_typed(const Operator& op) {
  return boxing::Result<R>::from(redispatch(op, Args()));
}

// Adds to an error which call it came out of: "while calling aten::sum.dim_IntList(self=f32[2, 3], dim=[5])".
void note_call(Error& error, const Operator& op, Args args) noexcept;
template <typename... A>
[[gnu::noinline, gnu::cold]] void note_typed_call(Error& error, const Operator& op, const A&... args) {
  const ValueList boxed = {boxing::box(args)...};
  note_call(error, op, boxed);
}

// Runs the kernel, which is a function of the type that the schema gives it; a test compares that type with
// `Function::signature`.
template <typename Signature, typename... A>
[[gnu::always_inline]] inline auto run_typed(const Operator& op, const A&... args)
    -> decltype(std::declval<Signature*>()(args...)) {
  try {
    return (*static_cast<Signature* const*>(op.kernel().typed))(args...);
  } catch (Error& error) {
    note_typed_call(error, op, args...);
    throw;
  }
}

}  // namespace dispatch

// The handlers of the layers. Each is defined in its own folder, so that a call reaches it without
// registration and without an include upward.
namespace layers {
Value levels(const Operator& op, Args args);               // func/
Value functionalize_upper(const Operator& op, Args args);  // func/
Value recorder_upper(const Operator& op, Args args);
Value autocast(const Operator& op, Args args);  // ops/
Value autograd(const Operator& op, Args args);  // autograd/
Value modes(const Operator& op, Args args);
Value extension(const Operator& op, Args args);            // ops/
Value functionalize_lower(const Operator& op, Args args);  // func/
Value recorder_lower(const Operator& op, Args args);
Value fake(const Operator& op, Args args);  // ops/
// `flags` are those of the arguments.
Value kernel_detour(const Operator& op, Args args, uint32_t flags);  // ops/
// Whether a composite may be taken apart is asked of the extensions among its arguments; an error if not.
void check_decomposable(const Operator& op, Args args);  // ops/
}  // namespace layers

}  // namespace weft
