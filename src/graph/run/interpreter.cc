#include "weft/graph/interpreter.h"

#include "dispatch/rule_calls.h"
#include "graph/operator_call.h"
#include "graph/run/asserted_values.h"
#include "graph/run/graph_inputs.h"
#include "graph/run/random_plan.h"
#include "sym/open_conditions.h"
#include "weft/base/error.h"
#include "weft/dispatch/layers.h"
#include "weft/graph/missing_operators.h"
#include "weft/ops/overloads.h"

namespace weft {

Value call_target(const Target& target, Args args, const Kwargs& kwargs) {
  if (const Operator* op = target.op()) {
    std::string why;
    std::optional<ValueList> bound = bind_arguments(*op, args, kwargs, &why);
    require(bound.has_value(), "{}: {}; the schema is {}", op->name(), why, op->schema_text());
    return call_bound({op, std::move(*bound)});
  }
  if (target.is_missing())
    unsupported("{} cannot be called: weft has no such operator; define it (weft/ops/define.h)",
                target.operator_name());
  require(target.function() && kwargs.empty(), "'{}' is no function of positional arguments",
          target.to_string());
  return target.function()->run(args);
}

struct Interpreter::Numbers {
  RandomPlan plan;
  std::optional<RandomPlan::Draws> draws;
};

// --- running ---------------------------------------------------------------------------------------------

Value Interpreter::run(Args inputs, const Kwargs& kwargs) {
  const GraphInputs names(module_.graph());
  const bool is_bound = kwargs.empty() && !names.has_rest();
  return is_bound ? run_bound(inputs) : run_bound(names.bind(inputs, kwargs));
}

Value Interpreter::run_bound(Args inputs) {
  Graph& graph = module_.graph();
  graph.lint();
  values_.clear();
  numbers_.reset();
  asserted_ = find_asserted_values(graph);
  inputs_.assign(inputs.begin(), inputs.end());
  next_input_ = 0;
  std::unordered_map<const Node*, std::vector<const Node*>> dying;
  std::unordered_map<const Node*, bool> seen;
  for (const Node* node = graph.back(); node; node = node->previous())
    for (const Node* input : node->inputs())
      if (!std::exchange(seen[input], true)) dying[node].push_back(input);

  Value result;
  auto describe = [&] { return current_ ? fmt::format("running {}", current_->line()) : "running a graph"; };
  While scope(describe);
  for (Node& node : graph) {
    current_ = &node;
    Value value = run_with_origin(node);
    if (node.kind() == NodeKind::kOutput) result = value;
    values_[&node] = std::move(value);
    for (const Node* input : dying[&node]) values_.erase(input);
  }
  current_ = nullptr;
  require(next_input_ == inputs_.size() || inputs_.size() < next_input_,
          "the graph takes {} inputs but {} were given", next_input_, inputs_.size());
  values_.clear();
  return result;
}

Value Interpreter::run_with_origin(Node& node) {
  if (!Origin::is_wanted()) return run_node(node);
  const Origin origin = node.origin();
  const OriginScope scope(&origin);
  const Operator* op = node.target().op();
  const dispatch::RuleCalls as_written(op && complete_call(*op, node.args(), node.kwargs()).op == op);
  return run_node(node);
}

const Value& Interpreter::value_at(const Node& node) const {
  auto found = values_.find(&node);
  require(found != values_.end(), "'{}' has no value here: it did not run, or nobody needs it any more",
          node.name());
  return found->second;
}

ValueList Interpreter::fetch_args(const Node& node) const {
  ValueList args;
  args.reserve(node.args().size());
  for (const Value& arg : node.args())
    args.push_back(map_nodes(arg, [&](Node& input) { return value_at(input); }));
  return args;
}

Kwargs Interpreter::fetch_kwargs(const Node& node) const {
  Kwargs kwargs;
  for (const auto& [name, value] : node.kwargs())
    kwargs.emplace_back(name, map_nodes(value, [&](Node& input) { return value_at(input); }));
  return kwargs;
}

Value Interpreter::run_node(Node& node) {
  ValueList args = fetch_args(node);
  Kwargs kwargs = fetch_kwargs(node);
  std::string name = node.target().to_string();
  switch (node.kind()) {
    case NodeKind::kPlaceholder:
      return placeholder(name, args);
    case NodeKind::kGetAttr:
      return get_attr(name);
    case NodeKind::kCallFunction:
      return call_function(node.target(), args, kwargs);
    case NodeKind::kCallMethod:
      return call_method(name, args, kwargs);
    case NodeKind::kCallModule:
      return call_module(name, args, kwargs);
    case NodeKind::kOutput:
      return output(args.empty() ? Value() : args[0]);
  }
  __builtin_unreachable();
}

Value Interpreter::placeholder(std::string_view target, Args defaults) {
  size_t at = next_input_++;
  if (at < inputs_.size()) return inputs_[at];
  require(!defaults.empty(), "there is no input for placeholder '{}'", target);
  return defaults[0];
}
Value Interpreter::get_attr(std::string_view path) { return module_.find(path); }
Value Interpreter::call_function(const Target& target, Args args, const Kwargs& kwargs) {
  if (target.is_missing()) require_operators(module_.graph(), module_);
  if (current_ && asserted_.contains(current_)) {
    const sym::OpenConditions open;
    return call_target(target, args, kwargs);
  }
  auto call = [&] { return call_target(target, args, kwargs); };
  const Numbers* numbers = random_numbers();
  if (!numbers || !numbers->draws) return call();
  const uint32_t at = numbers->plan.of(*current_);
  return at == RandomPlan::kNone ? call() : RandomPlan::run((*numbers->draws)[at], call);
}
const Interpreter::Numbers* Interpreter::random_numbers() {
  const NodeMeta* meta = current_ ? current_->meta_or_null() : nullptr;
  if (!meta || !meta->random_offset) return nullptr;
  if (!numbers_) {
    RandomPlan plan(module_.graph());
    std::optional<RandomPlan::Draws> draws = plan.begin(inputs_);
    numbers_ = std::make_shared<const Numbers>(Numbers{std::move(plan), std::move(draws)});
  }
  return numbers_.get();
}
Value Interpreter::call_method(std::string_view method, Args args, const Kwargs& kwargs) {
  return call_bound(resolve_overload(fmt::format("aten::{}", method), args, kwargs));
}
Value Interpreter::call_module(std::string_view path, Args args, const Kwargs& kwargs) {
  Value module = module_.find(path);
  require(callable_in(module) != nullptr, "'{}' is {}, not a module", path, module.kind_name());
  return callable_in(module)->call(args, kwargs);
}
Value Interpreter::output(const Value& result) { return result; }

// --- another graph ---------------------------------------------------------------------------------------

GraphModule Transformer::transform() {
  graph_ = Graph();
  ValueList unused(module().graph().placeholders().size());
  run_bound(unused);
  graph_.set_random_advance(module().graph().random_advance());
  GraphModule made(module(), std::move(graph_), module().state()->class_name);
  if (module().call_spec()) made.set_call_spec(*module().call_spec());
  return made;
}

Value Transformer::run_node(Node& node) {
  Node* before = graph_.back();
  Value result = Interpreter::run_node(node);
  // What is new stands for the old node: it inherits what was known of it.
  Node* made = node_in(result);
  const NodeMeta* meta = node.meta_or_null();
  if (made && meta && made != before && !made->meta_or_null()) made->meta() = *meta;
  return result;
}

Value Transformer::placeholder(std::string_view target, Args defaults) {
  Interpreter::placeholder(target, defaults);
  std::optional<Value> default_value;
  if (!defaults.empty()) default_value = defaults[0];
  return value_of(graph_.placeholder(target, default_value));
}
Value Transformer::get_attr(std::string_view path) { return value_of(graph_.get_attr(path)); }
Value Transformer::call_function(const Target& target, Args args, const Kwargs& kwargs) {
  return value_of(graph_.call(target, {args.begin(), args.end()}, kwargs));
}
Value Transformer::call_method(std::string_view method, Args args, const Kwargs& kwargs) {
  return value_of(graph_.call_method(method, {args.begin(), args.end()}, kwargs));
}
Value Transformer::call_module(std::string_view path, Args args, const Kwargs& kwargs) {
  return value_of(graph_.call_module(path, {args.begin(), args.end()}, kwargs));
}
Value Transformer::output(const Value& result) { return value_of(graph_.output(result)); }

}  // namespace weft
