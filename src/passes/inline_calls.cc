#include "weft/passes/inline_calls.h"

namespace weft {
namespace {

// The graph that a node calls, and where it is.
struct Callee {
  std::string path;
  GraphModule module;
  ValueList inputs;
};

std::optional<GraphModule> graph_at(const GraphModule& module, const std::string& path) {
  std::optional<Value> found = module.try_find(path);
  return found ? graph_module_in(*found) : std::nullopt;
}

std::optional<Callee> callee_of(const GraphModule& module, const Node& node) {
  static const PythonFunction& call = python_function("weft.call");
  if (!node.kwargs().empty()) return std::nullopt;
  std::string path;
  ValueList inputs = node.args();
  if (node.kind() == NodeKind::kCallModule) {
    path = node.target().to_string();
  } else if (node.target().function() == &call && !inputs.empty()) {
    const Node* read = node_in(inputs[0]);
    if (!read || read->kind() != NodeKind::kGetAttr) return std::nullopt;
    path = read->target().to_string();
    inputs.erase(inputs.begin());
  } else {
    return std::nullopt;
  }
  std::optional<GraphModule> called = graph_at(module, path);
  if (!called || called->call_spec() || called->graph().placeholders().size() != inputs.size())
    return std::nullopt;
  return Callee{path, *called, std::move(inputs)};
}

// The modules around a node of the callee, as the caller names them.
ModuleStack modules_inside(const ModuleStack& around, const ModuleStack& inside, const std::string& path) {
  if (around.empty()) return inside;
  std::vector<ModuleScope> scopes(around.begin(), around.end());
  const std::string root = inside.empty() ? "" : inside[0].path;
  for (const ModuleScope& scope : inside) {
    ModuleScope own = scope;
    std::string rest = scope.path.starts_with(root) ? scope.path.substr(root.size()) : "." + scope.path;
    own.path = (around[0].path.empty() ? path : around[0].path + "." + path) + rest;
    scopes.push_back(std::move(own));
  }
  return scopes;
}

// A call, and the read of what it calls if nobody else does.
void erase_call(Graph& graph, Node& call) {
  Node* read = call.kind() == NodeKind::kCallModule ? nullptr : node_in(call.args()[0]);
  graph.erase(call);
  if (read && read->users().empty()) graph.erase(*read);
}

// Uses of the call become uses of what it gives. Where that is a tuple, whoever takes an item has the item.
void replace_uses(Node& call, const Value& result) {
  static const PythonFunction& getitem = python_function("operator.getitem");
  const std::vector<Node*> users = call.users().list();
  for (Node* user : users) {
    const bool takes_item = result.is_sequence() && user->target().function() == &getitem &&
                            user->args().size() == 2 && user->args()[1].kind() == Value::Kind::kInt;
    if (takes_item) {
      const ValueList& items = result.elements();
      int64_t index = user->args()[1].to_int();
      if (index < 0) index += static_cast<int64_t>(items.size());
      Node* item = index >= 0 && index < static_cast<int64_t>(items.size())
                       ? node_in(items[static_cast<size_t>(index)])
                       : nullptr;
      if (item) {
        user->replace_all_uses_with(*item);
        user->graph()->erase(*user);
        continue;
      }
    }
    auto map = [&](Node& node) { return &node == &call ? result : value_of(node); };
    ValueList args;
    for (const Value& value : user->args()) args.push_back(map_nodes(value, map));
    Kwargs kwargs;
    for (const auto& [name, value] : user->kwargs()) kwargs.emplace_back(name, map_nodes(value, map));
    user->set_args(std::move(args));
    user->set_kwargs(std::move(kwargs));
  }
}

}  // namespace

bool inline_calls(GraphModule& module) {
  return inline_calls(module, [](const Node&, Node&) {});
}

bool inline_calls(GraphModule& module, FunctionRef<void(const Node& call, Node& copy)> inlined) {
  Graph& graph = module.graph();
  bool changed = false;
  for (Node* node = graph.front(); node;) {
    std::optional<Callee> callee = callee_of(module, *node);
    if (!callee) {
      node = node->next();
      continue;
    }
    changed = true;
    Node* before = node->previous();
    Value result;
    {
      Graph::InsertScope here = graph.inserting_before(*node);
      result = graph.inline_graph(callee->module.graph(), callee->inputs);
    }
    const ModuleStack around = node->meta_or_null() ? node->meta().modules : ModuleStack();
    Node* first = before ? before->next() : graph.front();
    for (Node* copy = first; copy != node; copy = copy->next()) {
      if (copy->kind() == NodeKind::kGetAttr || copy->kind() == NodeKind::kCallModule)
        copy->set_target(callee->path + "." + copy->target().to_string());
      if (node->kind() == NodeKind::kCallModule)
        copy->meta().modules = modules_inside(around, copy->meta().modules, callee->path);
      inlined(*node, *copy);
    }
    replace_uses(*node, result);
    Node* next = first == node ? node->next() : first;  // what was called may call others
    erase_call(graph, *node);
    node = next;
  }
  return changed;
}

}  // namespace weft
