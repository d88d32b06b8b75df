#include "weft/export/unflatten.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "weft/base/error.h"

namespace weft {
namespace {

// The calls of modules around each node of a graph, without that of the root.
class CallStacks {
 public:
  explicit CallStacks(const Graph& graph) {
    std::vector<ModuleScope> before;
    for (const Node& node : graph) {
      if (node.kind() == NodeKind::kPlaceholder || node.kind() == NodeKind::kOutput) continue;
      std::vector<ModuleScope> stack;
      const NodeMeta* noted = node.meta_or_null();
      // What nobody noted a module for was put next to what it is about.
      if (!noted || noted->modules.empty()) stack = before;
      else
        for (const ModuleScope& scope : noted->modules)
          if (!scope.path.empty()) stack.push_back(scope);
      if (node.kind() != NodeKind::kGetAttr) before = stack;
      stacks_.emplace(&node, std::move(stack));
    }
  }
  // What the program writes at its end belongs to no module.
  void move_to_root(const Node& node) { stacks_[&node].clear(); }
  const std::vector<ModuleScope>& of(const Node& node) const { return stacks_.at(&node); }

 private:
  std::unordered_map<const Node*, std::vector<ModuleScope>> stacks_;
};

// Whether they do the same; names of nodes and arguments do not count.
bool are_alike(const Graph& a, const Graph& b) {
  if (a.size() != b.size()) return false;
  std::unordered_map<const Node*, Node*> twins;
  for (auto first = a.begin(), second = b.begin(); first != a.end(); ++first, ++second) {
    const bool is_input = first->kind() == NodeKind::kPlaceholder;
    if (first->kind() != second->kind() || !(is_input || first->target() == second->target())) return false;
    auto translated = [&](const Value& value) {
      return map_nodes(value, [&](Node& node) { return value_of(*twins.at(&node)); });
    };
    if (!is_input && translated(Value::list(first->args())) != Value::list(second->args())) return false;
    Kwargs kwargs = first->kwargs();
    for (auto& [name, value] : kwargs) value = translated(value);
    if (kwargs != second->kwargs()) return false;
    twins.emplace(&*first, &*second);
  }
  return true;
}

class Unflatten {
 public:
  explicit Unflatten(const ExportedProgram& program)
      : program_(program), flat_(program.module()), stacks_(flat_.graph()) {
    for (const nn::NamedTensors* tensors : {&program.state_dict(), &program.constants()})
      for (const auto& [name, tensor] : *tensors) names_[tensor.impl()->serial()].push_back(name);
  }

  GraphModule run() {
    std::vector<Node*> nodes;
    for (Node& node : flat_.graph()) {
      if (is_write_back(node)) stacks_.move_to_root(node);
      nodes.push_back(&node);
      if (node.kind() == NodeKind::kGetAttr && flat_.find(node.target().to_string()).is_tensor())
        tensor_reads_.emplace(&node, tensor_reads_.size());
    }
    std::erase_if(nodes, [](const Node* node) { return node->kind() == NodeKind::kGetAttr; });
    Frame frame{.path = "", .depth = 0};
    for (Node* node : nodes) frame.members.insert(node);
    write(frame, nodes);
    GraphModule code(nn::Module::over(flat_.state()), frame.functions, std::move(frame.graph),
                     "UnflattenedModule");
    if (flat_.call_spec()) code.set_call_spec(*flat_.call_spec());
    return GraphModule::over(nn::Module::over(flat_.state()), code);
  }

 private:
  // A call of a module: what is written of its graph.
  struct Frame {
    std::string path;
    size_t depth;  // how many calls are around it, itself included
    Graph graph = {};
    GraphModule::Attributes functions = {};              // that the graph names and no module has
    std::unordered_map<const Node*, Node*> copies = {};  // of nodes of the flat graph
    std::unordered_set<const Node*> members = {};
    std::vector<Node*> operands = {};  // nodes of the flat graph that it takes
    Node* last_placeholder = nullptr;
  };

