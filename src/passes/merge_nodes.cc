#include "weft/passes/merge_nodes.h"

#include <unordered_map>
#include <unordered_set>

#include "graph/text/value_text.h"
#include "weft/core/value_walk.h"

namespace weft {

bool merge_attribute_reads(GraphModule& module) {
  // By what is read: two paths may lead to one tensor.
  std::unordered_map<const void*, Node*> tensors;
  std::unordered_map<std::string, Node*> others;
  std::vector<Node*> reads;
  for (Node& node : module.graph())
    if (node.kind() == NodeKind::kGetAttr) reads.push_back(&node);
  bool changed = false;
  for (Node* node : reads) {
    std::string path = node->target().to_string();
    Value value = module.find(path);
    Node*& first = value.is_tensor() ? tensors[value.tensor_ref().impl()] : others[path];
    if (!first) {
      first = node;
      continue;
    }
    node->replace_all_uses_with(*first);
    module.graph().erase(*node);
    changed = true;
  }
  return changed;
}

namespace {

// What a node does is in its target and arguments, and nowhere else.
bool is_pure(const Node& node) {
  if (node.kind() != NodeKind::kCallFunction) return false;
  const Operator* op = node.target().op();
  if (!op) return node.target().function() && !node.is_impure();
  return !node.is_impure(/*random_is_impure=*/false) && !op->def().higher_order;
}

// Two calls give the same.
bool is_repeatable(const Node& node) {
  const Operator* op = node.target().op();
  return !op || !(op->has(Traits::kRandom) || op->has(Traits::kUninitialized));
}

// Whether what a node gives may be, or be a view of, what it is given.
bool may_pass_on(const Node& node) {
  const Operator* op = node.target().op();
  if (!op) return true;
  if (op->info().is_view || op->has(Traits::kView) || op->has(Traits::kMayAlias) || op->is_composite())
    return true;
  for (int16_t alias : op->info().result_aliases)
    if (alias >= 0) return true;
  return false;
}

using NodeSet = std::unordered_set<const Node*>;

// The nodes whose values, or views of them, may be among the results.
NodeSet leaving_nodes(const Graph& graph) {
  NodeSet leaving;
  for (Node* node = graph.back(); node; node = node->previous()) {
    bool passes_on = node->kind() == NodeKind::kOutput || (leaving.contains(node) && may_pass_on(*node));
    if (passes_on) leaving.insert(node->inputs().begin(), node->inputs().end());
  }
  return leaving;
}

// Target and arguments as text; equal for two nodes exactly if they do the same. Empty where there is none.
std::string key_of(const Node& node) {
  std::string key;
  append_target(key, node.target());
  for (const Value& arg : node.args()) {
    if (!has_exact_text(arg)) return {};
    append_value(key += '\x1f', arg, ValueStyle::kQuoted);
  }
  for (const auto& [name, value] : node.kwargs()) {
    if (!has_exact_text(value)) return {};
    append_value((key += '\x1f') += name + "=", value, ValueStyle::kQuoted);
  }
  return key;
}

}  // namespace

bool merge_common_subexpressions(GraphModule& module, FunctionRef<bool(const Node&)> is_kept) {
  Graph& graph = module.graph();
  std::vector<Node*> candidates;
  for (Node& node : graph) {
    bool is_call = node.kind() != NodeKind::kPlaceholder && node.kind() != NodeKind::kGetAttr &&
                   node.kind() != NodeKind::kOutput;
    if (!is_call) continue;
    if (!is_pure(node)) return false;
    if (is_repeatable(node) && !is_kept(node)) candidates.push_back(&node);
  }
  const NodeSet leaving = leaving_nodes(graph);
  std::unordered_map<std::string, Node*> first_seen;
  bool changed = false;
  for (Node* node : candidates) {
    // What leaves may be written to by whoever gets it, and must be nobody else's value: neither another
    // result nor what a gradient keeps.
    if (leaving.contains(node)) continue;
    // Its inputs are merged already: nodes come after what they use.
    std::string key = key_of(*node);
    if (key.empty()) continue;
    auto [entry, is_new] = first_seen.try_emplace(std::move(key), node);
    if (is_new) continue;
    node->replace_all_uses_with(*entry->second);
    graph.erase(*node);
    changed = true;
  }
  return changed;
}

// --- constants -------------------------------------------------------------------------------------------

namespace {

// Whether a number, a word or a type stands among the arguments.
bool has_constants(const Node& node) {
  bool has = false;
  auto look = [&](const Value& leaf) {
    has |= !leaf.is_none() && !leaf.is_tensor() && !node_in(leaf);
    return leaf;
  };
  for (const Value& arg : node.args()) map_leaves(arg, look);
  for (const auto& [name, value] : node.kwargs()) map_leaves(value, look);
  return has;
}

}  // namespace

bool pool_constants(GraphModule& module) {
  Graph& graph = module.graph();
  if (graph.pools_constants()) return false;
  for (const Node& node : graph) {
    if (node.kind() == NodeKind::kPlaceholder || !has_constants(node)) continue;
    graph.set_pools_constants(true);
    return true;
  }
  return false;
}

}  // namespace weft
