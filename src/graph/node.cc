#include "weft/graph/node.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/function_name.h"
#include "graph/node_rules.h"
#include "ops/silent_mutation.h"
#include "weft/base/error.h"
#include "weft/core/value_walk.h"
#include "weft/graph/graph_module.h"
#include "weft/ops/fake.h"
#include "weft/ops/operator_value.h"
#include "weft/ops/overloads.h"

namespace weft {

static_assert(alignof(Node) <= Arena::kAlignment && alignof(NodeMeta) <= Arena::kAlignment);

std::string_view kind_name(NodeKind kind) {
  constexpr std::string_view names[] = {"placeholder", "get_attr",    "call_function",
                                        "call_method", "call_module", "output"};
  return names[static_cast<size_t>(kind)];
}

// --- targets ---------------------------------------------------------------------------------------------

Target Target::of_operator(std::string_view name) {
  const std::string qualified = qualified_operator_name(name);
  if (const Operator* op = find_operator(qualified)) return *op;
  Target target(qualified);
  target.is_operator_ = true;
  return target;
}

std::string Target::operator_name() const {
  if (op_) return std::string(op_->name());
  return is_operator_ ? name_ : std::string();
}

std::string Target::to_string() const {
  if (function_) return std::string(function_->name);
  return op_ || is_operator_ ? "torch.ops." + operator_text(operator_name()) : name_;
}

// One that was missing is the operator that has its name now.
bool Target::operator==(const Target& other) const {
  if (function_ || other.function_) return function_ == other.function_;
  const bool is_operator = op_ || is_operator_, is_other = other.op_ || other.is_operator_;
  if (is_operator != is_other) return false;
  if (op_ && other.op_) return op_ == other.op_;
  return is_operator ? operator_name() == other.operator_name() : name_ == other.name_;
}

// --- users -----------------------------------------------------------------------------------------------

namespace {
constexpr size_t kFewUsers = 16;
}

size_t Users::find(const Node* node) const {
  if (places_) {
    auto found = places_->find(node);
    return found == places_->end() ? order_.size() : found->second;
  }
  return static_cast<size_t>(std::find(order_.begin(), order_.end(), node) - order_.begin());
}

bool Users::contains(const Node* node) const { return find(node) < order_.size(); }

std::vector<Node*> Users::list() const {
  std::vector<Node*> nodes;
  nodes.reserve(count_);
  for (Node* node : order_)
    if (node) nodes.push_back(node);
  return nodes;
}

void Users::add(Node* node) {
  if (contains(node)) return;
  if (!places_ && order_.size() >= kFewUsers) {
    places_ = std::make_unique<std::unordered_map<const Node*, size_t>>();
    for (size_t i = 0; i < order_.size(); ++i) places_->emplace(order_[i], i);
  }
  if (places_) places_->emplace(node, order_.size());
  order_.push_back(node);
  ++count_;
}

void Users::remove(Node* node) {
  size_t at = find(node);
  if (at >= order_.size()) return;
  --count_;
  if (!places_) {
    order_.erase(at);
    return;
  }
  places_->erase(node);
  order_[at] = nullptr;
  if (count_ * 2 > order_.size()) return;
  // Many holes: close them.
  order_.resize(static_cast<size_t>(std::remove(order_.begin(), order_.end(), nullptr) - order_.begin()));
  if (order_.size() < kFewUsers) places_.reset();
  else
    for (size_t i = 0; i < order_.size(); ++i) (*places_)[order_[i]] = i;
}

// --- nodes in values -------------------------------------------------------------------------------------

Node* node_in(const Value& value) { return static_cast<Node*>(value.object_of(ValueObject::Role::kNode)); }
Value value_of(Node& node) { return Value(Ref<ValueObject>(&node)); }

void for_each_node(const Value& value, FunctionRef<void(Node&)> f) {
  for_each_leaf(value, [&](const Value& leaf) {
    if (Node* node = node_in(leaf)) f(*node);
  });
}

Value map_nodes(const Value& value, FunctionRef<Value(Node&)> f) {
  return map_leaves(value, [&](const Value& leaf) {
    Node* node = node_in(leaf);
    return node ? f(*node) : leaf;
  });
}

Value noted_form(const Value& value) {
  return map_leaves(value, [](const Value& leaf) {
    if (!leaf.is_tensor()) return leaf;
    Tensor shape = shape_only(leaf.tensor_ref());
    if (leaf.tensor_ref().requires_grad()) shape.set_requires_grad();
    return Value(shape);
  });
}

// --- nodes -----------------------------------------------------------------------------------------------

Node::Node(Graph& graph, NodeKind kind, std::string name, Target target)
    : ValueObject(Role::kNode),
      graph_(&graph),
      kind_(kind),
      name_(std::move(name)),
      target_(std::move(target)) {}
Node::~Node() = default;

const Value* Node::kwarg(std::string_view name) const {
  for (const auto& [key, value] : kwargs_)
    if (key == name) return &value;
  return nullptr;
}

void Node::check_foreign(const Value& value) const {
  for_each_node(value, [&](const Node& input) {
    require(input.graph() == graph_, "node '{}' cannot take '{}' as an argument: it {}", name_, input.name(),
            input.graph() ? "belongs to another graph" : "was erased");
    require(&input != this, "node '{}' cannot be its own argument", name_);
  });
}

void Node::refresh_inputs() {
  if (graph_) ++graph_->version_;
  const SmallVector<Node*, 2> before = std::move(inputs_);
  inputs_.clear();
  std::unordered_set<const Node*> many;  // only for lists that are long enough to need it
  auto note = [&](Node& input) {
    if (inputs_.size() < kFewUsers) {
      if (std::find(inputs_.begin(), inputs_.end(), &input) != inputs_.end()) return;
    } else {
      if (many.empty()) many.insert(inputs_.begin(), inputs_.end());
      if (!many.insert(&input).second) return;
    }
    inputs_.push_back(&input);
  };
  for (const Value& value : args_) for_each_node(value, note);
  for (const auto& [key, value] : kwargs_) for_each_node(value, note);
  for (Node* input : inputs_) {
    if (graph_ && input->users_.empty()) graph_->unlink_unused(*input);
    input->users_.add(this);
  }
  if (before.empty()) return;
  std::unordered_set<const Node*> kept(inputs_.begin(), inputs_.end());
  for (Node* input : before)
    if (!kept.contains(input)) {
      input->users_.remove(this);
      if (graph_ && input->users_.empty()) graph_->link_unused(*input);
    }
}

void Node::set_target(Target target) {
  check_target(kind_, target, "set_target");
  target_ = std::move(target);
  if (graph_) ++graph_->version_;
}

void Node::set_args(ValueList args) {
  for (const Value& value : args) check_foreign(value);
  args_ = std::move(args);
  refresh_inputs();
}

void Node::set_arg(size_t i, Value value) {
  require(i < args_.size(), "node '{}' has {} arguments; there is no argument {}", name_, args_.size(), i);
  check_foreign(value);
  args_[i] = std::move(value);
  refresh_inputs();
}

void Node::set_kwargs(Kwargs kwargs) {
  for (const auto& [key, value] : kwargs) check_foreign(value);
  kwargs_ = std::move(kwargs);
  refresh_inputs();
}

void Node::set_kwarg(std::string_view name, Value value) {
  check_foreign(value);
  auto found =
      std::find_if(kwargs_.begin(), kwargs_.end(), [&](const auto& entry) { return entry.first == name; });
  if (found == kwargs_.end()) kwargs_.emplace_back(name, std::move(value));
  else found->second = std::move(value);
  refresh_inputs();
}

void Node::rename(std::string_view name) {
  if (name == name_) return;
  require(graph_, "node '{}' was erased and cannot be renamed", name_);
  name_ = graph_->names().make(name);
}

void Node::replace_input(const Node& from, Node& to) {
  auto change = [&](Node& node) { return value_of(&node == &from ? to : node); };
  ValueList args;
  args.reserve(args_.size());
  for (const Value& value : args_) args.push_back(map_nodes(value, change));
  Kwargs kwargs;
  kwargs.reserve(kwargs_.size());
  for (const auto& [key, value] : kwargs_) kwargs.emplace_back(key, map_nodes(value, change));
  require(to.graph() == graph_ && &to != this, "node '{}' cannot take '{}' as an argument", name_, to.name());
  args_ = std::move(args);
  kwargs_ = std::move(kwargs);
  refresh_inputs();
}

std::vector<Node*> Node::replace_all_uses_with(Node& other, FunctionRef<bool(const Node&)> keep) {
  require(graph_ && other.graph_ == graph_,
          "the uses of '{}' cannot become uses of '{}': they are not in one graph", name_, other.name_);
  std::vector<Node*> changed;
  for (Node* user : users_.list()) {
    if (user == &other || keep(*user)) continue;
    user->replace_input(*this, other);
    changed.push_back(user);
  }
  return changed;
}

void Node::move_before(Node& other) {
  require(graph_ && other.graph_ == graph_, "'{}' cannot be moved next to '{}': they are not in one graph",
          name_, other.name_);
  if (&other == this) return;
  graph_->unlink(*this);
  graph_->insert(*this, &other);
}

void Node::move_after(Node& other) {
  require(graph_ && other.graph_ == graph_, "'{}' cannot be moved next to '{}': they are not in one graph",
          name_, other.name_);
  if (&other == this) return;
  graph_->unlink(*this);
  graph_->insert(*this, other.next_);
}

std::string Node::source() const {
  if (!meta_) return {};
  if (!meta_->source.empty() || !meta_->trace) return meta_->source;
  SourceFrame frame = meta_->trace->user_frame();
  return frame.is_known() ? frame.to_string() : std::string();
}

std::string Node::stack_trace() const {
  if (!meta_ || !meta_->trace) return meta_ ? meta_->source : std::string();
  std::vector<SourceFrame> frames = meta_->trace->frames();
  std::string text;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (frame->is_library) continue;
    text += fmt::format("  File \"{}\", line {}, in {}\n", frame->file, frame->line,
                        short_function(frame->function));
    if (const std::string code = frame->code(); !code.empty()) text += "    " + code + "\n";
  }
  return text;
}

