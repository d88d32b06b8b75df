#include "weft/capture/trace.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "capture/trace_check.h"
#include "capture/trace_recorder.h"
#include "capture/trace_types.h"
#include "weft/base/warning.h"
#include "weft/nn/module_text.h"

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
      inputs_(std::move(inputs)) {}

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
  for (const nn::ModuleState::Child& child : from.children) {
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
  nn::ModuleState* owner = state().get();
  std::string_view rest = path;
  for (size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
    auto child = std::find_if(owner->children.begin(), owner->children.end(),
                              [&](const auto& c) { return c.name == rest.substr(0, dot); });
    require(child != owner->children.end(), "the traced module has no '{}'", path);
    owner = child->state.get();
    rest = rest.substr(dot + 1);
  }
  Tensor* found = nullptr;
  for (auto& [name, own] : owner->parameters)
    if (name == rest) found = &own;
  for (auto& buffer : owner->buffers)
    if (buffer.name == rest) found = &buffer.tensor;
  require(found != nullptr, "the traced module has no tensor '{}'", path);
  *found = tensor;
  ++state()->version;  // what the methods have prepared is out of date
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
  ValueList own;
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
  recording.module = recorder.finish(false, code.root ? code.root->state()->class_name : code.name);
  return recording;
}

namespace {

void warn_of_optimize(const TraceOptions& options) {
  if (options.optimize)
    warn(WarningKind::kDeprecated,
         "`optimize` is deprecated and has no effect. Use `with torch.jit.optimized_execution()` instead");
}

std::optional<Value> stored(const TraceOptions& options, const Value& arguments) {
  if (!options.store_inputs) return std::nullopt;
  return options.example_kwarg_inputs.empty() ? arguments : Value(as_dict(options.example_kwarg_inputs));
}

}  // namespace

Dict as_dict(const Kwargs& kwargs) {
  Dict dict;
  for (const auto& [name, value] : kwargs) dict.set(name, value);
  return dict;
}

TracedFunction trace_function(const ValueFunction& f, const Value& inputs, TraceOptions options) {
  warn_of_optimize(options);
  Value arguments = options.example_kwarg_inputs.empty() ? example_arguments(inputs) : Value::tuple({});
  TracedCode code{f, options.name, options.arg_names, nullptr};
  if (!is_tracing_enabled()) return TracedFunction(options.name, GraphModule(), f, std::nullopt);
  Recording recording = record_trace(code, arguments, options.example_kwarg_inputs, options);
  if (options.check_trace) check_trace(code, recording.module, arguments, options);
  return TracedFunction(options.name, recording.module, f, stored(options, arguments));
}

TracedModule trace_methods(const nn::Module& module, const std::vector<BoundMethod>& methods,
                           const Dict& inputs, const TraceOptions& options) {
  warn_of_optimize(options);
  check_no_sharing(*module.state());
  check_no_backward_hooks(module.state());
  TracedModule traced(module);
  for (const auto& [key, given] : inputs) {
    std::string name(key.to_string_view());
    auto found = std::find_if(methods.begin(), methods.end(), [&](const auto& m) { return m.name == name; });
    require(found != methods.end(), "'{}' has no method '{}'", module.state()->class_name, name);
    TracedCode code{found->function, name, options.arg_names.empty() ? found->arg_names : options.arg_names,
                    &module};
    Value arguments = options.example_kwarg_inputs.empty() ? example_arguments(given) : Value::tuple({});
    Recording recording = record_trace(code, arguments, options.example_kwarg_inputs, options);
    GraphModule body = GraphModule::over(traced, recording.module);
    if (options.check_trace) check_trace(code, body, arguments, options);
    traced.add_method(TracedFunction(name, body, found->function, stored(options, arguments)));
  }
  return traced;
}

}  // namespace weft
