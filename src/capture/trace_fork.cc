// Forked functions in a trace. What one does is recorded like anything else; then its nodes are taken out of
// the graph, into one of their own.
#include <algorithm>

#include "capture/trace_recorder.h"
#include "weft/base/error.h"
#include "weft/capture/fork.h"

namespace weft {

Ref<FutureObject> detail::fork_values(FunctionRef<Value()> f) {
  TraceRecorder* recorder = TraceRecorder::current();
  return recorder ? recorder->fork(f) : make_ref<FutureObject>(f);
}

Value detail::wait_values(const Ref<FutureObject>& future) {
  TraceRecorder* recorder = TraceRecorder::current();
  return recorder ? recorder->wait(*future) : future->wait();
}

namespace {

// The nodes behind `last`; all where it is null.
std::vector<Node*> nodes_after(const Graph& graph, const Node* last) {
  std::vector<Node*> nodes;
  for (Node* node = last ? last->next() : graph.front(); node; node = node->next()) nodes.push_back(node);
  return nodes;
}

// Nodes of one graph as a graph of their own: a function of what they use of the nodes that stay.
struct Excerpt {
  Graph graph;
  ValueList operands;  // the nodes that stay, in the order of their first use
};

Excerpt excerpt_of(const std::vector<Node*>& nodes, const Value& result) {
  Excerpt excerpt;
  std::unordered_map<const Node*, Node*> inside;
  for (const Node* node : nodes) inside.emplace(node, nullptr);
  auto add_operand = [&](Node& node) {
    auto [known, is_new] = inside.try_emplace(&node, nullptr);
    if (!is_new) return;
    known->second = &excerpt.graph.create(NodeKind::kPlaceholder, node.name(), {}, {}, node.name());
    if (const NodeMeta* meta = node.meta_or_null()) known->second->meta().value = meta->value;
    excerpt.operands.push_back(value_of(node));
  };
  for (Node* node : nodes)
    for (Node* input : node->inputs()) add_operand(*input);
  for_each_node(result, add_operand);
  auto copied = [&](Node& node) { return value_of(*inside.at(&node)); };
  for (Node* node : nodes) inside[node] = &excerpt.graph.node_copy(*node, copied);
  excerpt.graph.output(map_nodes(result, copied));
  return excerpt;
}

}  // namespace

Ref<FutureObject> TraceRecorder::fork(FunctionRef<Value()> f) {
  if (!is_listening() || layer_state().level_depth > 0) return make_ref<FutureObject>(f);
  random().lose();  // its nodes go to a graph of their own
  const Node* last = graph().back();
  Nodes known = nodes();
  auto known_sizes = sizes_of_;
  auto known_functions = functions_;
  Value result;
  bool is_complete = false;
  auto future = make_ref<FutureObject>([&] {
    Value given = f();
    result = as_nodes(given);
    is_complete = true;
    return given;
  });
  // What a function wrote before it failed is written, here as in the program.
  std::vector<Node*> taken = nodes_after(graph(), last);
  if (!is_complete &&
      std::any_of(taken.begin(), taken.end(), [](const Node* node) { return node->is_impure(); }))
    return future;
  // What the program owns is read outside: whoever replaces it there must find it. Graphs go with their
  // calls.
  std::unordered_set<const Node*> read_outside;
  std::erase_if(taken, [&](const Node* node) {
    bool stays = node->kind() == NodeKind::kGetAttr && !attribute(node->target().to_string()).is_object();
    if (stays) read_outside.insert(node);
    return stays;
  });
  for (const auto& [serial, node] : nodes()) {
    if (read_outside.contains(node)) known[serial] = node;
    else if (!known.contains(serial)) left_behind_.insert(serial);
  }
  Excerpt excerpt;
  GraphModule::Attributes graphs;
  if (is_complete) excerpt = excerpt_of(taken, result);
  for (const Node* node : taken)
    if (node->kind() == NodeKind::kGetAttr)
      graphs.emplace_back(node->target().to_string(), attribute(node->target().to_string()));
  forget({taken.begin(), taken.end()}, std::move(known));
  sizes_of_ = std::move(known_sizes);
  functions_ = std::move(known_functions);
  for (auto& [other, node] : forks_)
    if (std::find(taken.begin(), taken.end(), node) != taken.end()) node = nullptr;
  for (size_t i = taken.size(); i-- > 0;) {
    traces_.erase(taken[i]);
    graph().erase(*taken[i]);
  }
  if (!is_complete) return future;

  GraphModule body(graphs, std::move(excerpt.graph), "forked_function");
  ValueList call = {value_of(new_attribute("fork_body", Value(Ref<ValueObject>(body.callable())), "_"))};
  call.insert(call.end(), excerpt.operands.begin(), excerpt.operands.end());
  Node& node = graph().call_function("weft.fork", std::move(call));
  annotate(node, future->wait());
  forks_.emplace_back(future, &node);
  return future;
}

Value TraceRecorder::wait(const FutureObject& future) {
  Value result = future.wait();
  auto known = std::find_if(forks_.begin(), forks_.end(),
                            [&](const auto& entry) { return entry.first.get() == &future; });
  if (known == forks_.end() || !is_listening()) return result;
  require(known->second != nullptr,
          "wait: the future was made inside of another forked function, and a trace cannot follow it out of "
          "there; wait for it inside, and return what it gives");
  define(graph().call_function("weft.wait", {value_of(*known->second)}), result);
  return result;
}

}  // namespace weft
