// What a trace gives.
#include "weft/capture/traced.h"

#include <atomic>
#include <deque>

#include "capture/optimized_forms.h"
#include "capture/trace_recorder.h"
#include "capture/traced.h"
#include "graph/uncallable.h"
#include "weft/capture/optimized.h"
#include "weft/dispatch/layers.h"

namespace weft {

// --- functions -------------------------------------------------------------------------------------------

TracedFunction::TracedFunction(std::string name, std::string qualified_name, GraphModule module,
                               ValueFunction original)
    : name_(std::move(name)),
      qualified_name_(std::move(qualified_name)),
      module_(std::move(module)),
      original_(std::move(original)),
      forms_(std::make_shared<OptimizedForms>()) {}

TracedFunction TracedFunction::untraced(std::string name, ValueFunction original, std::string arg_names) {
  TracedFunction function(name, name, GraphModule(), std::move(original));
  function.untraced_names_.emplace(arg_names);
  return function;
}

Value TracedFunction::call(Args args, const Kwargs& kwargs) const {
  if (TraceRecorder* recorder = TraceRecorder::current(); recorder && is_recorded())
    return recorder->call_traced(name_, module_, args, kwargs);
  if (is_recorded()) {
    const bool is_watched = layer_state().active != 0 || nn::ModuleObserver::current();
    const bool runs_form = OptimizedExecution::is_on() && !is_watched;
    return (runs_form ? forms_->form_for(module_, args) : module_).call(args, kwargs);
  }
  if (untraced_names_->empty() && kwargs.empty()) return original_(args);
  return original_(untraced_names_->bind(args, kwargs, name_));
}

GraphModule TracedFunction::graph_for(std::initializer_list<Value> inputs) const {
  require(is_recorded(), "graph_for: '{}' was not traced, since tracing is switched off", name_);
  return forms_->form_for(module_, Args(inputs.begin(), inputs.size()));
}

ScriptOptions TracedFunction::completed(ScriptOptions options) const {
  require(is_recorded(), "'{}' has no graph: tracing was switched off when it was to be traced", name_);
  if (options.self_type.empty()) options.self_type = module_.state()->qualified_class;
  if (options.name == ScriptOptions().name) options.name = name_;
  return options;
}

std::string TracedFunction::graph_text(ScriptOptions options) const {
  return script_text(module_, completed(std::move(options)));
}
ScriptGraph TracedFunction::script(ScriptOptions options) const {
  return script_view(module_, completed(std::move(options)));
}
std::string TracedFunction::code(ScriptOptions options) const {
  return script_code(module_, completed(std::move(options)));
}

std::optional<Value> TracedFunction::example_inputs() const {
  const Value* own = module_.traced_inputs().find(name_);
  return own ? std::optional<Value>(*own) : std::nullopt;
}

// --- modules ---------------------------------------------------------------------------------------------

bool is_graph(const nn::ModuleState::Child& child) {
  return graph_module_in(Ref<ValueObject>(child.callable)).has_value();
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
    if (is_graph(child)) state->children.push_back(child);
    else
      state->children.push_back({child.name, without_code(*child.state),
                                 make_ref<Uncallable>("Trace submodules cannot be called.")});
  }
  return state;
}

std::string state_text(const nn::ModuleState& state, const std::string& margin) {
  if (state.children.empty()) return fmt::format("{0}(original_name={0})", state.class_name);
  std::string text = fmt::format("{0}(\n{1}  original_name={0}\n", state.class_name, margin);
  for (const nn::ModuleState::Child& child : state.children)
    text += fmt::format("{}  ({}): {}\n", margin, child.name, state_text(*child.state, margin + "  "));
  return text + margin + ")";
}

}  // namespace

struct TracedModule::Methods {
  std::deque<TracedFunction> all;  // a deque: those that are there stay where they are
  std::atomic<const TracedFunction*> forward = nullptr;
};

TracedModule::TracedModule(const nn::Module& original) : methods_(std::make_shared<Methods>()) {
  *state() = *without_code(*original.state());
}

TracedModule& TracedModule::operator=(const TracedModule& other) {
  refer_to(other);
  methods_ = other.methods_;
  return *this;
}