  // Of a functional program, in which nothing else writes: the new value of a buffer or an argument.
  bool is_write_back(const Node& node) const {
    const Operator* op = node.target().op();
    if (program_.is_training_dialect() || !op || !op->info().is_mutable) return false;
    const Node* target = node_in(node.args().at(0));
    return target && (target->kind() == NodeKind::kPlaceholder || target->kind() == NodeKind::kGetAttr);
  }

  // Tensors of the module are read before everything else, in the order in which the program has them.
  void read_attributes(Frame& frame, std::span<Node* const> nodes) {
    std::vector<std::pair<size_t, Node*>> reads;
    for (Node* node : nodes) {
      if (node->kind() != NodeKind::kOutput && stacks_.of(*node).size() > frame.depth) continue;
      for (Node* input : node->inputs())
        if (auto read = tensor_reads_.find(input); read != tensor_reads_.end())
          reads.emplace_back(read->second, input);
    }
    std::ranges::sort(reads);
    for (const auto& [position, read] : reads) value_in(frame, *read);
  }

  void write(Frame& frame, std::span<Node* const> nodes) {
    size_t first = 0;
    for (; first < nodes.size() && nodes[first]->kind() == NodeKind::kPlaceholder; ++first)
      copy(frame, *nodes[first]);
    nodes = nodes.subspan(first);
    read_attributes(frame, nodes);
    for (size_t i = 0; i < nodes.size();) {
      Node& node = *nodes[i];
      if (node.kind() == NodeKind::kOutput || stacks_.of(node).size() <= frame.depth) {
        copy(frame, node);
        ++i;
        continue;
      }
      const ModuleScope& scope = stacks_.of(node)[frame.depth];
      size_t end = i + 1;
      for (; end < nodes.size() && nodes[end]->kind() != NodeKind::kOutput; ++end) {
        const auto& other = stacks_.of(*nodes[end]);
        if (other.size() <= frame.depth || !(other[frame.depth] == scope)) break;
      }
      call(frame, scope, nodes.subspan(i, end - i));
      i = end;
    }
  }

  void copy(Frame& frame, Node& node) {
    for (Node* input : node.inputs()) value_in(frame, *input);
    Node& made = frame.graph.node_copy(node, [&](Node& input) { return value_of(*frame.copies.at(&input)); });
    // Without an offset of its own a random call draws what comes next, and calls come in their order.
    if (made.meta_or_null()) made.meta().random_offset.reset();
    frame.copies[&node] = &made;
    if (made.kind() == NodeKind::kPlaceholder) frame.last_placeholder = &made;
  }

  // The node of the frame that has the value; a new placeholder where it comes from outside.
  Node& value_in(Frame& frame, Node& node) {
    if (auto known = frame.copies.find(&node); known != frame.copies.end()) return *known->second;
    if (node.kind() == NodeKind::kGetAttr)
      if (Node* read = attribute_in(frame, node)) return *(frame.copies[&node] = read);
    std::optional<Graph::InsertScope> scope;
    if (Node* before = frame.last_placeholder ? frame.last_placeholder->next() : frame.graph.front())
      scope.emplace(frame.graph, before);
    Node& placeholder = frame.graph.placeholder(node.name());
    if (const NodeMeta* noted = node.meta_or_null()) placeholder.meta().value = noted->value;
    frame.operands.push_back(&node);
    frame.last_placeholder = &placeholder;
    return *(frame.copies[&node] = &placeholder);
  }
  // A tensor that the module has under some name, or a function.
  Node* attribute_in(Frame& frame, const Node& node) {
    const std::string path = node.target().to_string();
    const Value value = flat_.find(path);
    if (!value.is_tensor()) {
      frame.functions.emplace_back(path, value);
      return &frame.graph.get_attr(path);
    }
    const std::string prefix = frame.path.empty() ? "" : frame.path + ".";
    std::vector<std::string> names = {path};
    if (auto known = names_.find(value.tensor_ref().impl()->serial()); known != names_.end())
      names.insert(names.end(), known->second.begin(), known->second.end());
    for (const std::string& name : names)
      if (name.starts_with(prefix)) {
        Node& read = frame.graph.get_attr(name.substr(prefix.size()));
        if (const NodeMeta* noted = node.meta_or_null()) read.meta() = *noted;
        return &read;
      }
    return nullptr;
  }

