#include "weft/nn/deep_copy.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <unordered_map>

#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/core/value_walk.h"
#include "weft/nn/module.h"

namespace weft::nn {

constinit thread_local DeepCopy* DeepCopy::current_ = nullptr;

struct DeepCopy::Copies {
  std::unordered_map<const TensorImpl*, std::pair<Tensor, Tensor>> tensors;  // the tensor, and its copy
  std::unordered_map<const Storage*, Tensor> memories;
  std::unordered_map<const ModuleState*, std::shared_ptr<ModuleState>> states;
  std::unordered_map<const void*, std::shared_ptr<void>> shared;
  std::vector<std::shared_ptr<ModuleState>> made;  // in the order of their making
  size_t complete = 0;                             // of those, how many have functions of their own
};

// --- tensors ---------------------------------------------------------------------------------------------

Tensor DeepCopy::copy_memory(const Tensor& tensor) {
  const Ref<Storage>& storage = tensor.storage();
  if (!storage->has_memory() || tensor.impl()->box) return tensor.clone();
  Tensor& memory = copies_->memories[storage.get()];
  const auto whole = static_cast<int64_t>(storage->bytes() / static_cast<size_t>(item_size(tensor.dtype())));
  if (!memory.defined()) memory = alias_with(tensor, SymInts{whole}, SymInts{1}, 0).clone();
  if (memory.dtype() != tensor.dtype()) return tensor.clone();  // memory that is read in two ways
  Tensor copy = alias_with(memory, tensor.sizes(), tensor.strides(), tensor.storage_offset());
  copy.impl()->set_flags(tensor.flags() & (tensor_flag::kConjugate | tensor_flag::kNegative));
  return copy;
}

Tensor DeepCopy::tensor(const Tensor& from) {
  if (!from.defined()) return from;
  if (auto known = copies_->tensors.find(from.impl()); known != copies_->tensors.end())
    return known->second.second;
  NoGrad no_grad;
  Tensor copy = copy_memory(from);
  if (from.requires_grad()) copy.set_requires_grad();
  // With the tensor itself: its address stays its own as long as this lives. Copies of copies are handles.
  copies_->tensors.try_emplace(from.impl(), from, copy);
  copies_->tensors.try_emplace(copy.impl(), copy, copy);
  return copy;
}

// --- what modules own ------------------------------------------------------------------------------------

namespace {

const ModuleCallable* module_in(const Ref<Callable>& callable) {
  return dynamic_cast<const ModuleCallable*>(callable.get());
}

bool runs_code(const ModuleState::Child& child) {
  if (!child.callable) return false;
  const ModuleCallable* module = module_in(child.callable);
  return !module || module->is_code();
}

bool has_code_below(const ModuleState& state) {
  return std::any_of(state.children.begin(), state.children.end(), [](const ModuleState::Child& child) {
    return runs_code(child) || has_code_below(*child.state);
  });
}

}  // namespace

DeepCopy::DeepCopy(const std::shared_ptr<ModuleState>& root, DeepCopyOptions options)
    : outer_(std::exchange(current_, this)), options_(options), copies_(std::make_unique<Copies>()) {
  try {
    state(root);
  } catch (...) {
    current_ = outer_;
    throw;
  }
}

DeepCopy::~DeepCopy() { current_ = outer_; }

Value DeepCopy::value(const Value& from) {
  return map_leaves(
      from, [&](const Value& leaf) { return leaf.is_tensor() ? Value(tensor(leaf.tensor_ref())) : leaf; });
}

std::shared_ptr<ModuleState> DeepCopy::find_state(const ModuleState* from) const {
  auto found = copies_->states.find(from);
  return found == copies_->states.end() ? nullptr : found->second;
}

std::shared_ptr<ModuleState> DeepCopy::state(const std::shared_ptr<ModuleState>& from) {
  if (std::shared_ptr<ModuleState> known = find_state(from.get())) return known;
  auto made = std::make_shared<ModuleState>();
  copies_->states.emplace(from.get(), made);  // before the hooks, which may keep the module itself
  copies_->states.emplace(made.get(), made);
  copies_->made.push_back(made);
  ++depth_;
  *made = *from;
  for (auto& entry : made->parameters) entry.second = tensor(entry.second);
  for (auto& entry : made->buffers) entry.tensor = tensor(entry.tensor);
  for (auto& entry : made->attributes) entry.second = value(entry.second);
  for (ModuleState::Child& child : made->children) {
    const bool has_code =
        options_.share_code && (runs_code(child) || (child.callable && has_code_below(*child.state)));
    if (!has_code) child.state = state(child.state);
  }
  if (--depth_ == 0) copy_functions();
  return made;
}

// Functions come last: what they keep has a copy by then. Copying one may bring in modules that only an
// object knows.
void DeepCopy::copy_functions() {
  ++depth_;
  while (copies_->complete < copies_->made.size()) copy_functions(*copies_->made[copies_->complete++]);
  --depth_;
}

void DeepCopy::copy_functions(ModuleState& made) {
  for (ModuleState::Child& child : made.children) {
    if (!child.callable) continue;
    if (options_.share_code && (runs_code(child) || has_code_below(*child.state))) continue;
    const ModuleCallable* module = module_in(child.callable);
    require(
        module != nullptr,
        "deep_copy: '{}' is a function that is no module, and keeps what nobody can copy; make it a module "
        "or a graph module",
        child.name);
    child.callable = module->copy();
  }
  // Functions among the attributes are values, as in Python: only modules have copies.
  for (auto& [name, value] : made.attributes)
    value = map_leaves(value, [](const Value& leaf) {
      auto* module = dynamic_cast<const ModuleCallable*>(callable_in(leaf));
      return module ? Value(Ref<ValueObject>(module->copy())) : leaf;
    });
}

std::shared_ptr<void> DeepCopy::shared(const std::shared_ptr<void>& from,
                                       FunctionRef<std::shared_ptr<void>()> make) {
  if (auto known = copies_->shared.find(from.get()); known != copies_->shared.end()) return known->second;
  std::shared_ptr<void> made = make();
  copies_->shared.emplace(from.get(), made);
  copies_->shared.emplace(made.get(), made);
  return made;
}

// --- members of C++ objects ------------------------------------------------------------------------------

struct DeepCopy::Members::Entries {
  struct Entry {
    Tensor copy;
    uint32_t handles;  // before
    std::string name;
    std::vector<void*> members{};
  };
  std::unordered_map<const TensorImpl*, Entry> by_tensor;
};

DeepCopy::Members::Members(DeepCopy& copy, const ModuleState& module)
    : copy_(copy), module_(module), entries_(std::make_unique<Entries>()) {
  note(module, "");
}

DeepCopy::Members::~Members() = default;

void DeepCopy::Members::note(const ModuleState& module, const std::string& prefix) {
  auto add = [&](const std::string& name, const Tensor& tensor) {
    if (!tensor.defined() || entries_->by_tensor.contains(tensor.impl())) return;
    Tensor own = copy_.tensor(tensor);
    entries_->by_tensor.emplace(tensor.impl(),
                                Entries::Entry{std::move(own), tensor.impl()->use_count(), prefix + name});
  };
  for (const auto& [name, tensor] : module.parameters) add(name, tensor);
  for (const ModuleState::Buffer& buffer : module.buffers) add(buffer.name, buffer.tensor);
  for (const ModuleState::Child& child : module.children) note(*child.state, prefix + child.name + ".");
}

void DeepCopy::Members::clear(void* memory, size_t bytes) { std::memset(memory, 0, bytes); }

void DeepCopy::Members::rebind(void* object, size_t bytes) {
  static_assert(sizeof(Tensor) == sizeof(const TensorImpl*) && alignof(Tensor) == alignof(const TensorImpl*));
  auto* memory = static_cast<std::byte*>(object);
  for (size_t at = 0; at + sizeof(Tensor) <= bytes; at += alignof(Tensor)) {
    const TensorImpl* word = nullptr;
    std::memcpy(&word, memory + at, sizeof(word));
    if (auto found = entries_->by_tensor.find(word); found != entries_->by_tensor.end())
      found->second.members.push_back(memory + at);
  }
  for (const auto& [tensor, entry] : entries_->by_tensor)
    require(
        tensor->use_count() == entry.handles + entry.members.size(),
        "deep_copy: an object of {} keeps its tensor '{}' where it cannot be found, as in a std::vector or "
        "a lambda; keep tensors as members, and modules as members or in an nn::ModuleList or "
        "nn::Sequential",
        module_.class_name.empty() ? "a module's class" : module_.class_name, entry.name);
  for (const auto& [tensor, entry] : entries_->by_tensor)
    for (void* member : entry.members) *std::launder(static_cast<Tensor*>(member)) = entry.copy;
}

}  // namespace weft::nn
