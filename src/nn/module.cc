#include "weft/nn/module.h"

#include <cxxabi.h>

#include <atomic>
#include <cstdlib>
#include <unordered_set>

#include "nn/backward_hooks.h"
#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/dispatch/recorder.h"

namespace weft::nn {
namespace {

// Visits a module and everything below it, parents first; names end in a dot unless empty.
template <typename F>
void walk(ModuleState& state, const std::string& prefix, const F& f) {
  f(state, prefix);
  for (auto& child : state.children) walk(*child.state, prefix + child.name + ".", f);
}

// Gives the tensor other contents, seen through every handle to it.
void replace_contents(const Tensor& tensor, const Tensor& fresh) {
  if (fresh.is_same(tensor)) return;
  constexpr uint32_t wrappers = layer::kLevels | layer::kFunctionalizeUpper | layer::kFunctionalizeLower;
  require(!(fresh.flags() & wrappers),
          "to: {} of the module would become a tensor of a transform, which ends before the module does; "
          "convert the module outside of the transform",
          describe(tensor));
  // What the elements are read through comes along: without it a tensor without memory would look like any.
  constexpr uint32_t kinds = layer::kFake | layer::kExtension | layer::kKernelDetour |
                             tensor_flag::kConjugate | tensor_flag::kNegative;
  TensorImpl* impl = tensor.impl();
  impl->clear_flags(kinds);
  impl->set_flags(fresh.flags() & kinds);
  impl->box = fresh.impl()->box;
  impl->set_storage(fresh.storage());
  impl->set_dtype(fresh.dtype());
  impl->set_geometry(fresh.sizes(), fresh.strides(), fresh.storage_offset());
}

std::string names_in(const ModuleState& state) {
  std::string names;
  auto add = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  for (const auto& entry : state.parameters) add(entry.first);
  for (const auto& entry : state.buffers) add(entry.name);
  for (const auto& entry : state.attributes) add(entry.first);
  for (const auto& entry : state.children) add(entry.name);
  return names;
}

std::atomic<uint64_t> changes = 0;

}  // namespace

void ModuleState::note_change() { last_change = changes.fetch_add(1, std::memory_order_relaxed) + 1; }
uint64_t latest_change() { return changes.load(std::memory_order_relaxed); }

Module::Module() : state_(std::make_shared<ModuleState>()) {}

// The copy of a member, in a deep copy, is a member of the copy; any other copy is a handle of its own.
Module::Module(const Module& other)
    : state_(DeepCopy::current() ? DeepCopy::current()->state(other.state_) : other.state_),
      is_registered_(DeepCopy::current() && other.is_registered_) {}

void Module::refer_to(const Module& other) {
  require(!is_registered_,
          "an assignment to a {} that is registered in another module, which would keep the old one; use "
          "replace_child of that module",
          state_->class_name);
  state_ = other.state_;
}

std::vector<Module> Module::modules() const {
  std::vector<Module> all;
  std::unordered_set<const ModuleState*> seen;
  auto add = [&](const std::shared_ptr<ModuleState>& state, const auto& self) -> void {
    if (!seen.insert(state.get()).second) return;
    all.push_back(over(state));
    for (const ModuleState::Child& child : state->children) self(child.state, self);
  };
  add(state_, add);
  return all;
}

void Module::apply(FunctionRef<void(Module&)> f) const {
  std::vector<Module> all = modules();
  for (size_t i = all.size(); i-- > 0;) f(all[i]);
}

bool Module::is_watched() const {
  return ModuleObserver::current() || !state_->pre_hooks.empty() || !state_->post_hooks.empty() ||
         !state_->backward_hooks.empty();
}

void Module::check_new_name(const std::string& name) const {
  require(!name.empty() && name.find('.') == std::string::npos,
          "a name in a module must not be empty or have a dot, but is '{}'", name);
  auto taken = [&](const std::string& other) {
    require(other != name, "'{}' is registered twice in this module", name);
  };
  for (const auto& entry : state_->parameters) taken(entry.first);
  for (const auto& entry : state_->buffers) taken(entry.name);
  for (const auto& entry : state_->children) taken(entry.name);
  for (const auto& entry : state_->attributes) taken(entry.first);
}

Tensor Module::parameter(const std::string& name, Tensor tensor) {
  check_new_name(name);
  // What a program computes while it is captured stays that; the parameter is a tensor beside it.
  if (tensor.defined() && !tensor.requires_grad() && Recorder::current(Recorder::Position::kUpper))
    tensor = tensor.detach();
  if (tensor.defined()) tensor.set_requires_grad();
  state_->parameters.emplace_back(name, tensor);
  return tensor;
}

Tensor Module::buffer(const std::string& name, Tensor tensor, bool persistent) {
  check_new_name(name);
  state_->buffers.push_back({name, tensor, persistent});
  return tensor;
}

void Module::add_child(ModuleState::Child child) {
  check_new_name(child.name);
  state_->children.push_back(std::move(child));
}

void Module::remove_child(const std::string& name) {
  size_t count = std::erase_if(state_->children, [&](const auto& child) { return child.name == name; });
  require(count > 0, "there is no child '{}' to remove; there are [{}]", name, names_in(*state_));
  state_->note_change();
}

void Module::replace_child(const ModuleState& old, std::shared_ptr<ModuleState> state,
                           Ref<Callable> callable) {
  std::vector<ModuleState::Child*> found;
  for (ModuleState::Child& child : state_->children)
    if (child.state.get() == &old) found.push_back(&child);
  require(!found.empty(), "replace_child: the {} is no child of this module; there are [{}]", old.class_name,
          names_in(*state_));
  require(found.size() == 1, "replace_child: the {} is registered as '{}' and as '{}'", old.class_name,
          found[0]->name, found.back()->name);
  found[0]->state = std::move(state);
  found[0]->callable = std::move(callable);
  state_->note_change();
}

void Module::attribute(const std::string& name, Value value) {
  check_new_name(name);
  state_->attributes.emplace_back(name, std::move(value));
}

namespace {

const ModuleState::Child* find_child(const ModuleState& state, std::string_view name) {
  for (const ModuleState::Child& child : state.children)
    if (child.name == name) return &child;
  return nullptr;
}

std::optional<Value> find_own(const ModuleState& state, std::string_view name) {
  for (const auto& [own, tensor] : state.parameters)
    if (own == name) return tensor;
  for (const ModuleState::Buffer& buffer : state.buffers)
    if (buffer.name == name) return buffer.tensor;
  for (const auto& [own, value] : state.attributes)
    if (own == name) return value;
  return std::nullopt;
}

}  // namespace

std::optional<Value> Module::try_find(std::string_view path) const { return nn::try_find(*state_, path); }

std::optional<Value> try_find(const ModuleState& root, std::string_view path) {
  const ModuleState* state = &root;
  for (size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    const ModuleState::Child* child = find_child(*state, path.substr(0, dot));
    if (!child) return std::nullopt;
    state = child->state.get();
    path = path.substr(dot + 1);
  }
  if (std::optional<Value> own = find_own(*state, path)) return own;
  const ModuleState::Child* child = find_child(*state, path);
  if (!child || !child->callable) return std::nullopt;
  return Ref<ValueObject>(child->callable);
}

Value Module::find(std::string_view path) const {
  if (std::optional<Value> found = try_find(path)) return *std::move(found);
  const ModuleState* state = state_.get();
  for (std::string_view rest = path;;) {
    const size_t dot = rest.find('.');
    const std::string_view name = rest.substr(0, dot);
    const ModuleState::Child* child = find_child(*state, name);
    require(child != nullptr, "there is no '{}' in '{}' (looking for '{}'); there are [{}]", name,
            state->class_name.empty() ? "Module" : state->class_name, path, names_in(*state));
    if (dot == std::string_view::npos)
      unsupported("'{}' cannot be called by name: its forward takes or gives types that no Value holds",
                  path);
    state = child->state.get();
    rest = rest.substr(dot + 1);
  }
}

namespace {

class TensorList {
 public:
  explicit TensorList(bool remove_duplicates) : removes_(remove_duplicates) {}
  void add(const std::string& name, const Tensor& tensor) {
    if (!tensor.defined()) return;
    const bool is_new = seen_.insert(tensor.impl()).second;
    if (is_new || !removes_) all_.emplace_back(name, tensor);
  }
  NamedTensors take() { return std::move(all_); }

