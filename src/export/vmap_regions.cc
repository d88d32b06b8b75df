#include "export/vmap_regions.h"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "weft/base/error.h"

namespace weft {
namespace {

struct Functions {
  const PythonFunction& increment = python_function("torch._functorch.predispatch._vmap_increment_nesting");
  const PythonFunction& decrement = python_function("torch._functorch.predispatch._vmap_decrement_nesting");
  const PythonFunction& add = python_function("torch._functorch.predispatch._add_batch_dim");
  const PythonFunction& remove = python_function("torch._functorch.predispatch._remove_batch_dim");
  const PythonFunction& load = python_function("torch._functorch.predispatch.lazy_load_decompositions");
};

class Region {
 public:
  Region(Graph& graph, const Functions& functions, Node& begin, Node& end)
      : graph_(graph), functions_(functions), begin_(begin), end_(end) {}

  GraphModule fold(const std::string& path) {
    std::vector<Node*> inside;
    for (Node* node = begin_.next(); node != &end_; node = node->next()) inside.push_back(node);
    for (Node* node : inside) members_.insert(node);
    for (Node* node : inside) add(*node);
    body_.output(Value::tuple(results_));
    Node& call = make_call(path);
    const auto scope = graph_.inserting_after(call);
    for (size_t i = 0; i < removals_.size(); ++i) {
      Node& item = graph_.call_function("operator.getitem", {value_of(call), i});
      if (const NodeMeta* meta = removals_[i]->meta_or_null()) item.meta().value = meta->value;
      removals_[i]->replace_all_uses_with(item);
    }
    end_.set_args({});
    graph_.erase(end_);
    for (size_t i = inside.size(); i-- > 0;)
      if (members_.contains(inside[i])) graph_.erase(*inside[i]);
    graph_.erase(begin_);
    return GraphModule(std::move(body_), "VmapBody");
  }

 private:
  void add(Node& node) {
    const PythonFunction* const function = node.target().function();
    if (node.kind() == NodeKind::kGetAttr || function == &functions_.load) {
      // Its value is not batched: the caller reads it.
      node.move_before(begin_);
      members_.erase(&node);
      return;
    }
    if (function == &functions_.add) {
      copies_[&node] = &placeholder(node.args().at(0), node.args().at(1), node.name());
    } else if (function == &functions_.remove) {
      results_.push_back(value_of(inner(*node_in(node.args().at(0)))));
      out_dims_.push_back(node.args().at(3));
      removals_.push_back(&node);
    } else {
      copies_[&node] = &body_.node_copy(node, [&](Node& input) { return value_of(inner(input)); });
    }
  }
  Node& placeholder(const Value& operand, const Value& dim, std::string_view name) {
    operands_.push_back(operand);
    in_dims_.push_back(dim);
    return body_.placeholder(name);
  }
  Node& inner(Node& node) {
    auto found = copies_.find(&node);
    if (found != copies_.end()) return *found->second;
    require(!members_.contains(&node), "vmap: '{}' is used within its region after it left it", node.name());
    return *(copies_[&node] = &placeholder(value_of(node), Value(), node.name()));
  }
  Node& make_call(const std::string& path) {
    const auto scope = graph_.inserting_after(end_);
    Node& body = graph_.get_attr(path);
    ValueList args = {value_of(body), Value::list(in_dims_), Value::list(out_dims_), begin_.args().at(1)};
    args.insert(args.end(), operands_.begin(), operands_.end());
    Node& call = graph_.call_function("weft.vmap", std::move(args));
    return call;
  }

  Graph& graph_;
  const Functions& functions_;
  Node &begin_, &end_;
  Graph body_;
  std::unordered_set<Node*> members_;
  std::unordered_map<Node*, Node*> copies_;
  ValueList operands_, in_dims_, out_dims_, results_;
  std::vector<Node*> removals_;
};

}  // namespace

std::vector<std::pair<std::string, GraphModule>> fold_vmap_regions(Graph& graph) {
  const Functions functions;
  std::vector<std::pair<std::string, GraphModule>> bodies;
  std::vector<Node*> open, loads;
  // Inner regions end first, and are single calls when the outer one is folded.
  for (Node* node = graph.front(); node;) {
    Node* const next = node->next();
    const PythonFunction* const function = node->target().function();
    if (function == &functions.increment) open.push_back(node);
    if (function == &functions.load) loads.push_back(node);
    if (function == &functions.decrement) {
      require(!open.empty(), "vmap: '{}' ends a level that was not begun", node->name());
      const std::string path = fmt::format("vmap_body_{}", bodies.size());
      bodies.emplace_back(path, Region(graph, functions, *open.back(), *node).fold(path));
      open.pop_back();
    }
    node = next;
  }
  require(open.empty(), "vmap: a level that '{}' begins has no end", open.empty() ? "" : open.back()->name());
  for (Node* load : loads)
    if (load->users().empty()) graph.erase(*load);
  return bodies;
}

}  // namespace weft
