#include "export/module_state.h"

#include <unordered_set>

namespace weft {
namespace {

class Walk {
 public:
  explicit Walk(ModuleTensors& into) : into_(into) {}

  // A module's own tensors before those of its children, as state_dict has them.
  void module(const nn::ModuleState& state, const std::string& path) {
    if (!open_.insert(&state).second) return;
    for (const auto& [name, tensor] : state.parameters) {
      if (!tensor.defined()) continue;
      into_.state.emplace_back(path + name, tensor);
      note(into_.parameters, {path + name, tensor, true});
    }
    for (const nn::ModuleState::Buffer& buffer : state.buffers) {
      if (!buffer.tensor.defined()) continue;
      (buffer.persistent ? into_.state : into_.all_other).emplace_back(path + buffer.name, buffer.tensor);
      note(into_.buffers, {path + buffer.name, buffer.tensor, buffer.persistent});
    }
    for (const auto& [name, value] : state.attributes) {
      if (!value.is_tensor() || !value.tensor_ref().defined()) continue;
      into_.all_other.emplace_back(path + name, value.tensor_ref());
      note(into_.constants, {path + name, value.tensor_ref(), true});
    }
    for (const nn::ModuleState::Child& child : state.children) module(*child.state, path + child.name + ".");
    open_.erase(&state);
  }

 private:
  void note(std::vector<ModuleTensors::Entry>& entries, ModuleTensors::Entry entry) {
    if (seen_.insert(entry.tensor.impl()->serial()).second) entries.push_back(std::move(entry));
  }

  ModuleTensors& into_;
  std::unordered_set<uint64_t> seen_;
  std::unordered_set<const nn::ModuleState*> open_;
};

}  // namespace

ModuleTensors::ModuleTensors(const nn::Module& module) { Walk(*this).module(*module.state(), ""); }

}  // namespace weft
