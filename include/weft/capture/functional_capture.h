#pragma once

#include "weft/capture/make_graph.h"

namespace weft {

// A module as a function without state: its parameters and buffers are inputs, what it writes to are results.
struct FunctionalCapture {
  // Placeholders arg0_1, arg1_1, ... are the parameters, the buffers, then the leaves of the arguments. The
  // output is a tuple: the new values of written buffers and inputs, then the leaves of the result.
  GraphModule module;
  std::vector<std::string> parameters, buffers;
  std::vector<std::string> written_buffers;
  std::vector<size_t> written_inputs;  // among the leaves of the arguments
  TreeSpec arguments, result;
};

struct FunctionalCaptureOptions {
  // Records above autograd: composites whole where they neither write nor alias, switches of the grad mode.
  bool pre_dispatch = true;
  CaptureMode mode = CaptureMode::kFake;
};

// Neither the module nor the arguments are touched. An error for a parameter that is written to while
// gradients are recorded.
FunctionalCapture capture_functional(const nn::Module& module, const ValueFunction& forward,
                                     const ValueList& args, const FunctionalCaptureOptions& options = {});

template <typename M>
FunctionalCapture capture_functional(const M& module, const ValueList& args,
                                     const FunctionalCaptureOptions& options = {}) {
  nn::note_class(*module.state(), typeid(M));
  Ref<Callable> call = nn::detail::erased_call(module);
  require(static_cast<bool>(call), "capture: the forward of {} takes or gives types that no Value holds",
          module.state()->class_name);
  return capture_functional(module, [call](Args given) { return call->call(given); }, args, options);
}

}  // namespace weft
