#include "weft/capture/trace.h"

#include <atomic>

#include "capture/trace_check.h"
#include "capture/trace_recorder.h"
#include "capture/trace_switches.h"
#include "capture/trace_types.h"
#include "capture/traced.h"
#include "weft/base/warning.h"
#include "weft/nn/module_text.h"

namespace weft {

// --- switches --------------------------------------------------------------------------------------------

namespace {

std::atomic<bool>& tracing_enabled() {
  static std::atomic<bool> enabled = !trace_switches().disabled;
  return enabled;
}

}  // namespace

bool is_tracing() { return TraceRecorder::current() != nullptr; }
void set_tracing_enabled(bool enabled) { tracing_enabled() = enabled; }
bool is_tracing_enabled() { return tracing_enabled(); }

Tensor named(std::string_view name, const Tensor& value) {
  if (TraceRecorder* recorder = TraceRecorder::current()) recorder->name_value(value, name);
  return value;
}

std::string value_name(const Tensor& value) {
  const TraceRecorder* recorder = TraceRecorder::current();
  return recorder ? recorder->name_of(value) : std::string();
}

SymInt as_size(const Tensor& value) {
  require(!is_floating(value.dtype()) && !is_complex(value.dtype()),
          "as_size: expected a tensor of integers, but got {}", describe(value));
  if (TraceRecorder* recorder = TraceRecorder::current()) return recorder->integer_of(value);
  return value.item().to_int();
}

// --- tracing ---------------------------------------------------------------------------------------------

Value example_arguments(const Value& inputs) {
  if (inputs.is_tuple()) return inputs;
  if (inputs.is_list()) return Value::tuple(inputs.elements());
  require(
      inputs.is_tensor() || inputs.is_dict() || inputs.is_object(),
      "trace: example inputs must be a tensor, a tuple or list of the arguments, or a dictionary, but got {}",
      inputs.kind_name());
  return Value::tuple({inputs});
}

Recording record_trace(const TracedCode& code, const Value& arguments, const Kwargs& kwargs,
                       const TraceOptions& options) {
  require(!is_tracing(), "Tracing can't be nested");
  check_traceable(arguments);
  ArgumentNames names(code.arg_names);
  TraceRecorder recorder(options, code.root);
  Recording recording;
  {
    TraceRecorder::Scope scope(recorder);
    ValueList args;
    Kwargs by_name;
    for (size_t i = 0; i < arguments.elements().size(); ++i) {
      std::string name = i < names.entries().size() ? names.entries()[i].name : fmt::format("arg{}", i);
      args.push_back(recorder.add_argument(name, arguments.elements()[i]));
    }
    // In the order of the function's arguments, whatever the order in which they were given.
    if (!kwargs.empty()) names.bind(args, kwargs);
    for (const ArgumentNames::Entry& entry : names.entries())
      for (const auto& [name, value] : kwargs)
        if (name == entry.name) by_name.emplace_back(name, recorder.add_argument(name, value));
    ValueList complete = names.empty() ? args : names.bind(args, by_name, code.name);
    recording.result = code.function(complete);
    check_trace_result(recording.result, options.strict);
    recorder.graph().output(recorder.as_nodes(recording.result));
  }
  recording.traces = recorder.take_traces();
  recording.module = recorder.finish(false, code.root ? code.root->state()->class_name : code.name);
  return recording;
}

namespace {

void warn_of_optimize(const TraceOptions& options) {
  if (options.optimize)
    warn(WarningKind::kDeprecated,
         "`optimize` is deprecated and has no effect. Use `with torch.jit.optimized_execution()` instead: in "
         "C++, `OptimizedExecution scope(true);`");
}

// The arguments of one run, in order or by name.
struct Examples {
  Value arguments = Value::tuple({});
  Kwargs kwargs = {};
};

Examples examples(const Value& given, bool by_name) {
  if (!by_name) return {example_arguments(given), {}};
  return {Value::tuple({}), as_kwargs(given)};
}

// Keeps them with what was recorded, where that is asked for.
void store_inputs(const GraphModule& module, const std::string& name, const Examples& inputs,
                  const TraceOptions& options) {
  if (!options.store_inputs) return;
  Value kept = options.example_inputs_is_kwarg ? Value(as_dict(inputs.kwargs)) : inputs.arguments;
  module.set_traced_inputs(Dict{{name, kept}});
}

void print_stats(const std::string& name, const Graph& graph) {
  size_t inputs = 0, attributes = 0, calls = 0;
  for (const Node& node : graph) {
    if (node.kind() == NodeKind::kPlaceholder) ++inputs;
    else if (node.kind() == NodeKind::kGetAttr) ++attributes;
    else if (node.kind() != NodeKind::kOutput) ++calls;
  }
  fmt::print(stderr, "{} stats: {} inputs, {} attributes, {} calls\n", name, inputs, attributes, calls);
}

// Records and checks, and tells of it what the environment asks for.
Recording checked_recording(const TracedCode& code, const Examples& given, const TraceOptions& options) {
  const std::string name =
      code.root ? fmt::format("{}.{}", code.root->state()->class_name, code.name) : code.name;
  Recording recording;
  {
    TraceTimeScope timing(name, "trace", false);
    recording = record_trace(code, given.arguments, given.kwargs, options);
  }
  if (options.check_trace) {
    TraceTimeScope timing(name, "check", false);
    check_trace(code, recording, given.arguments, given.kwargs, options);
  }
  if (trace_switches().stats) print_stats(name, recording.module.graph());
  return recording;
}

// --- what modules are asked for before -------------------------------------------------------------------

void check_no_sharing(const nn::ModuleState& state) {
  std::vector<const TensorImpl*> seen;
  auto check = [&](const Tensor& tensor) {
    if (!tensor.defined()) return;
    require(std::find(seen.begin(), seen.end(), tensor.impl()) == seen.end(),
            "TracedModules don't support parameter sharing between modules");
    seen.push_back(tensor.impl());
  };
  for (const auto& entry : state.parameters) check(entry.second);
  for (const auto& entry : state.buffers) check(entry.tensor);
  for (const nn::ModuleState::Child& child : state.children)
    if (!is_graph(child)) check_no_sharing(*child.state);
}

void check_no_backward_hooks(const std::shared_ptr<nn::ModuleState>& state) {
  if (!state->backward_hooks.empty())
    fail("Modules that have backward hooks assigned can't be compiled: {}",
         nn::module_text(nn::Module::over(state)));
  for (const nn::ModuleState::Child& child : state->children)
    if (!is_graph(child)) check_no_backward_hooks(child.state);
}

// A type of its own for every module, children first, as instances of one class may differ.
void define_types(nn::ModuleState& state, const CompilationUnit& unit) {
  for (const nn::ModuleState::Child& child : state.children)
    if (!is_graph(child)) define_types(*child.state, unit);
  state.qualified_class = unit.define_type(state.class_name.empty() ? "Module" : state.class_name);
}

}  // namespace

Dict as_dict(const Kwargs& kwargs) {
  Dict dict;
  for (const auto& [name, value] : kwargs) dict.set(name, value);
  return dict;
}

Kwargs as_kwargs(const Value& given) {
  require(given.is_dict(), "trace: expected a dictionary of arguments by name, but got {}",
          given.kind_name());
  Kwargs kwargs;
  for (const auto& [name, value] : given.to_dict()) kwargs.emplace_back(name.to_string_view(), value);
  return kwargs;
}

TracedFunction trace_function(const ValueFunction& f, const Value& inputs, TraceOptions options) {
  warn_of_optimize(options);
  if (!is_tracing_enabled()) return TracedFunction::untraced(options.name, f, options.arg_names);
  options.example_inputs_is_kwarg = !options.example_kwarg_inputs.empty();
  Examples given = options.example_inputs_is_kwarg ? Examples{.kwargs = options.example_kwarg_inputs}
                                                   : examples(inputs, false);
  TracedCode code{f, options.name, options.arg_names, nullptr};
  Recording recording = checked_recording(code, given, options);
  store_inputs(recording.module, options.name, given, options);
  return TracedFunction(options.name, options.compilation_unit.define_function(options.name),
                        recording.module, f);
}

void trace_forward(TracedModule& traced, const BoundMethod& forward, const Value& inputs,
                   TraceOptions options) {
  options.example_inputs_is_kwarg = !options.example_kwarg_inputs.empty();
  Value given = inputs;
  if (options.example_inputs_is_kwarg) given = as_dict(options.example_kwarg_inputs);
  require(
      !given.is_none() || !is_tracing_enabled(),
      "example_kwarg_inputs should be a dict: trace was given neither example inputs nor arguments by name");
  for (Value& check : options.check_inputs) check = Dict{{"forward", check}};
  trace_methods(traced, forward.module, {forward}, Dict{{"forward", given}}, options);
}

void warn_of_traced_module() {
  warn(WarningKind::kUser,
       "The input to trace is already a ScriptModule, tracing it is a no-op. Returning the object as is.");
}

void trace_methods(TracedModule& traced, const nn::Module& module, const std::vector<BoundMethod>& methods,
                   const Value& inputs, const TraceOptions& options) {
  warn_of_optimize(options);
  if (!is_tracing_enabled()) {
    // The module itself, with its own code.
    traced.refer_to(module);
    for (const BoundMethod& method : methods)
      traced.add_method(TracedFunction::untraced(method.name, method.function, method.arg_names));
    return;
  }
  require(inputs.is_dict(), "expected a dictionary of (method_name, input) pairs");
  check_no_sharing(*module.state());
  check_no_backward_hooks(module.state());
  define_types(*traced.state(), options.compilation_unit);
  for (const auto& [key, given] : inputs.to_dict()) {
    std::string name(key.to_string_view());
    auto found = std::find_if(methods.begin(), methods.end(), [&](const auto& m) { return m.name == name; });
    require(found != methods.end(), "'{}' has no method '{}'", module.state()->class_name, name);
    TracedCode code{found->function, name, options.arg_names.empty() ? found->arg_names : options.arg_names,
                    &module};
    Examples own = examples(given, options.example_inputs_is_kwarg);
    // Checked before `over`, which may give constants other names than a repeated recording has.
    Recording recording = checked_recording(code, own, options);
    GraphModule body = GraphModule::over(traced, recording.module);
    store_inputs(body, name, own, options);
    traced.add_method(
        TracedFunction(name, traced.state()->qualified_class + "." + name, body, found->function));
  }
}

}  // namespace weft
