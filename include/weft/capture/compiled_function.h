#pragma once

#include "weft/capture/trace.h"

namespace weft {

// A function or module that is traced when it is first called with arguments of a kind (structure, types,
// sizes and requires_grad of their tensors, the grad mode and the module's training flag), and replayed after
// that. Copies are handles.
class CompiledFunction {
 public:
  CompiledFunction(ValueFunction f, std::optional<nn::Module> module, std::string arg_names);

  Value call(Args args) const;
  Value call(std::initializer_list<Value> args) const { return call(Args(args.begin(), args.size())); }
  // The one tensor that it gives.
  template <typename... A>
  Tensor operator()(const A&... args) const {
    return from_value<Tensor>(call({to_value(args)...}));
  }
  // Forgets all traces.
  void clear_cache() const;
  // Calls so far that ran a trace of an earlier call.
  int64_t hits() const noexcept;
  bool has_trace_for(Args args) const;
  // What was compiled, if it is a module.
  const std::optional<nn::Module>& module() const noexcept;

 private:
  struct Body;
  std::shared_ptr<Body> body_;
};

template <typename F>
CompiledFunction compile_by_trace(F f) {
  if constexpr (std::is_base_of_v<nn::Module, F>) {
    BoundMethod forward = detail::forward_of(f);
    return CompiledFunction(forward.function, f, forward.arg_names);
  } else {
    return CompiledFunction(as_value_function(std::move(f)), std::nullopt, "");
  }
}

namespace detail {
// An empty `loss` is the sum of the only output.
void verify_replay(const CompiledFunction& model, const Value& args, const ValueFunction& loss,
                   const std::vector<Device>& devices);
}  // namespace detail

// Runs the model traced anew and then from its trace, forward and backward to the arguments and parameters
// that require a gradient, from the same state and the same random numbers; an error where outputs or
// gradients differ by more than 1e-6. Arguments: a tuple, or the only one. The loss gets the outputs one by
// one. A module's state is that of before the first run again when the second begins, and so are the random
// numbers of the CPU and of the given devices.
template <typename F>
void verify_compiled(const F& model, const Value& args, const std::vector<Device>& devices = {}) {
  if constexpr (std::is_same_v<F, CompiledFunction>) detail::verify_replay(model, args, {}, devices);
  else
    fail(
        "Cannot verify an uncompiled module.  Add @torch.jit.compile to compile it: in C++, "
        "verify_compiled(compile_by_trace(model), args)");
}
template <typename F, typename Loss>
void verify_compiled(const F& model, const Value& args, Loss loss, const std::vector<Device>& devices = {}) {
  if constexpr (std::is_same_v<F, CompiledFunction>)
    detail::verify_replay(model, args, as_value_function(std::move(loss)), devices);
  else verify_compiled(model, args, devices);
}

}  // namespace weft