  void call(Frame& outer, const ModuleScope& scope, std::span<Node* const> nodes) {
    Frame frame{.path = scope.path, .depth = outer.depth + 1};
    frame.members.insert(nodes.begin(), nodes.end());
    write(frame, nodes);
    std::vector<Node*> results;
    for (Node* node : nodes) {
      const std::vector<Node*> users = node->users().list();
      if (std::ranges::any_of(users, [&](const Node* user) { return !frame.members.contains(user); }))
        results.push_back(node);
    }
    ValueList given;
    for (Node* result : results) given.push_back(value_of(value_in(frame, *result)));
    frame.graph.output(given.size() == 1 ? given[0] : Value::tuple(given));
    frame.graph.set_random_advance(0);
    const std::string child = child_for(outer, frame, scope);
    ValueList args;
    for (Node* operand : frame.operands) args.push_back(value_of(value_in(outer, *operand)));
    Node& made = outer.graph.call_module(child, std::move(args));
    made.meta().modules = ModuleStack(std::vector(
        stacks_.of(*nodes[0]).begin(), stacks_.of(*nodes[0]).begin() + static_cast<ptrdiff_t>(frame.depth)));
    take_results(outer, made, results);
  }
  void take_results(Frame& outer, Node& made, const std::vector<Node*>& results) {
    for (size_t i = 0; i < results.size(); ++i) {
      Node* item = results.size() == 1 ? &made
                                       : &outer.graph.call_function(
                                             "operator.getitem", {value_of(made), static_cast<int64_t>(i)});
      if (const NodeMeta* noted = results[i]->meta_or_null()) item->meta().value = noted->value;
      outer.copies[results[i]] = item;
    }
  }

  // Gives the module that is called its graph; the name that the outer module has for it.
  std::string child_for(const Frame& outer, Frame& frame, const ModuleScope& scope) {
    const std::string prefix = outer.path.empty() ? "" : outer.path + ".";
    std::string name = scope.path;
    if (name.starts_with(prefix)) name = name.substr(prefix.size());
    else std::ranges::replace(name, '.', '_');  // a module of another part of the tree
    const nn::Module owner = nn::Module::over(state_at(scope.path));
    const GraphModule code(owner, frame.functions, std::move(frame.graph), scope.class_name);
    for (int number = 0;; ++number) {
      const std::string own = number == 0 ? name : fmt::format("{}@{}", name, number);
      const std::string path = prefix + own;
      auto [known, is_new] = called_.try_emplace(path);
      if (!is_new && !are_alike(known->second.graph(), code.graph())) continue;
      if (is_new) {
        // A further graph has the tensors, too, but is no further owner of them.
        known->second = number == 0 && path == scope.path ? GraphModule::over(owner, code) : code;
        nn::ModuleState::Child& child = child_at(path);
        child.state = known->second.state();
        child.callable = known->second.callable();
        child.state->class_name = scope.class_name;
      }
      return own;
    }
  }

  nn::ModuleState::Child& child_at(std::string_view path) {
    nn::ModuleState* state = flat_.state().get();
    for (;;) {
      const size_t dot = path.find('.');
      const std::string_view name = path.substr(0, dot);
      auto found = std::ranges::find(state->children, name, &nn::ModuleState::Child::name);
      if (found == state->children.end()) {
        auto made = std::make_shared<nn::ModuleState>();
        made->class_name = "Module";
        state->children.push_back({std::string(name), std::move(made), nullptr});
        found = state->children.end() - 1;
      }
      if (dot == path.npos) return *found;
      state = found->state.get();
      path = path.substr(dot + 1);
    }
  }
  std::shared_ptr<nn::ModuleState> state_at(const std::string& path) { return child_at(path).state; }

  const ExportedProgram& program_;
  GraphModule flat_;
  CallStacks stacks_;
  std::unordered_map<uint64_t, std::vector<std::string>> names_;  // of each tensor, by its serial number
  std::unordered_map<const Node*, size_t> tensor_reads_;          // nodes that read tensors, in their order
  std::unordered_map<std::string, GraphModule> called_;           // by path
};

}  // namespace

GraphModule unflatten(const ExportedProgram& program) { return Unflatten(program).run(); }

}  // namespace weft