Origin Node::origin() const {
  const Origin* caller = Origin::current();
  Origin own = caller ? *caller : Origin();
  own.node = name_;
  if (!meta_) return own;
  if (meta_->trace || !meta_->source.empty()) {
    own.trace = meta_->trace;
    own.source = meta_->source;
  }
  if (!meta_->modules.empty()) own.modules = meta_->modules;
  if (const Value* function = meta_->extra.find("torch_fn"); function && function->is_string())
    own.function = function->to_string_view();
  own.is_backward |= meta_->is_backward();
  return own;
}

bool Node::writes_in_place() const {
  if (const Operator* op = target_.op()) return op->info().is_mutable || may_mutate_silently(*op, args_);
  if (kind_ != NodeKind::kCallMethod) return target_.is_missing();
  const std::string method = target_.to_string();
  const auto overloads = overloads_of("aten::" + method);
  // Methods that are no operators follow the naming: add_ writes, __len__ does not.
  if (overloads.empty()) return method.ends_with('_') && !method.ends_with("__");
  return std::any_of(overloads.begin(), overloads.end(),
                     [](const Operator* op) { return !op->info().written.empty() && op->info().written[0]; });
}

namespace {

bool has_impure_nodes(const Graph& graph, bool random_is_impure) {
  for (const Node& node : graph) {
    const bool does_nothing = node.kind() == NodeKind::kPlaceholder || node.kind() == NodeKind::kOutput;
    if (!does_nothing && node.is_impure(random_is_impure)) return true;
  }
  return false;
}

// A call of an operator over operators does what these do, writes aside: their results are what it gives.
bool has_impure_operator(const Node& call, bool random_is_impure) {
  for (const Value& arg : call.args())
    if (const Operator* op = operator_in(arg))
      if (op->has(Traits::kEffectful) || (random_is_impure && op->has(Traits::kRandom))) return true;
  return false;
}

// A call of functions does what they do. One that is no graph, or that cannot be found because the graph is
// nobody's yet, may do anything.
bool has_impure_branch(const Node& call, bool random_is_impure) {
  for (const Node* input : call.inputs()) {
    if (input->kind() != NodeKind::kGetAttr) continue;
    const std::optional<Value> attribute = call.graph()->attribute(input->target().to_string());
    if (!attribute) return true;
    if (!callable_in(*attribute)) continue;
    const std::optional<GraphModule> branch = graph_module_in(*attribute);
    if (!branch || has_impure_nodes(branch->graph(), random_is_impure)) return true;
  }
  return false;
}

}  // namespace

bool Node::is_impure(bool random_is_impure) const {
  if (kind_ == NodeKind::kPlaceholder || kind_ == NodeKind::kOutput) return true;
  if (target_.function()) return target_.function()->has_effect;
  const Operator* op = target_.op();
  // What a module or a missing operator does is not known.
  if (!op) return kind_ == NodeKind::kCallModule || writes_in_place();
  if (op->def().higher_order)
    return has_impure_branch(*this, random_is_impure) || has_impure_operator(*this, random_is_impure);
  return writes_in_place() || op->has(Traits::kEffectful) || (random_is_impure && op->has(Traits::kRandom));
}

NodeMeta& Node::meta() {
  if (!meta_) {
    Arena own;  // of a node that was erased
    meta_.reset(new (graph_ ? graph_->arena_ : own) NodeMeta());
  }
  return *meta_;
}

}  // namespace weft