 private:
  bool removes_;
  std::unordered_set<const TensorImpl*> seen_;
  NamedTensors all_;
};

}  // namespace

NamedTensors Module::named_parameters(bool remove_duplicates) const {
  TensorList all(remove_duplicates);
  walk(*state_, "", [&](ModuleState& state, const std::string& prefix) {
    for (const auto& [name, tensor] : state.parameters) all.add(prefix + name, tensor);
  });
  return all.take();
}

NamedTensors Module::named_buffers(bool remove_duplicates) const {
  TensorList all(remove_duplicates);
  walk(*state_, "", [&](ModuleState& state, const std::string& prefix) {
    for (const auto& buffer : state.buffers) all.add(prefix + buffer.name, buffer.tensor);
  });
  return all.take();
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> all;
  for (const auto& entry : named_parameters()) all.push_back(entry.second);
  return all;
}

std::vector<std::string> Module::child_names() const {
  std::vector<std::string> names;
  for (const auto& entry : state_->children) names.push_back(entry.name);
  return names;
}

NamedTensors Module::state_dict() const {
  NamedTensors all;
  walk(*state_, "", [&](ModuleState& state, const std::string& prefix) {
    for (const auto& [name, tensor] : state.parameters)
      if (tensor.defined()) all.emplace_back(prefix + name, tensor);
    for (const auto& buffer : state.buffers)
      if (buffer.tensor.defined() && buffer.persistent) all.emplace_back(prefix + buffer.name, buffer.tensor);
  });
  return all;
}

void Module::load_state_dict(const NamedTensors& given, bool strict) {
  std::map<std::string, Tensor> by_name(given.begin(), given.end());
  std::string missing, wrong;
  NamedTensors own = state_dict();
  for (const auto& [name, tensor] : own) {
    auto found = by_name.find(name);
    if (found == by_name.end()) {
      missing += (missing.empty() ? "" : ", ") + name;
      continue;
    }
    bool same = found->second.dim() == tensor.dim();
    for (int64_t d = 0; same && d < tensor.dim(); ++d) same = found->second.size(d) == tensor.size(d);
    if (!same)
      wrong += fmt::format("\n  {}: the file has {}, the module {}", name, describe(found->second),
                           describe(tensor));
  }
  std::string unexpected;
  for (const auto& [name, tensor] : given) {
    bool known = false;
    for (const auto& entry : own) known |= entry.first == name;
    if (!known) unexpected += (unexpected.empty() ? "" : ", ") + name;
  }
  const bool names_differ = strict && !(missing.empty() && unexpected.empty());
  const std::string names =
      names_differ
          ? fmt::format("missing names: [{}]; unexpected names: [{}]. Pass false for strict to load the rest",
                        missing, unexpected)
          : "";
  require(wrong.empty(), "load_state_dict: sizes differ:{}{}{}", wrong, names_differ ? "\n" : "", names);
  require(!names_differ, "load_state_dict: {}", names);
  NoGrad no_grad;
  for (const auto& [name, tensor] : own)
    if (auto found = by_name.find(name); found != by_name.end()) tensor.copy_(found->second);
}

void Module::train(bool training) {
  if (state_->has_fixed_mode)
    unsupported(
        "Calling {} is not supported yet. This is a captured program, which does what its module did in {}; capture "
        "the module again in the other mode",
        training ? "train()" : "eval()", state_->training ? "training" : "evaluation");
  walk(*state_, "", [&](ModuleState& state, const std::string&) {
    if (!state.has_fixed_mode) state.training = training;
  });
}
void Module::zero_grad() {
  for (const Tensor& parameter : parameters()) parameter.set_grad({});
}
void Module::requires_grad(bool wanted) {
  for (const Tensor& parameter : parameters()) parameter.set_requires_grad(wanted);
}

namespace {

// All parameters and buffers, whether they are saved or not.
std::vector<Tensor> all_tensors(ModuleState& root) {
  std::vector<Tensor> all;
  walk(root, "", [&](ModuleState& state, const std::string&) {
    for (const auto& [name, tensor] : state.parameters)
      if (tensor.defined()) all.push_back(tensor);
    for (const ModuleState::Buffer& buffer : state.buffers)
      if (buffer.tensor.defined()) all.push_back(buffer.tensor);
  });
  return all;
}

}  // namespace

void Module::to(DType dtype) {
  require(is_floating(dtype) || is_complex(dtype), "to: expected a floating or complex dtype, but got {}",
          dtype_name(dtype));
  NoGrad no_grad;
  for (const Tensor& tensor : all_tensors(*state_))
    if (is_differentiable(tensor.dtype())) replace_contents(tensor, tensor.to(dtype));
}

void Module::to(Device device) {
  NoGrad no_grad;
  for (const Tensor& tensor : all_tensors(*state_))
    replace_contents(tensor, weft::to(tensor, std::nullopt, std::nullopt, device));
}

namespace {

std::vector<Tensor> tensors_of(const ValueList& values) {
  std::vector<Tensor> tensors;
  for (const Value& value : values) {
    require(value.is_tensor(),
            "a module with a hook on tensors was called with {}; register a hook that takes a ValueList",
            value.kind_name());
    tensors.push_back(value.to_tensor());
  }
  return tensors;
}

}  // namespace

uint64_t Module::register_forward_pre_hook(ModuleState::PreHook hook) {
  state_->pre_hooks.emplace(state_->next_hook, std::move(hook));
  return state_->next_hook++;
}
uint64_t Module::register_forward_pre_hook(std::function<void(std::vector<Tensor>& inputs)> hook) {
  return register_forward_pre_hook(ModuleState::PreHook([hook = std::move(hook)](ValueList& inputs) {
    std::vector<Tensor> tensors = tensors_of(inputs);
    hook(tensors);
    inputs.assign(tensors.begin(), tensors.end());
  }));
}
uint64_t Module::register_forward_hook(ModuleState::PostHook hook) {
  state_->post_hooks.emplace(state_->next_hook, std::move(hook));
  return state_->next_hook++;
}
uint64_t Module::register_forward_hook(
    std::function<void(const std::vector<Tensor>& inputs, Tensor& output)> hook) {
  return register_forward_hook(
      ModuleState::PostHook([hook = std::move(hook)](const ValueList& inputs, Value& output) {
        require(output.is_tensor(),
                "a module with a forward hook on a tensor gave {}; register a hook that takes a Value",
                output.kind_name());
        Tensor tensor = output.to_tensor();
        hook(tensors_of(inputs), tensor);
        output = tensor;
      }));
}
uint64_t Module::register_backward_hook(ModuleState::BackwardHook hook) {
  state_->backward_hooks.emplace(state_->next_hook, std::move(hook));
  return state_->next_hook++;
}
void Module::remove_hook(uint64_t id) {
  state_->backward_hooks.erase(id);
  state_->pre_hooks.erase(id);
  state_->post_hooks.erase(id);
}

// --- calls that someone watches --------------------------------------------------------------------------

constinit thread_local ModuleObserver* ModuleObserver::current_ = nullptr;

namespace {

Value call_with_hooks(ModuleState& state, Args args, FunctionRef<Value(Args)> forward) {
  if (state.pre_hooks.empty() && state.post_hooks.empty() && state.backward_hooks.empty())
    return forward(args);
  ValueList inputs(args.begin(), args.end());
  // Copies: a hook may remove itself, or add others.
  const auto pre_hooks = state.pre_hooks;
  for (const auto& [id, hook] : pre_hooks) hook(inputs);
  BackwardHooks backward(state);
  backward.enter(inputs);
  Value result = forward(inputs);
  const auto post_hooks = state.post_hooks;
  for (const auto& [id, hook] : post_hooks) hook(inputs, result);
  return backward.leave(result);
}

}  // namespace

Value Module::watched_call(const char* argument_names, ValueList args, FunctionRef<Value(Args)> forward,
                           std::string (*result_form)()) const {
  // The module may be replaced or destroyed while it runs.
  std::shared_ptr<ModuleState> state = state_;
  auto run = [&](Args inner) { return call_with_hooks(*state, inner, forward); };
  ModuleObserver* observer = ModuleObserver::current();
  if (!observer) return run(args);
  return observer->handle({state, ArgumentNames::of(argument_names), std::move(args), run, result_form()});
}

namespace {

// The path from a module to one below it; nothing where it is not there.
std::optional<std::string> path_between(const ModuleState& from, const void* to) {
  for (const ModuleState::Child& child : from.children) {
    if (child.state.get() == to) return child.name;
    if (std::optional<std::string> rest = path_between(*child.state, to)) return child.name + "." + *rest;
  }
  return std::nullopt;
}

// "nn::Linear", "Net": as the user writes it.
std::string written_class(const ModuleState& module) {
  std::string name = module.qualified_class;
  if (name.starts_with("weft::")) name.erase(0, 6);
  const size_t unnamed = name.rfind("(anonymous namespace)::");
  return unnamed == std::string::npos ? name : name.substr(unnamed + 23);
}

}  // namespace

void Module::note_module(Error& error, const std::type_info& type) const noexcept {
  try {
    note_class(*state_, type);
    Error::ModuleTrail trail = error.modules();
    const std::string name = written_class(*state_);
    if (!trail.outermost) {
      trail.class_name = name;
    } else if (std::optional<std::string> path = path_between(*state_, trail.outermost)) {
      trail.path = trail.path.empty() ? *path : *path + "." + trail.path;
    } else if (trail.outermost != state_.get()) {
      return;  // another model, which this one calls: the path is that of the inner one
    }
    trail.outermost = state_.get();
    trail.root_class = name;
    error.set_modules(std::move(trail));
  } catch (...) {
    // Without memory for the path the error is still what it was.
  }
}

void note_class(ModuleState& module, const std::type_info& type) {
  if (!module.class_name.empty()) return;
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                              std::free);
  std::string name = status == 0 ? text.get() : type.name();
  name.resize(std::min(name.find('<'), name.size()));  // template arguments have namespaces of their own
  size_t last = name.rfind("::");
  module.qualified_class = name;
  module.class_name = last == std::string::npos ? name : name.substr(last + 2);
}

}  // namespace weft::nn
