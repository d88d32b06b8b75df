#include "weft/aot/compile_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "aot/compile_plan.h"
#include "weft/autograd/grad_node.h"
#include "weft/base/error.h"
#include "weft/ops/autocast.h"
#include "weft/ops/extension.h"
#include "weft/ops/functions.h"

namespace weft::aot {

std::shared_ptr<const CompilePlan> CompileCache::find(const std::string& key) {
  std::lock_guard lock(mutex_);
  MaskScope plain(0);  // whatever mode the compilation is in
  std::shared_ptr<const CompilePlan> plan = load(key);
  ++(plan ? counters_.hits : counters_.misses);
  return plan;
}

void CompileCache::store(const std::string& key, std::shared_ptr<const CompilePlan> plan) {
  std::lock_guard lock(mutex_);
  MaskScope plain(0);
  save(key, std::move(plan));
}

void CompileCache::count_bypass() {
  std::lock_guard lock(mutex_);
  ++counters_.bypasses;
}

CompileCache::Counters CompileCache::counters() const {
  std::lock_guard lock(mutex_);
  return counters_;
}

namespace {

class MemoryCache final : public CompileCache {
  std::shared_ptr<const CompilePlan> load(const std::string& key) override {
    const auto known = plans_.find(key);
    return known == plans_.end() ? nullptr : known->second;
  }
  void save(const std::string& key, std::shared_ptr<const CompilePlan> plan) override {
    plans_.insert_or_assign(key, std::move(plan));
  }
  std::unordered_map<std::string, std::shared_ptr<const CompilePlan>> plans_;
};

}  // namespace

std::shared_ptr<CompileCache> memory_cache() { return std::make_shared<MemoryCache>(); }

// Two runs of FNV-1a that begin apart.
std::string digest(std::string_view bytes) {
  constexpr uint64_t kPrime = 0x100000001b3;
  uint64_t a = 0xcbf29ce484222325, b = 0x84222325cbf29ce4;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    a = (a ^ byte) * kPrime;
    b = (b + byte + 1) * kPrime;
    b ^= b >> 29;
  }
  return fmt::format("{:016x}{:016x}", a, b);
}

// --- keys ------------------------------------------------------------------------------------------------

namespace {

std::string digest(const Tensor& tensor) {
  const Tensor dense = contiguous(tensor.detach());
  const auto size = static_cast<size_t>(dense.plain_numel() * item_size(dense.dtype()));
  return aot::digest({static_cast<const char*>(dense.raw_data()), size});
}

// Inputs as far as graphs depend on them: types and geometry, gradients, and what shares memory.
class InputText {
 public:
  std::string of(const Value& input) {
    if (!input.is_tensor() || !input.tensor_ref().defined()) return input.to_string();
    const Tensor& tensor = input.tensor_ref();
    std::string text;
    if (const Extension* extension = extension_of(tensor)) {
      text = fmt::format("{} {} {} of ", typeid(*extension).name(), extension->type_name(),
                         extension->context_value().to_string());
      for (const Tensor& inner : extension->inner_tensors()) text += "(" + of(inner) + ")";
    }
    return text + fmt::format("{}{}+{} grad {} leaf {} lazy {} memory {} tensor {} base {}",
                              describe(tensor).str(), describe_sizes(tensor.strides()).str(),
                              tensor.storage_offset().to_string(), tensor.requires_grad(), tensor.is_leaf(),
                              tensor.flags() & (tensor_flag::kConjugate | tensor_flag::kNegative),
                              number(memories_, tensor.storage().get()), number(tensors_, tensor.impl()),
                              tensor.impl()->view ? number(tensors_, tensor.impl()->view->base.impl()) : 0);
  }

 private:
  template <typename T>
  static size_t number(std::map<const T*, size_t>& known, const T* pointer) {
    return known.try_emplace(pointer, known.size() + 1).first->second;
  }
  std::map<const Storage*, size_t> memories_;
  std::map<const TensorImpl*, size_t> tensors_;
};

// The code of a graph and of those inside it. What it names is told by type and, where its caller does not
// give it, by content.
void add_graph(const GraphModule& module, const std::set<const TensorImpl*>& given, std::string& text) {
  text += module.code() + "\n";
  for (const Node& node : module.graph()) {
    if (node.kind() == NodeKind::kCallModule)
      unsupported("a compile cache keeps graphs of operators, but node '{}' calls a module; inline it first",
                  node.name());
    // Such an object has no content that could be compared.
    for (const Value& argument : node.args())
      if (argument.is_object() && !node_in(argument) && !graph_module_in(argument))
        unsupported("a compile cache keeps graphs of operators, but node '{}' holds {}", node.name(),
                    argument.kind_name());
    if (node.kind() != NodeKind::kGetAttr) continue;
    const Value value = module.find(node.target().to_string());
    if (std::optional<GraphModule> inner = graph_module_in(value)) add_graph(*inner, given, text);
  }
  for (const auto& [path, tensor] : constants_of(module))
    text += fmt::format("{}: {} {}\n", path, describe(tensor).str(),
                        given.contains(tensor.impl()) ? "given" : digest(tensor));
}

}  // namespace

std::vector<std::pair<std::string, Tensor>> constants_of(const GraphModule& module) {
  std::vector<std::pair<std::string, Tensor>> constants;
  for (const Node& node : module.graph()) {
    if (node.kind() != NodeKind::kGetAttr) continue;
    const std::string path = node.target().to_string();
    const Value value = module.find(path);
    const bool is_known =
        std::ranges::any_of(constants, [&](const auto& other) { return other.first == path; });
    if (value.is_tensor() && value.tensor_ref().defined() && !is_known)
      constants.emplace_back(path, value.to_tensor());
  }
  return constants;
}

std::string plan_key(const GraphModule& program, const ValueList& examples, const AotOptions& options) {
  std::string text =
      fmt::format("weft plan 1\ndynamic {} fixed {} keep {} grad {} autocast {}\n", options.dynamic,
                  options.num_params_buffers, options.keep_inference_input_mutations, is_grad_enabled(),
                  ::weft::detail::autocast_dtype() ? dtype_name(*::weft::detail::autocast_dtype()) : "off");
  std::vector<std::string> decomposed;
  for (const auto& [op, decomposition] : options.decompositions) decomposed.emplace_back(op->name());
  std::ranges::sort(decomposed);
  for (const std::string& name : decomposed) text += "decomposes " + name + "\n";
  InputText inputs;
  for (const Value& example : examples) text += "input " + inputs.of(example) + "\n";
  std::set<const TensorImpl*> given;
  for (const Value& example : examples)
    if (example.is_tensor()) given.insert(example.tensor_ref().impl());
  add_graph(program, given, text);
  return text;
}

}  // namespace weft::aot