TracedModule TracedModule::over(const GraphModule& forward, const CompilationUnit& unit) {
  TracedModule traced{nn::Module()};
  traced.state()->class_name = forward.state()->class_name;
  traced.state()->qualified_class = unit.define_type(forward.state()->class_name);
  traced.reconstruct(forward);
  return traced;
}

TracedModule::TracedModule(const TracedModule& other) : nn::Module(other) {
  nn::DeepCopy* copy = nn::DeepCopy::current();
  if (!copy) {
    methods_ = other.methods_;
    return;
  }
  // What was traced stays behind: it is the graph that has a copy.
  auto make = [&]() -> std::shared_ptr<void> {
    auto made = std::make_shared<Methods>();
    for (const TracedFunction& method : other.methods_->all) {
      require(method.is_recorded(), "deep_copy: '{}' was not traced, since tracing is switched off",
              method.name());
      const GraphModule module = method.graph_module();
      made->all.emplace_back(method.name(), method.qualified_name(), module, module.function());
    }
    return made;
  };
  methods_ = std::static_pointer_cast<Methods>(copy->shared(other.methods_, make));
}

const TracedFunction& TracedModule::method(std::string_view name) const {
  std::string names;
  for (const TracedFunction& method : methods_->all) {
    if (method.name() == name) return method;
    names += (names.empty() ? "" : ", ") + method.name();
  }
  fail("the traced module has no method '{}'; it has [{}]", name, names);
}

const TracedFunction& TracedModule::forward_method() const {
  const TracedFunction* known = methods_->forward.load(std::memory_order_acquire);
  if (known) return *known;
  const TracedFunction& found = method("forward");
  methods_->forward.store(&found, std::memory_order_release);
  return found;
}

std::vector<std::string> TracedModule::method_names() const {
  std::vector<std::string> names;
  for (const TracedFunction& method : methods_->all) names.push_back(method.name());
  return names;
}

void TracedModule::add_method(TracedFunction method) const { methods_->all.push_back(std::move(method)); }

void TracedModule::set_attribute(std::string_view path, const Value& value) const {
  for (const TracedFunction& method : methods_->all)
    require(method.is_recorded(),
            "set_attribute: '{}' is not replaced, because tracing was switched off: this is {} itself, whose "
            "code reads its own members",
            path, original_name());
  const Value there = find(path);
  require(!value.is_none() && !(value.is_tensor() && !value.tensor_ref().defined()),
          "a traced module keeps its tensors: '{}' can be replaced, but not removed", path);
  require(there.kind() == value.kind(), "set_attribute: '{}' is {}, which {} cannot replace", path,
          there.kind_name(), value.kind_name());
  GraphModule owner;
  owner.refer_to(*this);
  owner.set_attribute(path, value);
}

void TracedModule::delete_attribute(std::string_view path) const {
  fail("cannot delete methods or parameters of a script module ('{}')", path);
}

void TracedModule::reconstruct(const GraphModule& forward) const {
  // The graph is copied: what is prepared for its runs has the tensors of one module.
  GraphModule code(forward.graph().copy());
  code.refer_to(forward);
  if (forward.call_spec()) code.set_call_spec(*forward.call_spec());
  code.set_traced_inputs(forward.traced_inputs());
  std::shared_ptr<nn::ModuleState> other = without_code(*forward.state());
  GraphModule::over(nn::Module::over(other), code);  // an error comes before anything is changed
  nn::ModuleState& own = *state();
  own.parameters = std::move(other->parameters);
  own.buffers = std::move(other->buffers);
  own.attributes = std::move(other->attributes);
  own.children = std::move(other->children);
  own.training = other->training;
  own.note_change();
  methods_->forward = nullptr;
  methods_->all.clear();
  add_method(TracedFunction("forward", own.qualified_class + ".forward", GraphModule::over(*this, code),
                            forward.function()));
}

Value TracedModule::call(Args args, const Kwargs& kwargs) const {
  const TraceRecorder* recorder = TraceRecorder::current();
  require(
      !recorder || recorder->knows(*state()),
      "Tried to trace <{}> but it is not part of the active trace. Modules that are called during a trace "
      "must be registered as submodules of the thing being traced.",
      original_name());
  return forward_method().call(args, kwargs);
}

Ref<Callable> TracedModule::callable() const { return forward_method().graph_module().callable(); }

std::string TracedModule::to_string() const { return state_text(*state(), ""); }

}  // namespace weft
