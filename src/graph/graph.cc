#include "weft/graph/graph.h"

#include <queue>

#include "graph/node_rules.h"
#include "graph/node_table.h"
#include "weft/base/error.h"
#include "weft/nn/module.h"

namespace weft {

Graph::Graph() = default;

Graph::~Graph() {
  // Nodes keep their inputs alive. Each lets go of its own before it goes itself, so that a chain of any
  // length is freed one by one.
  for (Node* node = first_; node;) {
    Node* next = std::exchange(node->next_, nullptr);
    node->previous_ = nullptr;
    node->graph_ = nullptr;
    node->inputs_.clear();
    node->users_ = {};
    node->args_.clear();
    node->kwargs_.clear();
    Ref<Node>::adopt(node);
    node = next;
  }
}

Graph::Graph(Graph&& other) noexcept { *this = std::move(other); }
Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(first_, other.first_);
  std::swap(last_, other.last_);
  std::swap(unused_, other.unused_);
  std::swap(insert_before_, other.insert_before_);
  std::swap(size_, other.size_);
  std::swap(numbered_, other.numbered_);
  std::swap(pools_constants_, other.pools_constants_);
  ++version_;
  ++other.version_;
  std::swap(names_, other.names_);
  std::swap(arena_, other.arena_);
  std::swap(random_advance_, other.random_advance_);
  for (Node& node : *this) node.graph_ = this;
  for (Node& node : other) node.graph_ = &other;
  return *this;
}

// --- the list --------------------------------------------------------------------------------------------

void Graph::insert(Node& node, Node* before) {
  Node* after = before ? before->previous_ : last_;
  node.previous_ = after;
  node.next_ = before;
  (after ? after->next_ : first_) = &node;
  (before ? before->previous_ : last_) = &node;
  if (node.users().empty()) link_unused(node);
  ++size_;
  ++version_;
  // Appending keeps the numbers right; anything else does not.
  if (!before && numbered_) node.position_ = after ? after->position_ + 1 : 0;
  else numbered_ = false;
}

void Graph::unlink(Node& node) {
  if (node.users().empty()) unlink_unused(node);
  (node.previous_ ? node.previous_->next_ : first_) = node.next_;
  (node.next_ ? node.next_->previous_ : last_) = node.previous_;
  node.next_ = node.previous_ = nullptr;
  --size_;
  ++version_;
}

void Graph::link_unused(Node& node) {
  node.previous_unused_ = nullptr;
  node.next_unused_ = unused_;
  if (unused_) unused_->previous_unused_ = &node;
  unused_ = &node;
}

void Graph::unlink_unused(Node& node) {
  (node.previous_unused_ ? node.previous_unused_->next_unused_ : unused_) = node.next_unused_;
  if (node.next_unused_) node.next_unused_->previous_unused_ = node.previous_unused_;
  node.next_unused_ = node.previous_unused_ = nullptr;
}

void Graph::number_nodes() const {
  if (numbered_) return;
  uint64_t position = 0;
  for (Node& node : *this) node.position_ = position++;
  numbered_ = true;
}

bool Graph::is_before(const Node& a, const Node& b) const {
  check_member(a, "is_before");
  check_member(b, "is_before");
  number_nodes();
  return a.position_ < b.position_;
}

void Graph::check_member(const Node& node, const char* what) const {
  require(node.graph_ == this, "{}: node '{}' {}", what, node.name_,
          node.graph_ ? "belongs to another graph" : "was erased");
}

// --- making nodes ----------------------------------------------------------------------------------------

namespace {

// A new word begins where a capital follows a small letter, and all letters become small: "layerNorm2D" is
// layer_norm2d.
std::string snake_case(std::string_view text) {
  std::string words;
  char before = '\0';
  for (char c : text) {
    const bool is_capital = c >= 'A' && c <= 'Z';
    if (is_capital && before >= 'a' && before <= 'z') words += '_';
    words += is_capital ? static_cast<char>(c - 'A' + 'a') : c;
    before = c;
  }
  return words;
}

// "aten::add.Tensor" is called add, "layer1.0.conv1" layer1_0_conv1, the method "__len__" len.
std::string wanted_name(const Target& target) {
  std::string name;
  if (const Operator* op = target.op()) {
    name = op->schema().name;
  } else if (target.is_missing()) {
    name = target.operator_name();
    name.erase(0, name.find("::") + 2);
    name.resize(std::min(name.find('.'), name.size()));
  } else {
    name = target.to_string();
    if (target.function()) name = name.substr(name.rfind('.') + 1);
  }
  const bool is_magic = name.starts_with("__") && name.ends_with("__");
  if (is_magic) name = name.size() > 4 ? name.substr(2, name.size() - 4) : "";
  return snake_case(name);
}

}  // namespace

