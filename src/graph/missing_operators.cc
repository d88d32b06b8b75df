#include "weft/graph/missing_operators.h"

#include <unordered_map>
#include <unordered_set>

#include "weft/base/error.h"
#include "weft/core/value_walk.h"
#include "weft/ops/operator_value.h"

namespace weft {
namespace {

class MissingOperators {
 public:
  // `attribute` gives what a path leads to.
  template <typename Attribute>
  void add(const Graph& graph, const Attribute& attribute) {
    for (Node& node : graph) {
      if (node.target().is_missing()) note(node.target().operator_name(), node);
      for (const Value& arg : node.args()) add_values(arg, node);
      for (const auto& [name, arg] : node.kwargs()) add_values(arg, node);
      if (node.kind() != NodeKind::kGetAttr && node.kind() != NodeKind::kCallModule) continue;
      const std::optional<Value> value = attribute(node.target().to_string());
      if (std::optional<GraphModule> inner = value ? graph_module_in(*value) : std::nullopt) add(*inner);
    }
  }
  void add(const GraphModule& module) {
    // A graph may be called many times.
    if (seen_.insert(&module.graph()).second)
      add(module.graph(), [&](const std::string& path) { return module.try_find(path); });
  }
  std::vector<MissingOperator> take() { return std::move(found_); }

 private:
  void add_values(const Value& value, Node& node) {
    for_each_leaf(value, [&](const Value& leaf) {
      if (holds_operator(leaf) && !operator_in(leaf)) note(operator_name_in(leaf), node);
    });
  }

  void note(const std::string& name, Node& node) {
    auto [entry, is_new] = indices_.try_emplace(name, found_.size());
    if (is_new) found_.push_back({name});
    std::vector<Ref<Node>>& nodes = found_[entry->second].nodes;
    if (nodes.empty() || nodes.back().get() != &node) nodes.emplace_back(&node);
  }

  std::vector<MissingOperator> found_;
  std::unordered_map<std::string, size_t> indices_;
  std::unordered_set<const Graph*> seen_;
};

std::string listed(const std::vector<MissingOperator>& missing) {
  std::string text;
  for (const MissingOperator& op : missing) {
    std::string nodes;
    constexpr size_t kMost = 3;
    for (size_t i = 0; i < std::min(op.nodes.size(), kMost); ++i)
      nodes += (i ? ", " : "") + op.nodes[i]->name();
    if (op.nodes.size() > kMost) nodes += fmt::format(" and {} more", op.nodes.size() - kMost);
    text += fmt::format("\n  {} (node {})", op.name, nodes);
  }
  return text;
}

}  // namespace

std::vector<MissingOperator> missing_operators(const Graph& graph) {
  MissingOperators missing;
  missing.add(graph, [&](const std::string& path) { return graph.attribute(path); });
  return missing.take();
}

std::vector<MissingOperator> missing_operators(const GraphModule& module) {
  MissingOperators missing;
  missing.add(module);
  return missing.take();
}

void require_operators(const Graph& graph, const nn::Module& owner) {
  MissingOperators operators;
  operators.add(graph, [&](const std::string& path) { return owner.try_find(path); });
  const std::vector<MissingOperator> missing = operators.take();
  if (missing.empty()) return;
  unsupported(
      "the graph cannot run: it calls {} that weft does not have:{}\nDefine {} before the call, as in "
      "define_operator(\"{}(Tensor x) -> Tensor\", {{.kernel = ...}}) of weft/ops/define.h, or replace the "
      "nodes",
      missing.size() == 1 ? "an operator" : fmt::format("{} operators", missing.size()), listed(missing),
      missing.size() == 1 ? "it" : "them", missing[0].name);
}

}  // namespace weft
