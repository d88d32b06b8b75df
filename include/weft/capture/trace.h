#pragma once

#include "weft/capture/compilation_unit.h"
#include "weft/capture/make_graph.h"
#include "weft/capture/traced.h"

// trace: runs a function or a module once on example inputs and records what it did, as a graph that runs on
// other inputs. Sizes that the program reads become part of the graph; C++ control flow does not.
//
//   TracedModule traced = trace(net, {x});
//   Tensor y = traced(other);
//   std::cout << traced.graph_text() << traced.code();

namespace weft {

// A trace that does not do what the program does: the message shows how two runs differ.
struct TracingCheckError : UserError {
  // Each part may be empty: how the graphs differ, which constant differs, and what else there is to say.
  TracingCheckError(std::string graph_difference, std::string tensor_difference, std::string extra = {});
  // In PyTorch's layout, without a place: the differences name the lines that count.
  const char* what() const noexcept override { return text().c_str(); }
};

struct TraceOptions {
  // Runs the program again, traced and not, and compares: graphs that differ are an error, results that
  // differ a warning.
  bool check_trace = true;
  // What the check runs on, an entry a run: the arguments as a tuple, a single tensor, or a dictionary where
  // the example inputs are given by name; for trace_module a dictionary of these by method. Default: the
  // example inputs.
  std::vector<Value> check_inputs = {};
  double check_tolerance = 1e-5;
  // A list among the results is a warning, a dictionary an error: their structure is that of the example.
  bool strict = true;
  // Records functional forms of in-place operators.
  bool force_outplace = false;
  // Arguments by name, instead of the example inputs.
  Kwargs example_kwarg_inputs = {};
  // trace_module: the inputs of each method are a dictionary of its arguments by name.
  bool example_inputs_is_kwarg = false;
  // Keeps the example inputs with the result, under the name of the method.
  bool store_inputs = true;
  // Where the result gets its name, and the types of a module theirs.
  CompilationUnit compilation_unit = CompilationUnit::process_wide();
  // Has no effect; warns.
  std::optional<bool> optimize = std::nullopt;
  // The names of the arguments with their defaults: "x, scale = 2".
  std::string arg_names = {};
  // What the function is called in texts.
  std::string name = "forward";
  // Notes on each node where in the program it was called.
  bool record_stack_traces = false;
};

// Whether this thread is recording a trace.
bool is_tracing();
// Traces of this process: with tracing off `trace` gives back what it is given. It begins as the environment
// has it (TraceSwitches).
void set_tracing_enabled(bool enabled);
bool is_tracing_enabled();

// Gives the value a name in the graph that is being traced, if any. Others have numbers. "self" is the module
// that is traced, and no name for a value.
Tensor named(std::string_view name, const Tensor& value);
// The name that the program gave the value in the graph that is being traced, or the argument's; empty where
// it has none, and for tensors that no trace knows.
std::string value_name(const Tensor& value);
// A tensor of one integer as a size, which a trace records.
SymInt as_size(const Tensor& value);

// --- what is traced --------------------------------------------------------------------------------------

// A method of a module, bound to it, under the name that messages and TracedModule use.
struct BoundMethod {
  nn::Module module;
  std::string name;
  ValueFunction function;
  std::string arg_names;
};

TracedFunction trace_function(const ValueFunction& f, const Value& inputs, TraceOptions options);
// Traces methods of a module into what was made from it. The arguments of each method are in a dictionary by
// its name; `options.check_inputs` are dictionaries of the same kind.
void trace_methods(TracedModule& traced, const nn::Module& module, const std::vector<BoundMethod>& methods,
                   const Value& inputs, const TraceOptions& options);
// One method, by its own inputs.
void trace_forward(TracedModule& traced, const BoundMethod& forward, const Value& inputs,
                   TraceOptions options);
// Warns that there is nothing to do.
void warn_of_traced_module();

namespace detail {
template <typename M>
BoundMethod forward_of(const M& module) {
  nn::note_class(*module.state(), typeid(M));
  Ref<Callable> call = nn::detail::erased_call(module);
  require(static_cast<bool>(call), "trace: the forward of {} takes or gives types that no Value holds",
          module.state()->class_name);
  const char* names = "";
  if constexpr (requires { M::argument_names(); }) names = M::argument_names();
  return {module, "forward", [call](Args args) { return call->call(args); }, names};
}

template <typename Class>
Class traced_forward(const BoundMethod& forward, const Value& inputs, TraceOptions options) {
  Class traced(forward.module);
  trace_forward(traced, forward, inputs, std::move(options));
  return traced;
}
template <typename Class>
Class traced_methods(const nn::Module& module, const std::vector<BoundMethod>& methods, const Value& inputs,
                     const TraceOptions& options) {
  Class traced(module);
  trace_methods(traced, module, methods, inputs, options);
  return traced;
}
}  // namespace detail

// `method(net, &Net::weighted_sum, "weighted_sum", "weight")`
template <typename M, typename R, typename... A>
BoundMethod method(const M& module, R (M::*pointer)(A...), std::string name, std::string arg_names = {}) {
  nn::note_class(*module.state(), typeid(M));
  if (name == "forward") return detail::forward_of(module);
  std::function<R(A...)> bound = [own = M(module), pointer](A... args) mutable {
    return (own.*pointer)(std::forward<A>(args)...);
  };
  return {module, std::move(name), weft::detail::adapt(std::move(bound)), std::move(arg_names)};
}

template <typename M, typename R, typename... A>
BoundMethod method(const M& module, R (M::*pointer)(A...) const, std::string name,
                   std::string arg_names = {}) {
  nn::note_class(*module.state(), typeid(M));
  if (name == "forward") return detail::forward_of(module);
  std::function<R(A...)> bound = [module, pointer](A... args) {
    return (module.*pointer)(std::forward<A>(args)...);
  };
  return {module, std::move(name), weft::detail::adapt(std::move(bound)), std::move(arg_names)};
}

// Example inputs: a tuple or list of the arguments, or a single tensor or dictionary. They may be left out
// where the options have arguments by name. A module becomes a `Class`: TracedModule, or one derived from it
// that is made from a module in the same way. What is traced already is given back as it is.
template <typename Class = TracedModule, typename F>
auto trace(F f, const Value& inputs = {}, TraceOptions options = {}) {
  static_assert(std::is_base_of_v<TracedModule, Class>);
  if constexpr (std::is_base_of_v<TracedModule, F>) {
    warn_of_traced_module();
    return f;
  } else if constexpr (std::is_same_v<F, BoundMethod>) {
    require(f.name == "forward",
            "trace doesn't support compiling individual module's functions.\nPlease use trace_module");
    return detail::traced_forward<Class>(f, inputs, std::move(options));
  } else if constexpr (std::is_base_of_v<nn::Module, F>) {
    return detail::traced_forward<Class>(detail::forward_of(f), inputs, std::move(options));
  } else {
    return trace_function(as_value_function(std::move(f)), inputs, std::move(options));
  }
}

// Inputs: a dictionary with the arguments of each method by its name.
template <typename Class = TracedModule, typename M>
Class trace_module(const M& module, const Value& inputs, const TraceOptions& options = {}) {
  if constexpr (std::is_base_of_v<nn::Module, M>)
    return detail::traced_methods<Class>(module, {detail::forward_of(module)}, inputs, options);
  else
    fail(
        "expected torch.nn.Module as the first argument: in C++, an object of a class that derives from "
        "nn::Module");
}
template <typename Class = TracedModule, typename M>
Class trace_module(const M& module, const std::vector<BoundMethod>& methods, const Value& inputs,
                   const TraceOptions& options = {}) {
  return detail::traced_methods<Class>(module, methods, inputs, options);
}

}  // namespace weft