Node& Graph::create(NodeKind kind, Target target, ValueList args, Kwargs kwargs, std::string_view name) {
  check_target(kind, target, "create");
  check_arguments(kind, target, args, kwargs, "create");
  std::string wish = name.empty() ? wanted_name(target) : std::string(name);
  Ref<Node> node(new (arena_) Node(*this, kind, "", std::move(target)));
  node->name_ = wish;  // for messages, should an argument be refused
  for (const Value& value : args) node->check_foreign(value);
  for (const auto& [key, value] : kwargs) node->check_foreign(value);
  node->name_ = names_.make(wish);
  node->args_ = std::move(args);
  node->kwargs_ = std::move(kwargs);
  node->refresh_inputs();
  insert(*node, insert_before_);
  return *node.detach();
}

Node& Graph::placeholder(std::string_view name, std::optional<Value> default_value) {
  ValueList args;
  if (default_value) args.push_back(*default_value);
  return create(NodeKind::kPlaceholder, std::string(name), std::move(args));
}
Node& Graph::get_attr(std::string_view path) { return create(NodeKind::kGetAttr, std::string(path), {}); }
Node& Graph::call(Target function, ValueList args, Kwargs kwargs) {
  return create(NodeKind::kCallFunction, std::move(function), std::move(args), std::move(kwargs));
}
Node& Graph::call_function(std::string_view name, ValueList args, Kwargs kwargs) {
  bool is_operator = name.find("::") != std::string_view::npos;
  Target target = is_operator ? Target(operator_named(name)) : Target(python_function(name));
  return call(std::move(target), std::move(args), std::move(kwargs));
}
Node& Graph::call_method(std::string_view method, ValueList args, Kwargs kwargs) {
  require(!args.empty(), "call_method: '{}' needs the value that it is called on as its first argument",
          method);
  return create(NodeKind::kCallMethod, std::string(method), std::move(args), std::move(kwargs));
}
Node& Graph::call_module(std::string_view path, ValueList args, Kwargs kwargs) {
  return create(NodeKind::kCallModule, std::string(path), std::move(args), std::move(kwargs));
}
Node& Graph::output(Value result) {
  require(!output_node(), "output: the graph has an output already");
  return create(NodeKind::kOutput, "output", {std::move(result)});
}

// With all that is known of the node.
Node& Graph::copy_node(const Node& node, FunctionRef<Value(Node&)> map) {
  ValueList args;
  args.reserve(node.args().size());
  for (const Value& value : node.args()) args.push_back(map_nodes(value, map));
  Kwargs kwargs;
  kwargs.reserve(node.kwargs().size());
  for (const auto& [key, value] : node.kwargs()) kwargs.emplace_back(key, map_nodes(value, map));
  Node& copy = create(node.kind(), node.target(), std::move(args), std::move(kwargs), node.name());
  if (const NodeMeta* meta = node.meta_or_null()) copy.meta() = *meta;
  return copy;
}

// Whether numbers of another graph can be counted among those of this one: symbols of two captures have
// nothing to do with each other.
bool Graph::can_cover(const SymInt& advance) const {
  return !random_advance_.is_symbolic() || !advance.is_symbolic() || random_advance_.env() == advance.env();
}

Node& Graph::node_copy(const Node& node, FunctionRef<Value(Node&)> map) {
  Node& copy = copy_node(node, map);
  const Graph* from = node.graph_;
  if (from == this || !copy.meta_or_null() || !copy.meta().random_offset) return copy;
  if (!from || !can_cover(from->random_advance_)) {
    copy.meta().random_offset.reset();
    return copy;
  }
  const SymInt& advance = from->random_advance_;
  if (random_advance_.same_as(0)) random_advance_ = advance;
  else if (!advance.same_as(0) && !random_advance_.same_as(advance))
    random_advance_ = max(random_advance_, advance);
  return copy;
}

