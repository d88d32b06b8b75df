#pragma once

#include <string>
#include <unordered_map>

#include "weft/func/func.h"
#include "weft/graph/graph_module.h"
#include "weft/sym/shape_env.h"

namespace weft {

// What the operators of a capture run on.
enum class CaptureMode : uint8_t {
  kReal,      // the inputs themselves
  kFake,      // tensors without data, of the inputs' sizes
  kSymbolic,  // tensors without data whose sizes are symbols, so that the graph holds for other sizes
};

// Operators that a capture decomposes, with the function over their arguments that does it.
using Decompositions = std::unordered_map<const Operator*, ValueFunction>;
// Every operator that has a decomposition in the table.
const Decompositions& standard_decompositions();

struct MakeGraphOptions {
  CaptureMode mode = CaptureMode::kReal;
  Decompositions decompositions = {};
  // Records above autograd: composites whole, switches of the grad mode as calls.
  bool pre_dispatch = false;
  // With pre_dispatch: custom functions are calls of their own, which keep their derivatives. Such a graph
  // runs in this process only.
  bool keep_custom_functions = false;
  // Notes on each node where in the program it was called.
  bool record_stack_traces = false;
  // In the fake modes: tensors that are no inputs become attributes, instead of being an error. What a
  // captured module owns is always taken.
  bool allow_real_inputs = false;
  // In the real mode: numbers read out of traced tensors (`x.sum().item()`) become constants of the graph,
  // those of this run, instead of being an error. Constants of the program may always be read: tensors that
  // are no inputs, and single numbers made from literals alone.
  bool allow_data_reads = false;
  // The names of the arguments, "x, y"; default: those of WEFT_ARGS, or arg0, arg1, ...
  std::string arg_names = {};
  // Where symbolic sizes live; default: an environment of its own.
  Ref<ShapeEnv> shape_env = nullptr;
  // Whether nodes that nobody uses stay.
  bool keep_dead_code = false;
};

// Captures what operators f calls, transforms included: `make_graph(func::grad(f))(x)` is a graph of the
// gradient's operators.
//
//   GraphModule g = make_graph([](const Tensor& x) { return x.sin(); })(x);
//   std::cout << g.code();
class GraphMaker {
 public:
  GraphMaker(ValueFunction f, MakeGraphOptions options, std::shared_ptr<const nn::Module> root = nullptr)
      : f_(std::move(f)), options_(std::move(options)), root_(std::move(root)) {}

  template <typename... A>
  GraphModule operator()(const A&... args) const {
    return capture({to_value(args)...});
  }
  GraphModule capture(const ValueList& args) const;

 private:
  ValueFunction f_;
  MakeGraphOptions options_;
  std::shared_ptr<const nn::Module> root_;
};

namespace detail {
// One tensor as it is, several as a tuple.
Value packed(const std::vector<Tensor>& tensors);
std::vector<Tensor> unpacked(Args values);
}  // namespace detail

// Any callable as a function of Values: one with a signature, a transform, a graph module.
template <typename F>
ValueFunction as_value_function(F f) {
  if constexpr (std::is_same_v<F, ValueFunction>) return f;
  else if constexpr (std::is_same_v<F, func::Transformed>)
    return [f](Args args) { return detail::packed(f(detail::unpacked(args))); };
  else if constexpr (std::is_same_v<F, func::Fn>)
    return [f](Args args) { return detail::packed(f(detail::unpacked(args))); };
  else if constexpr (requires { f.function(); }) return f.function();
  else return make_callable(std::move(f));
}

template <typename F>
GraphMaker make_graph(F f, MakeGraphOptions options = {}) {
  if constexpr (std::is_base_of_v<nn::Module, F> && !std::is_same_v<F, GraphModule>) {
    nn::note_class(*f.state(), typeid(F));
    if (options.arg_names.empty()) options.arg_names = F::argument_names();
    Ref<Callable> call = nn::detail::erased_call(f);
    static_assert(requires { &F::forward; }, "the forward of a captured module must be one function");
    auto function = [call](Args args) { return call->call(args); };
    return GraphMaker(function, std::move(options), std::make_shared<const nn::Module>(f));
  } else if constexpr (std::is_same_v<F, GraphModule>) {
    return GraphMaker(f.function(), std::move(options), std::make_shared<const nn::Module>(f));
  } else {
    return GraphMaker(as_value_function(std::move(f)), std::move(options));
  }
}

}  // namespace weft
