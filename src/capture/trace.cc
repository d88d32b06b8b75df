#include "weft/capture/trace.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "capture/optimized_forms.h"
#include "capture/trace_check.h"
#include "capture/trace_recorder.h"
#include "capture/trace_types.h"
#include "weft/base/warning.h"
#include "weft/capture/optimized.h"
#include "weft/nn/module_text.h"
#include "weft/ops/layers.h"

namespace weft {

// --- switches --------------------------------------------------------------------------------------------

namespace {

bool enabled_by_environment() {
  const char* text = std::getenv("WEFT_TRACE");
  return !text || std::strcmp(text, "0") != 0;
}
std::atomic<bool>& tracing_enabled() {
  static std::atomic<bool> enabled = enabled_by_environment();
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

SymInt as_size(const Tensor& value) {
  require(!is_floating(value.dtype()) && !is_complex(value.dtype()),
          "as_size: expected a tensor of integers, but got {}", describe(value));
  if (TraceRecorder* recorder = TraceRecorder::current()) return recorder->integer_of(value);
  return value.item().to_int();
}

// --- results ---------------------------------------------------------------------------------------------

TracedFunction::TracedFunction(std::string name, GraphModule module, ValueFunction original,
                               std::optional<Value> inputs)
    : name_(std::move(name)),
      module_(std::move(module)),
      original_(std::move(original)),
      inputs_(std::move(inputs)),
      forms_(std::make_shared<OptimizedForms>()) {}

TracedFunction TracedFunction::untraced(std::string name, ValueFunction original, std::string arg_names) {
  TracedFunction function(std::move(name), GraphModule(), std::move(original), std::nullopt);
  function.untraced_names_.emplace(arg_names);
  return function;
}

Value TracedFunction::call(Args args, const Kwargs& kwargs) const {
  if (TraceRecorder* recorder = TraceRecorder::current(); recorder && is_recorded())
    return recorder->call_traced(name_, module_, args, kwargs);
  if (is_recorded()) {
    bool is_watched = layer_state().active != 0 || nn::ModuleObserver::current();
    bool runs_form = OptimizedExecution::is_on() && !is_watched;
    return (runs_form ? forms_->form_for(module_, args) : module_).call(args, kwargs);
  }
  if (untraced_names_->empty() && kwargs.empty()) return original_(args);
  return original_(untraced_names_->bind(args, kwargs, name_));
}

GraphModule TracedFunction::graph_for(std::initializer_list<Value> inputs) const {
  require(is_recorded(), "graph_for: '{}' was not traced, since tracing is switched off", name_);
  return forms_->form_for(module_, Args(inputs.begin(), inputs.size()));
}

namespace {

// A module's tensors and children without the code that runs it.
std::shared_ptr<nn::ModuleState> without_code(const nn::ModuleState& from) {
  auto state = std::make_shared<nn::ModuleState>();
  state->class_name = from.class_name;
  state->training = from.training;
  for (const auto& entry : from.parameters)
    if (entry.second.defined()) state->parameters.push_back(entry);
  for (const auto& entry : from.buffers)
    if (entry.tensor.defined()) state->buffers.push_back(entry);
  // Objects have methods that a graph may call; other attributes were read while it was recorded.
  for (const auto& entry : from.attributes)
    if (entry.second.is_object()) state->attributes.push_back(entry);
  for (const nn::ModuleState::Child& child : from.children) {
    if (graph_module_in(Value(Ref<ValueObject>(child.callable)))) {  // its code is a graph: it stays one
      state->children.push_back(child);
      continue;
    }
    auto refuse = make_closure([](Args) -> Value { fail("Trace submodules cannot be called."); });
    state->children.push_back({child.name, without_code(*child.state), refuse});
  }
  return state;
}

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
  for (const nn::ModuleState::Child& child : state.children) check_no_sharing(*child.state);
}

void check_no_backward_hooks(const std::shared_ptr<nn::ModuleState>& state) {
  require(state->backward_hooks.empty(), "Modules that have backward hooks assigned can't be compiled: {}",
          nn::module_text(nn::Module::over(state)));
  for (const nn::ModuleState::Child& child : state->children) check_no_backward_hooks(child.state);
}

}  // namespace

TracedModule::TracedModule(const nn::Module& original)
    : methods_(std::make_shared<std::vector<TracedFunction>>()) {
  *state() = *without_code(*original.state());
}

TracedModule TracedModule::untraced(const nn::Module& original) {
  TracedModule module{nn::Module()};
  static_cast<nn::Module&>(module) = original;
  return module;
}

const TracedFunction& TracedModule::method(std::string_view name) const {
  std::string names;
  for (const TracedFunction& method : *methods_) {
    if (method.name() == name) return method;
    names += (names.empty() ? "" : ", ") + method.name();
  }
  fail("the traced module has no method '{}'; it has [{}]", name, names);
}

std::vector<std::string> TracedModule::method_names() const {
  std::vector<std::string> names;
  for (const TracedFunction& method : *methods_) names.push_back(method.name());
  return names;
}

void TracedModule::add_method(TracedFunction method) const { methods_->push_back(std::move(method)); }

bool TracedModule::has(std::string_view path) const {
  try {
    find(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void TracedModule::set_tensor(std::string_view path, const Tensor& tensor) const {
  require(tensor.defined(), "a traced module keeps its tensors: '{}' can be replaced, but not removed", path);
  require(has(path) && find(path).is_tensor(), "the traced module has no tensor '{}'", path);
  set_attribute(path, tensor);
}

void TracedModule::set_attribute(std::string_view path, Value value) const {
  require(!methods_->empty(), "set_attribute: the traced module has no methods");
  methods_->front().graph_module().set_attribute(path, std::move(value));
}

void TracedModule::delete_attribute(std::string_view path) const {
  fail("cannot delete methods or parameters of a script module ('{}')", path);
}

Value TracedModule::call(Args args, const Kwargs& kwargs) const {
  const TraceRecorder* recorder = TraceRecorder::current();
  require(
      !recorder || recorder->knows(*state()),
      "Tried to trace <{}> but it is not part of the active trace. Modules that are called during a trace "
      "must be registered as submodules of the thing being traced.",
      original_name());
  return method("forward").call(args, kwargs);
}

Ref<Callable> TracedModule::callable() const { return method("forward").graph_module().callable(); }

namespace {

std::string state_text(const nn::ModuleState& state, const std::string& margin) {
  if (state.children.empty()) return fmt::format("{0}(original_name={0})", state.class_name);
  std::string text = fmt::format("{0}(\n{1}  original_name={0}\n", state.class_name, margin);
  for (const nn::ModuleState::Child& child : state.children)
    text += fmt::format("{}  ({}): {}\n", margin, child.name, state_text(*child.state, margin + "  "));
  return text + margin + ")";
}

}  // namespace

std::string TracedModule::to_string() const { return state_text(*state(), ""); }

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
  recording.places = recorder.take_places();
  recording.module = recorder.finish(false, code.root ? code.root->state()->class_name : code.name);
  return recording;
}

namespace {

void warn_of_optimize(const TraceOptions& options) {
  if (options.optimize)
    warn(WarningKind::kDeprecated,
         "`optimize` is deprecated and has no effect. Use `with torch.jit.optimized_execution()` instead");
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

std::optional<Value> stored(const TraceOptions& options, const Examples& inputs) {
  if (!options.store_inputs) return std::nullopt;
  return options.example_inputs_is_kwarg ? Value(as_dict(inputs.kwargs)) : inputs.arguments;
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
  Recording recording = record_trace(code, given.arguments, given.kwargs, options);
  if (options.check_trace) check_trace(code, recording, given.arguments, given.kwargs, options);
  return TracedFunction(options.name, recording.module, f, stored(options, given));
}

TracedModule trace_forward(const BoundMethod& forward, const Value& inputs, TraceOptions options) {
  options.example_inputs_is_kwarg = !options.example_kwarg_inputs.empty();
  Value given = inputs;
  if (options.example_inputs_is_kwarg) given = as_dict(options.example_kwarg_inputs);
  require(
      !given.is_none() || !is_tracing_enabled(),
      "example_kwarg_inputs should be a dict: trace was given neither example inputs nor arguments by name");
  for (Value& check : options.check_inputs) check = Dict{{"forward", check}};
  return trace_methods(forward.module, {forward}, Dict{{"forward", given}}, options);
}

void warn_of_traced_module() {
  warn(WarningKind::kUser,
       "The input to trace is already a ScriptModule, tracing it is a no-op. Returning the object as is.");
}

TracedModule trace_methods(const nn::Module& module, const std::vector<BoundMethod>& methods,
                           const Value& inputs, const TraceOptions& options) {
  warn_of_optimize(options);
  if (!is_tracing_enabled()) {
    TracedModule same = TracedModule::untraced(module);
    for (const BoundMethod& method : methods)
      same.add_method(TracedFunction::untraced(method.name, method.function, method.arg_names));
    return same;
  }
  require(inputs.is_dict(), "expected a dictionary of (method_name, input) pairs");
  check_no_sharing(*module.state());
  check_no_backward_hooks(module.state());
  TracedModule traced(module);
  for (const auto& [key, given] : inputs.to_dict()) {
    std::string name(key.to_string_view());
    auto found = std::find_if(methods.begin(), methods.end(), [&](const auto& m) { return m.name == name; });
    require(found != methods.end(), "'{}' has no method '{}'", module.state()->class_name, name);
    TracedCode code{found->function, name, options.arg_names.empty() ? found->arg_names : options.arg_names,
                    &module};
    Examples own = examples(given, options.example_inputs_is_kwarg);
    Recording recording = record_trace(code, own.arguments, own.kwargs, options);
    // Before `over`, which may give constants other names than a repeated recording has.
    if (options.check_trace) check_trace(code, recording, own.arguments, own.kwargs, options);
    GraphModule body = GraphModule::over(traced, recording.module);
    traced.add_method(TracedFunction(name, body, found->function, stored(options, own)));
  }
  return traced;
}

}  // namespace weft