Graph::InsertScope::InsertScope(Graph& graph, Node* before) : graph_(graph), saved_(graph.insert_before_) {
  graph.insert_before_ = before;
}
Graph::InsertScope::~InsertScope() {
  // The node that new ones went before may have been erased meanwhile.
  graph_.insert_before_ = saved_ && saved_->graph() == &graph_ ? saved_.get() : nullptr;
}
Graph::InsertScope Graph::inserting_before(Node& node) {
  check_member(node, "inserting_before");
  return {*this, &node};
}
Graph::InsertScope Graph::inserting_after(Node& node) {
  check_member(node, "inserting_after");
  return {*this, node.next_};
}

// --- what is there ---------------------------------------------------------------------------------------

std::vector<Node*> Graph::placeholders() const {
  std::vector<Node*> found;
  for (Node& node : *this)
    if (node.kind() == NodeKind::kPlaceholder) found.push_back(&node);
  return found;
}

Node* Graph::output_node() const {
  for (Node* node = last_; node; node = node->previous_)
    if (node->kind() == NodeKind::kOutput) return node;
  return nullptr;
}

Node* Graph::find(std::string_view name) const {
  for (Node& node : *this)
    if (node.name() == name) return &node;
  return nullptr;
}

// --- changing it -----------------------------------------------------------------------------------------

void Graph::erase(Node& node) {
  check_member(node, "erase");
  if (!node.users().empty()) {
    std::string users;
    for (Node* user : node.users().list()) users += (users.empty() ? "" : ", ") + user->name();
    fail("erase: node '{}' still has {} users in the graph: {}", node.name(), node.users().size(), users);
  }
  node.set_args({});
  node.set_kwargs({});
  if (insert_before_ == &node) insert_before_ = node.next_;
  unlink(node);
  node.graph_ = nullptr;
  Ref<Node>::adopt(&node);
}

std::optional<Value> Graph::attribute(std::string_view path) const {
  const std::shared_ptr<nn::ModuleState> owner = owner_.lock();
  return owner ? nn::try_find(*owner, path) : std::nullopt;
}

bool Graph::eliminate_dead_code(bool random_is_impure) {
  std::vector<Node*> candidates;
  for (Node* node = unused_; node; node = node->next_unused_) candidates.push_back(node);
  bool changed = false;
  while (!candidates.empty()) {
    Node* node = candidates.back();
    candidates.pop_back();
    if (node->is_impure(random_is_impure)) continue;
    const SmallVector<Node*, 2> inputs = node->inputs();
    erase(*node);
    changed = true;
    for (Node* input : inputs)
      if (input->users().empty()) candidates.push_back(input);
  }
  return changed;
}

void Graph::legalize() {
  number_nodes();
  std::unordered_map<Node*, size_t> waiting;
  auto later = [](const Node* a, const Node* b) { return a->position_ > b->position_; };
  std::priority_queue<Node*, std::vector<Node*>, decltype(later)> ready(later);
  for (Node& node : *this) {
    waiting[&node] = node.inputs().size();
    if (node.inputs().empty()) ready.push(&node);
  }
  std::vector<Node*> sorted;
  sorted.reserve(size_);
  while (!ready.empty()) {
    Node* node = ready.top();
    ready.pop();
    sorted.push_back(node);
    for (Node* user : node->users().list())
      if (--waiting[user] == 0) ready.push(user);
  }
  if (sorted.size() < size_) {
    std::string names;
    for (Node& node : *this)
      if (waiting[&node] > 0) names += (names.empty() ? "" : ", ") + node.name();
    fail("legalize: these nodes wait for each other: {}", names);
  }
  for (size_t i = 0; i < sorted.size(); ++i) {
    sorted[i]->previous_ = i ? sorted[i - 1] : nullptr;
    sorted[i]->next_ = i + 1 < sorted.size() ? sorted[i + 1] : nullptr;
  }
  first_ = sorted.empty() ? nullptr : sorted.front();
  last_ = sorted.empty() ? nullptr : sorted.back();
  numbered_ = false;
  ++version_;
}

