#include "capture/optimized_forms.h"

#include <unordered_set>

#include "capture/graph_writer.h"
#include "weft/capture/optimized.h"
#include "weft/dispatch/layers.h"
#include "weft/passes/merge_nodes.h"
#include "weft/passes/pass_runner.h"

namespace weft {

constinit thread_local bool OptimizedExecution::is_on_ = true;

namespace {

constexpr size_t kMostForms = 16;

bool asks_for_gradient(const Value& input) {
  bool asks = false;
  map_leaves(input, [&](const Value& leaf) {
    asks |= leaf.is_tensor() && leaf.tensor_ref().requires_grad();
    return leaf;
  });
  return asks;
}

// The nodes that a gradient may flow through.
std::unordered_set<const Node*> nodes_with_gradients(const GraphModule& module,
                                                     const std::vector<bool>& gradients) {
  std::unordered_set<const Node*> with;
  size_t input = 0;
  for (const Node& node : module.graph()) {
    bool has = false;
    if (node.kind() == NodeKind::kPlaceholder) {
      has = input >= gradients.size() || gradients[input];
      ++input;
    } else if (node.kind() == NodeKind::kGetAttr) {
      has = true;  // a module may be told at any time that its tensors want gradients
    } else {
      for (const Node* used : node.inputs()) has |= with.contains(used);
      if (const Operator* op = node.target().op(); op && op->has(Traits::kNotDifferentiable)) has = false;
    }
    if (has) with.insert(&node);
  }
  return with;
}

// The same graph, to be changed, over the same tensors.
GraphModule copy_over(const GraphModule& module) {
  GraphModule copy(module.graph().copy());
  copy.refer_to(module);
  if (module.call_spec()) copy.set_call_spec(*module.call_spec());
  return copy;
}

}  // namespace

OptimizedForms::Gradients OptimizedForms::gradients_of(const GraphModule& module, Args inputs) {
  if (!layer_state().grad_mode) return std::nullopt;
  std::vector<bool> gradients;
  if (module.call_spec()) return gradients;  // arguments are trees, and inputs their leaves
  for (const Value& input : inputs) gradients.push_back(asks_for_gradient(input));
  return gradients;
}

GraphModule OptimizedForms::optimized(const GraphModule& module, const Gradients& gradients) {
  GraphModule form = copy_over(module);
  auto merge = [&](GraphModule& own) {
    std::unordered_set<const Node*> kept;
    if (gradients) kept = nodes_with_gradients(own, *gradients);
    return merge_common_subexpressions(own, [&](const Node& node) { return kept.contains(&node); });
  };
  auto remove_dead_code = [](GraphModule& own) { return own.graph().eliminate_dead_code(); };
  std::vector<PassReport> reports = run_passes(form, {{"merge attribute reads", merge_attribute_reads},
                                                      {"merge common subexpressions", merge},
                                                      {"remove dead code", remove_dead_code},
                                                      {"pool constants", pool_constants}});
  for (const PassReport& report : reports)
    if (report.changed) return form;
  return module;
}

GraphModule OptimizedForms::form_for(const GraphModule& module, Args inputs) {
  Gradients gradients = gradients_of(module, inputs);
  std::lock_guard lock(mutex_);
  const uint64_t version = module.graph().version();
  if (!watch_.is_unchanged(module) || version != version_) forms_.clear();
  version_ = version;
  auto known = forms_.find(gradients);
  if (known != forms_.end()) return known->second;
  if (forms_.size() >= kMostForms) forms_.clear();
  return forms_.emplace(gradients, optimized(module, gradients)).first->second;
}

}  // namespace weft
