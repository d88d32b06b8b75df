#include "weft/passes/verify.h"

#include <unordered_set>

#include "weft/base/error.h"
#include "weft/ops/overloads.h"

namespace weft {
namespace {

// Arguments by position; those that are nodes fit anything.
void check_arguments(const Node& node) {
  const Operator* op = node.target().op();
  if (!op) return;
  std::string why;
  std::optional<ValueList> placed = place_arguments(*op, node.args(), node.kwargs(), &why);
  require(placed.has_value(), "verify: '{}' does not fit its operator: {}; the schema is {}", node.name(),
          why, op->schema_text());
  const std::vector<Argument>& arguments = op->schema().arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    bool has_node = false;
    for_each_node((*placed)[i], [&](Node&) { has_node = true; });
    bool left_out =
        (*placed)[i].is_none() && (arguments[i].type.is_optional() || arguments[i].default_value.has_value());
    require(has_node || left_out || accepts(arguments[i].type, (*placed)[i]),
            "verify: '{}': argument '{}' must be {}, not {}", node.name(), arguments[i].name,
            arguments[i].type.to_string(), (*placed)[i].to_string());
  }
}

void check_captured(const Graph& graph) {
  require(graph.output_node() != nullptr, "verify: the graph has no output");
  bool past_inputs = false;
  for (const Node& node : graph) {
    bool is_input = node.kind() == NodeKind::kPlaceholder;
    require(!(is_input && past_inputs), "verify: placeholder '{}' comes after other nodes", node.name());
    past_inputs |= !is_input;
  }
}

// Whether an operator that writes only gives its target the values, sizes or memory of another tensor.
bool hands_over(const Operator& op) {
  return op.has(Traits::kCrossesDevices | Traits::kGeometry) || op.functional().info().is_view;
}

// Writes of results into inputs, which end a functional graph, are all that may write.
void check_functional(const Graph& graph) {
  const Node* writer = nullptr;
  std::unordered_set<const Node*> inputs;  // and what writes to them give, which is them again
  for (const Node& node : graph) {
    const Operator* op = node.target().op();
    if (node.kind() == NodeKind::kOutput) break;
    require(!node.target().is_missing(),
            "verify: '{}' calls {}, which weft does not have, and which may write: {}; define it first",
            node.name(), node.target().operator_name(), node.line());
    if (node.kind() == NodeKind::kPlaceholder) inputs.insert(&node);
    // A storage that is emptied, or filled again, changes as much as one that is written to.
    const bool writes =
        node.writes_in_place() || (op && op->has(Traits::kGeometry) && op->has(Traits::kEffectful));
    const Node* target = writes && !node.args().empty() ? node_in(node.args()[0]) : nullptr;
    const bool is_copy_back = target && inputs.contains(target) && op && hands_over(*op);
    require(!writes || is_copy_back, "verify: '{}' writes in place, which a functional graph must not: {}",
            node.name(), node.line());
    if (is_copy_back) {
      writer = &node;
      inputs.insert(&node);
    } else {
      require(!writer || node.kind() == NodeKind::kGetAttr || !node.is_impure(),
              "verify: '{}' comes after '{}', which writes to an input", node.name(),
              writer ? writer->name() : "");
    }
  }
}

}  // namespace

void verify(const Graph& graph, Stage stage) {
  graph.lint();
  for (const Node& node : graph) check_arguments(node);
  if (stage == Stage::kAny) return;
  check_captured(graph);
  if (stage == Stage::kFunctional) check_functional(graph);
}

void verify(const GraphModule& module, Stage stage) {
  verify(module.graph(), stage);
  for (const Node& node : module.graph()) {
    if (node.kind() != NodeKind::kGetAttr && node.kind() != NodeKind::kCallModule) continue;
    if (std::optional<GraphModule> inner = graph_module_in(module.find(node.target().to_string())))
      verify(*inner, stage);
  }
}

}  // namespace weft
