#include "weft/nn/module.h"

#include "weft/autograd/autograd.h"
#include "weft/base/error.h"

namespace weft::nn {
namespace {

// Visits a module and everything below it, parents first; names end in a dot unless empty.
template <typename F>
void walk(ModuleState& state, const std::string& prefix, const F& f) {
  f(state, prefix);
  for (auto& [name, child] : state.children) walk(*child, prefix + name + ".", f);
}

// Gives the tensor other contents, seen through every handle to it.
void replace_contents(const Tensor& tensor, const Tensor& fresh) {
  TensorImpl* impl = tensor.impl();
  impl->set_storage(fresh.storage());
  impl->set_dtype(fresh.dtype());
  impl->set_geometry(fresh.sizes(), fresh.strides(), fresh.storage_offset());
}

}  // namespace

void Module::check_new_name(const std::string& name) const {
  require(!name.empty() && name.find('.') == std::string::npos,
          "a name in a module must not be empty or have a dot, but is '{}'", name);
  auto taken = [&](const std::string& other) {
    require(other != name, "'{}' is registered twice in this module", name);
  };
  for (const auto& entry : state_->parameters) taken(entry.first);
  for (const auto& entry : state_->buffers) taken(entry.name);
  for (const auto& entry : state_->children) taken(entry.first);
}

Tensor Module::parameter(const std::string& name, Tensor tensor) {
  check_new_name(name);
  if (tensor.defined()) tensor.set_requires_grad();
  state_->parameters.emplace_back(name, tensor);
  return tensor;
}

Tensor Module::buffer(const std::string& name, Tensor tensor, bool persistent) {
  check_new_name(name);
  state_->buffers.push_back({name, tensor, persistent});
  return tensor;
}

void Module::add_child(const std::string& name, const std::shared_ptr<ModuleState>& state) {
  check_new_name(name);
  state_->children.emplace_back(name, state);
}

NamedTensors Module::named_parameters() const {
  NamedTensors all;
  walk(*state_, "", [&](ModuleState& state, const std::string& prefix) {
    for (const auto& [name, tensor] : state.parameters)
      if (tensor.defined()) all.emplace_back(prefix + name, tensor);
  });
  return all;
}

NamedTensors Module::named_buffers() const {
  NamedTensors all;
  walk(*state_, "", [&](ModuleState& state, const std::string& prefix) {
    for (const auto& buffer : state.buffers)
      if (buffer.tensor.defined()) all.emplace_back(prefix + buffer.name, buffer.tensor);
  });
  return all;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> all;
  for (const auto& entry : named_parameters()) all.push_back(entry.second);
  return all;
}

std::vector<std::string> Module::child_names() const {
  std::vector<std::string> names;
  for (const auto& entry : state_->children) names.push_back(entry.first);
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
  require(wrong.empty(), "load_state_dict: sizes differ:{}", wrong);
  require(!strict || (missing.empty() && unexpected.empty()),
          "load_state_dict: missing names: [{}]; unexpected names: [{}]. Pass strict=false to load the rest",
          missing, unexpected);
  NoGrad no_grad;
  for (const auto& [name, tensor] : own)
    if (auto found = by_name.find(name); found != by_name.end()) tensor.copy_(found->second);
}

void Module::train(bool training) {
  walk(*state_, "", [&](ModuleState& state, const std::string&) { state.training = training; });
}
void Module::zero_grad() {
  for (const Tensor& parameter : parameters()) parameter.set_grad({});
}
void Module::requires_grad(bool wanted) {
  for (const Tensor& parameter : parameters()) parameter.set_requires_grad(wanted);
}

void Module::to(DType dtype) {
  require(is_floating(dtype) || is_complex(dtype), "to: expected a floating or complex dtype, but got {}",
          dtype_name(dtype));
  NoGrad no_grad;
  for (const auto& entry : state_dict())
    if (is_differentiable(entry.second.dtype())) replace_contents(entry.second, entry.second.to(dtype));
}

void Module::to(Device device) {
  NoGrad no_grad;
  for (const auto& entry : state_dict())
    replace_contents(entry.second, weft::to(entry.second, std::nullopt, std::nullopt, device));
}

uint64_t Module::register_forward_pre_hook(ModuleState::PreHook hook) {
  state_->pre_hooks.emplace(state_->next_hook, std::move(hook));
  return state_->next_hook++;
}
uint64_t Module::register_forward_hook(ModuleState::PostHook hook) {
  state_->post_hooks.emplace(state_->next_hook, std::move(hook));
  return state_->next_hook++;
}
void Module::remove_hook(uint64_t id) {
  state_->pre_hooks.erase(id);
  state_->post_hooks.erase(id);
}

}  // namespace weft::nn
