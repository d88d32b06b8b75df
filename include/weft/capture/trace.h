#pragma once

#include "weft/capture/make_graph.h"

// trace: runs a function or a module once on example inputs and records what it did, as a graph that runs on
// other inputs. Sizes that the program reads become part of the graph; C++ control flow does not.
//
//   TracedModule traced = trace(net, {x});
//   Tensor y = traced(other);
//   std::cout << script_text(traced.method("forward").graph_module());

namespace weft {

// A trace that does not do what the program does: the message shows how two runs differ.
struct TracingCheckError : UserError {
  // Each part may be empty: how the graphs differ, which constant differs, and what else there is to say.
  TracingCheckError(std::string graph_difference, std::string tensor_difference, std::string extra = {});
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
  // Records functional forms of operators that write in place.
  bool force_outplace = false;
  // Arguments by name, instead of the example inputs.
  Kwargs example_kwarg_inputs = {};
  // trace_module: the inputs of each method are a dictionary of its arguments by name.
  bool example_inputs_is_kwarg = false;
  // Keeps the example inputs with the result.
  bool store_inputs = true;
  // Has no effect; warns.
  std::optional<bool> optimize = std::nullopt;
  // The names of the arguments with their defaults: "x, scale = 2".
  std::string arg_names = {};
  // What the function is called in texts.
  std::string name = "forward";
};

class OptimizedForms;

// A recorded function. Copies are handles.
class TracedFunction {
 public:
  TracedFunction(std::string name, GraphModule module, ValueFunction original, std::optional<Value> inputs);
  // What stands for a function while tracing is switched off: calls run the function itself.
  static TracedFunction untraced(std::string name, ValueFunction original, std::string arg_names);

  Value call(Args args, const Kwargs& kwargs = {}) const;
  Value call(std::initializer_list<Value> args, const Kwargs& kwargs = {}) const {
    return call(Args(args.begin(), args.size()), kwargs);
  }
  // The one tensor that it gives.
  template <typename... A>
  Tensor operator()(const A&... args) const {
    return from_value<Tensor>(call({to_value(args)...}));
  }
  // The graph that a call with these inputs runs while optimised execution is on (see optimized.h), over the
  // same tensors.
  GraphModule graph_for(std::initializer_list<Value> inputs) const;
  const std::string& name() const noexcept { return name_; }
  Graph& graph() const noexcept { return module_.graph(); }
  const GraphModule& graph_module() const noexcept { return module_; }
  ValueFunction function() const { return is_recorded() ? module_.function() : original_; }
  // False while tracing is switched off: then the graph is empty.
  bool is_recorded() const noexcept { return !untraced_names_; }
  // What was traced: other captures may take it instead of the recording.
  const ValueFunction& original() const noexcept { return original_; }
  // The example inputs, unless they were not to be kept.
  const std::optional<Value>& example_inputs() const noexcept { return inputs_; }

 private:
  std::string name_;
  GraphModule module_;
  ValueFunction original_;
  std::optional<Value> inputs_;
  std::optional<ArgumentNames> untraced_names_;
  std::shared_ptr<OptimizedForms> forms_;
};

// Recorded methods of a module, with its parameters, buffers and children (shared, not copied) and nothing
// else of it. Copies are handles.
class TracedModule : public nn::Module {
 public:
  explicit TracedModule(const nn::Module& original);
  // What stands for a module while tracing is switched off: the module itself, with its own code.
  static TracedModule untraced(const nn::Module& original);

  const TracedFunction& method(std::string_view name) const;
  std::vector<std::string> method_names() const;
  void add_method(TracedFunction method) const;
  bool has(std::string_view path) const;
  // Puts another tensor in the place of a parameter or buffer; the methods run with it.
  void set_tensor(std::string_view path, const Tensor& tensor) const;
  // Replaces what a path leads to, for all methods: set_attribute("fc.weight", weight).
  void set_attribute(std::string_view path, Value value) const;
  // Always an error: the graphs name what is there.
  [[noreturn]] void delete_attribute(std::string_view path) const;

  // An error during a trace of something that this is no part of.
  Value call(Args args, const Kwargs& kwargs = {}) const;
  Value call(std::initializer_list<Value> args, const Kwargs& kwargs = {}) const {
    return call(Args(args.begin(), args.size()), kwargs);
  }
  template <typename... A>
  Tensor operator()(const A&... args) const {
    return from_value<Tensor>(call({to_value(args)...}));
  }
  Graph& graph() const { return method("forward").graph(); }
  GraphModule graph_for(std::initializer_list<Value> inputs) const {
    return method("forward").graph_for(inputs);
  }
  Ref<Callable> callable() const;
  ValueFunction function() const { return method("forward").function(); }
  const std::string& original_name() const { return state()->class_name; }
  // "Net(\n  original_name=Net\n  (fc): Linear(original_name=Linear)\n)"
  std::string to_string() const;

 private:
  std::shared_ptr<std::vector<TracedFunction>> methods_;
};

// Whether this thread is recording a trace.
bool is_tracing();
// Traces of this process: with tracing off `trace` gives back what it is given. WEFT_TRACE=0 switches it off.
void set_tracing_enabled(bool enabled);
bool is_tracing_enabled();

// Gives the value a name in the graph that is being traced, if any.
Tensor named(std::string_view name, const Tensor& value);
// A tensor of one integer as a size, which a trace follows.
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
// The arguments of each method, in a dictionary by its name; `options.check_inputs` are dictionaries of the
// same kind.
TracedModule trace_methods(const nn::Module& module, const std::vector<BoundMethod>& methods,
                           const Value& inputs, const TraceOptions& options);
// One method, by its own inputs.
TracedModule trace_forward(const BoundMethod& forward, const Value& inputs, TraceOptions options);
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
// where the options have arguments by name.
template <typename F>
auto trace(F f, const Value& inputs = {}, TraceOptions options = {}) {
  if constexpr (std::is_same_v<F, TracedModule>) {
    warn_of_traced_module();
    return f;
  } else if constexpr (std::is_same_v<F, BoundMethod>) {
    require(f.name == "forward",
            "trace doesn't support compiling individual module's functions.\nPlease use trace_module");
    return trace_forward(f, inputs, std::move(options));
  } else if constexpr (std::is_base_of_v<nn::Module, F>) {
    return trace_forward(detail::forward_of(f), inputs, std::move(options));
  } else {
    return trace_function(as_value_function(std::move(f)), inputs, std::move(options));
  }
}

// Inputs: a dictionary with the arguments of each method by its name.
template <typename M>
TracedModule trace_module(const M& module, const Value& inputs, const TraceOptions& options = {}) {
  if constexpr (std::is_base_of_v<nn::Module, M>)
    return trace_methods(module, {detail::forward_of(module)}, inputs, options);
  else fail("expected torch.nn.Module as the first argument");
}
template <typename M>
TracedModule trace_module(const M& module, const std::vector<BoundMethod>& methods, const Value& inputs,
                          const TraceOptions& options = {}) {
  return trace_methods(module, methods, inputs, options);
}

}  // namespace weft