void Graph::lint() const {
  number_nodes();
  NodeTable names;
  bool has_output = false;
  for (Node& node : *this) {
    invariant(node.graph_ == this, "lint: node '{}' of another graph is in the list", node.name());
    require(names.add(node.name(), node), "lint: two nodes have the name '{}'", node.name());
    require(!has_output, "lint: node '{}' comes after the output", node.name());
    has_output = node.kind() == NodeKind::kOutput;
    check_target(node.kind(), node.target(), "lint");
    check_arguments(node.kind(), node.target(), node.args(), node.kwargs(), "lint");
    for (const Node* input : node.inputs()) {
      if (input->graph_ != this || input->position_ >= node.position_)
        fail("lint: node '{}' uses '{}' before it is defined: {}", node.name(), input->name(), node.line());
      invariant(input->users().contains(&node), "lint: '{}' does not know of its user '{}'", input->name(),
                node.name());
    }
    node.users().for_each([&](const Node& user) {
      invariant(user.graph_ == this, "lint: '{}' has a user '{}' that is not in the graph", node.name(),
                user.name());
    });
  }
}

Graph Graph::copy() const {
  Graph made;
  made.pools_constants_ = pools_constants_;
  number_nodes();
  std::vector<Node*> twin(last_ ? last_->position_ + 1 : 0);
  auto map = [&](Node& input) {
    Node* copy = twin[input.position_];
    return copy ? value_of(*copy) : Value();
  };
  // While a graph is edited, a node may use one that comes after it: its arguments wait until that is there.
  std::vector<const Node*> early;
  for (const Node& node : *this) {
    for (const Node* input : node.inputs())
      if (!twin[input->position_]) {
        early.push_back(&node);
        break;
      }
    twin[node.position_] = &made.copy_node(node, map);
  }
  for (const Node* node : early) {
    Node& copy = *twin[node->position_];
    ValueList args;
    for (const Value& value : node->args()) args.push_back(map_nodes(value, map));
    Kwargs kwargs;
    for (const auto& [key, value] : node->kwargs()) kwargs.emplace_back(key, map_nodes(value, map));
    copy.set_args(std::move(args));
    copy.set_kwargs(std::move(kwargs));
  }
  made.random_advance_ = random_advance_;
  return made;
}

void Graph::check_inlinable(const Graph& other, std::span<const Value> inputs) const {
  require(&other != this,
          "inline_graph: a graph cannot be copied into itself; give it a copy(), made before");
  size_t placeholders = 0;
  other.number_nodes();
  for (const Node& node : other) {
    placeholders += node.kind() == NodeKind::kPlaceholder;
    for (const Node* input : node.inputs())
      require(
          input->position_ < node.position_,
          "inline_graph: node '{}' uses '{}' before it is defined: {}; legalize() sorts the nodes of a graph",
          node.name(), input->name(), node.line());
  }
  require(
      inputs.empty() || inputs.size() == placeholders,
      "inline_graph: {} inputs were given for a graph that has {} placeholders: give one for each, or none",
      inputs.size(), placeholders);
}

Value Graph::inline_graph(const Graph& other, std::span<const Value> inputs) {
  check_inlinable(other, inputs);
  std::unordered_map<const Node*, Value> twin;
  size_t next_input = 0;
  Value result;
  const bool keeps_numbers = can_cover(other.random_advance_);
  auto map = [&](Node& input) { return twin.at(&input); };
  for (const Node& node : other) {
    if (node.kind() == NodeKind::kOutput) {
      result = map_nodes(node.returned(), map);
    } else if (node.kind() == NodeKind::kPlaceholder && !inputs.empty()) {
      twin.emplace(&node, inputs[next_input++]);
    } else {
      Node& copy = copy_node(node, map);
      if (const NodeMeta* meta = copy.meta_or_null(); meta && meta->random_offset) {
        // Its numbers come after those of the nodes that are here already.
        if (keeps_numbers) copy.meta().random_offset = random_advance_ + *meta->random_offset;
        else copy.meta().random_offset.reset();
      }
      twin.emplace(&node, value_of(copy));
    }
  }
  if (keeps_numbers) random_advance_ = random_advance_ + other.random_advance_;
  return result;
}

}  // namespace weft
