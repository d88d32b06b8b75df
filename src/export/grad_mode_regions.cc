#include "export/grad_mode_regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "weft/base/error.h"

namespace weft {
namespace {

class GradModeRegions {
 public:
  GradModeRegions(const GraphModule& module, bool is_enabled)
      : module_(module), graph_(module.graph()), is_enabled_(is_enabled) {}

  void run() {
    find_regions();
    for (const Region& region : regions_)
      if (region.is_enabled != is_enabled_ && !region.nodes.empty()) fold(region);
    for (Node* marker : markers_) graph_.erase(*marker);
    module_.delete_unused_attributes();
  }

 private:
  struct Region {
    bool is_enabled;
    size_t number;  // of the switch that it begins with, from 1; 0 before the first
    std::vector<Node*> nodes = {};
  };

  void find_regions() {
    static const PythonFunction& set_grad_enabled = python_function("torch._C._set_grad_enabled");
    regions_.push_back({is_enabled_, 0});
    for (Node& node : graph_) {
      if (node.kind() == NodeKind::kPlaceholder || node.kind() == NodeKind::kOutput) continue;
      if (node.target().function() == &set_grad_enabled) {
        markers_.push_back(&node);
        regions_.push_back({node.args().at(0).to_bool(), markers_.size()});
        continue;
      }
      note_plain_name(node);
      if (const std::optional<GraphModule> inner = function_read_by(node))
        GradModeRegions(*inner, regions_.back().is_enabled).run();
      else regions_.back().nodes.push_back(&node);
    }
  }
  std::optional<GraphModule> function_read_by(const Node& node) const {
    if (node.kind() != NodeKind::kGetAttr) return std::nullopt;
    const std::optional<Value> value = module_.try_find(node.target().to_string());
    return value ? graph_module_in(*value) : std::nullopt;
  }
  // Nodes of regions are called as if the program's inputs had no names, which they need not avoid.
  void note_plain_name(const Node& node) {
    std::string_view name = node.name();
    const size_t digits = name.find_last_not_of("0123456789");
    if (digits != name.npos && digits + 1 < name.size() && name[digits] == '_' && digits > 0)
      name = name.substr(0, digits);
    plain_names_.emplace(&node, names_.make(name));
  }

  void fold(const Region& region) {
    members_ = {region.nodes.begin(), region.nodes.end()};
    copies_.clear();
    operands_.clear();
    Graph body;
    GraphModule::Attributes functions;
    std::vector<Node*> results;
    for (Node* node : region.nodes) {
      // Placeholders come first, in the order in which they are used.
      for (Node* input : node->inputs()) bring_in(*input, body, functions);
      Node& copy = body.node_copy(*node, [&](Node& input) { return value_of(*copies_.at(&input)); });
      copy.rename(plain_names_.at(node));
      copies_[node] = &copy;
      const std::vector<Node*> users = node->users().list();
      if (std::ranges::any_of(users, [&](const Node* user) { return !members_.contains(user); }))
        results.push_back(node);
    }
    ValueList given;
    for (Node* result : results) given.push_back(value_of(*copies_.at(result)));
    // One result is itself, several are a tuple.
    body.output(given.size() == 1 ? given[0] : Value::tuple(std::move(given)));
    call(region, results, GraphModule(functions, std::move(body)));
    for (size_t i = region.nodes.size(); i-- > 0;) graph_.erase(*region.nodes[i]);
  }
  void bring_in(Node& input, Graph& body, GraphModule::Attributes& functions) {
    if (copies_.contains(&input)) return;
    if (function_read_by(input)) {
      const std::string path = input.target().to_string();
      functions.emplace_back(path, module_.find(path));
      copies_[&input] = &body.get_attr(path);
      return;
    }
    Node* before = body.front();
    while (before && before->kind() == NodeKind::kPlaceholder) before = before->next();
    std::optional<Graph::InsertScope> scope;
    if (before) scope.emplace(body, before);
    Node& placeholder = body.placeholder(input.name());
    if (const NodeMeta* noted = input.meta_or_null()) placeholder.meta() = *noted;
    operands_.push_back(value_of(input));
    copies_[&input] = &placeholder;
  }

  void call(const Region& region, const std::vector<Node*>& results, const GraphModule& body) {
    const std::string path = fmt::format("submod_{}", region.number);
    module_.set_attribute(path, Value(Ref<ValueObject>(body.callable())));
    const auto scope = graph_.inserting_before(*region.nodes.front());
    Node& function = graph_.get_attr(path);
    ValueList args = {region.is_enabled, value_of(function)};
    args.insert(args.end(), operands_.begin(), operands_.end());
    Node& call = graph_.call_function("higher_order::wrap_with_set_grad_enabled", std::move(args));
    if (results.size() == 1) {
      if (const NodeMeta* noted = results[0]->meta_or_null()) call.meta().value = noted->value;
      results[0]->replace_all_uses_with(call);
    }
    ValueList values;
    for (size_t i = 0; results.size() != 1 && i < results.size(); ++i) {
      Node& item = graph_.call_function("operator.getitem", {value_of(call), static_cast<int64_t>(i)});
      if (const NodeMeta* noted = results[i]->meta_or_null()) item.meta() = *noted;
      values.push_back(item.meta().value);
      results[i]->replace_all_uses_with(item);
    }
    if (results.size() != 1) call.meta().value = Value::tuple(std::move(values));
    if (const NodeMeta* noted = region.nodes.front()->meta_or_null())
      for (Node* node : {&function, &call}) {
        node->meta().modules = noted->modules;
        node->meta().trace = noted->trace;
        node->meta().source = noted->source;
      }
  }

  const GraphModule& module_;
  Graph& graph_;
  bool is_enabled_;
  std::vector<Region> regions_;
  std::vector<Node*> markers_;
  Names names_;
  std::unordered_map<const Node*, std::string> plain_names_;
  // Of the region that is folded.
  std::unordered_set<const Node*> members_;
  std::unordered_map<const Node*, Node*> copies_;
  ValueList operands_;
};

}  // namespace

void fold_grad_mode_regions(const GraphModule& module, bool is_enabled) {
  GradModeRegions(module, is_enabled).run();
}

}  // namespace weft
