#include "export/branch_operands.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "weft/base/error.h"
#include "weft/dispatch/op_def.h"

namespace weft {
namespace {

using NodeSet = std::unordered_set<const Node*>;

class BranchArranger {
 public:
  BranchArranger(const GraphModule& module, const NodeSet& state) : module_(module), state_(state) {}

  void run() {
    for (Node& node : module_.graph()) {
      const Operator* op = node.target().op();
      const HigherOrder* rules = op ? op->def().higher_order : nullptr;
      if (rules && rules->branches && !node.args().empty() && node.args().back().is_sequence()) arrange(node);
    }
  }

 private:
  // All branches take the leaves of all lists among the arguments; those of the last list in any order.
  void arrange(Node& call) {
    ValueList args = call.args();
    const ValueList last = args.back().elements();
    std::vector<size_t> order(last.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) {
      const Node *first = state_node(last[a]), *second = state_node(last[b]);
      if (!first || !second) return first && !second;
      return first->name() < second->name();
    });
    ValueList arranged;
    for (const size_t i : order) arranged.push_back(last[i]);
    args.back() =
        args.back().is_tuple() ? Value::tuple(std::move(arranged)) : Value::list(std::move(arranged));
    call.set_args(args);
    ValueList operands;
    for (const Value& arg : args)
      if (arg.is_sequence()) operands.insert(operands.end(), arg.elements().begin(), arg.elements().end());
    for (const Value& arg : args)
      if (const Node* node = node_in(arg); node && node->kind() == NodeKind::kGetAttr)
        if (std::optional<GraphModule> branch = graph_module_in(module_.find(node->target().to_string())))
          rewrite(*branch, operands, order);
  }
  const Node* state_node(const Value& operand) const {
    const Node* node = node_in(operand);
    return node && state_.contains(node) ? node : nullptr;
  }

  void rewrite(const GraphModule& branch, const ValueList& operands, const std::vector<size_t>& order) const {
    std::vector<Node*> placeholders = branch.graph().placeholders();
    if (placeholders.size() != operands.size()) return;  // a function of another form: it stays as it is
    const std::vector<Node*> before = placeholders;
    const size_t fixed = operands.size() - order.size();
    for (size_t i = 0; i < order.size(); ++i) placeholders[fixed + i] = before[fixed + order[i]];
    Graph graph;
    std::unordered_map<const Node*, Node*> copies;
    NodeSet state;
    for (size_t i = 0; i < placeholders.size(); ++i) {
      const Node* operand = node_in(operands[i]);
      Node& copy = graph.placeholder(operand ? operand->name() : placeholders[i]->name());
      if (const NodeMeta* noted = placeholders[i]->meta_or_null()) copy.meta() = *noted;
      copies.emplace(placeholders[i], &copy);
      if (state_node(operands[i])) state.insert(&copy);
    }
    for (const Node& node : branch.graph())
      if (node.kind() != NodeKind::kPlaceholder)
        copies[&node] = &graph.node_copy(node, [&](Node& input) { return value_of(*copies.at(&input)); });
    graph.set_random_advance(branch.graph().random_advance());
    branch.set_graph(std::move(graph));
    BranchArranger(branch, state).run();
  }

  const GraphModule& module_;
  const NodeSet& state_;
};

}  // namespace

void arrange_branches(const GraphModule& module, size_t num_state) {
  const std::vector<Node*> placeholders = module.graph().placeholders();
  const NodeSet state(placeholders.begin(), placeholders.begin() + static_cast<ptrdiff_t>(num_state));
  BranchArranger(module, state).run();
}

}  // namespace weft
