#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/base/detail/arena.h"
#include "weft/base/detail/small_vector.h"
#include "weft/base/function_ref.h"
#include "weft/base/stack_trace.h"
#include "weft/core/argument_names.h"
#include "weft/core/value.h"
#include "weft/dispatch/operator.h"
#include "weft/dispatch/origin.h"

namespace weft {

class Graph;
class Node;

enum class NodeKind : uint8_t { kPlaceholder, kGetAttr, kCallFunction, kCallMethod, kCallModule, kOutput };
// "placeholder", "get_attr", "call_function", ...
std::string_view kind_name(NodeKind kind);

// A function on Values that is no operator of the table: arithmetic on anything, `x[i]`. Its name is
// Python's, since that is what graphs print.
struct PythonFunction {
  std::string_view name;    // "operator.getitem"
  std::string_view symbol;  // how code writes it: "+" for `a + b`; empty for a call
  Value (*run)(Args args);
  bool has_effect = false;  // stays in a graph when nobody uses its result
};
// An error that lists near names when there is none.
const PythonFunction& python_function(std::string_view name);

// What a node calls, reads or is called by: an operator, a function on Values, or a name (of a placeholder,
// an attribute, a method, a module).
class Target {
 public:
  // The operator of a qualified name ("mine::scale", "aten::add.Tensor"), which the table need not have: one
  // that is missing is kept by name, and is called once somebody has defined it. An error for what is no
  // name.
  static Target of_operator(std::string_view name);
  Target(const Operator& op) : op_(&op) {}              // NOLINT(google-explicit-constructor)
  Target(const PythonFunction& f) : function_(&f) {}    // NOLINT(google-explicit-constructor)
  Target(std::string name) : name_(std::move(name)) {}  // NOLINT(google-explicit-constructor)
  Target(const char* name) : name_(name) {}             // NOLINT(google-explicit-constructor)

  // Null for an operator that is missing, too.
  const Operator* op() const { return op_ || !is_operator_ ? op_ : find_operator(name_); }
  const PythonFunction* function() const noexcept { return function_; }
  // Whether it is an operator that the table does not have, or not yet.
  bool is_missing() const { return is_operator_ && !op(); }
  // Whether it is an operator, missing ones included, or a function: what a call_function node has.
  bool is_function() const noexcept { return op_ || function_ || is_operator_; }
  // "aten::add.Tensor"; empty for what is no operator.
  std::string operator_name() const;
  // "torch.ops.aten.add.Tensor", "operator.getitem", "layer1.0"
  std::string to_string() const;
  bool operator==(const Target& other) const;

 private:
  const Operator* op_ = nullptr;
  const PythonFunction* function_ = nullptr;
  bool is_operator_ = false;  // `name_` is the qualified name of one that was missing
  std::string name_;
};

// The users of a node, in the order they began to use it.
class Users {
 public:
  size_t size() const noexcept { return count_; }
  bool empty() const noexcept { return count_ == 0; }
  bool contains(const Node* node) const;
  // A copy: what is done to the users does not disturb a walk over it.
  std::vector<Node*> list() const;
  // Calls f for each, in order; the users must not change meanwhile.
  template <typename F>
  void for_each(const F& f) const {
    for (Node* node : order_)
      if (node) f(*node);
  }

 private:
  friend class Node;
  void add(Node* node);
  void remove(Node* node);
  size_t find(const Node* node) const;

  size_t count_ = 0;
  SmallVector<Node*, 2> order_;  // null where one was removed
  // Beyond a few users: where each is in `order_`.
  std::unique_ptr<std::unordered_map<const Node*, size_t>> places_;
};

// A base for what a graph's arena holds, and may outlive the graph.
struct InArena {
  static void* operator new(size_t bytes, Arena& arena) { return arena.allocate(bytes); }
  static void operator delete(void* memory) noexcept { Arena::free(memory); }
  static void operator delete(void* memory, Arena&) noexcept { Arena::free(memory); }
};

// What is known of a node beyond what it does.
struct NodeMeta : InArena {
  Value value;               // the result, as `noted_form` gives it
  std::optional<Type> type;  // what the program declares it to be
  std::string source;        // where in the program the call was made
  // The same, as it was noted: names and lines are found when somebody asks `Node::source`.
  std::shared_ptr<const StackTrace> trace;
  ModuleStack modules;  // the calls of modules that it is part of
  // The node it was, of the graph whose run was captured or whose gradient it computes. Few nodes have one.
  struct CameFrom {
    std::string node;
    bool is_backward = false;  // computes the gradient of that
  };
  std::shared_ptr<const CameFrom> came_from;
  std::string_view from_node() const noexcept { return came_from ? came_from->node : std::string_view(); }
  bool is_backward() const noexcept { return came_from && came_from->is_backward; }
  // What the program called, where a decomposition made this node of it.
  const Operator* original = nullptr;
  // Of a random call: where its numbers begin, counted from where the graph's run begins in the default
  // generator, or in the numbers that it is given. Nodes that have it keep their numbers when others before
  // them are moved, removed or repeated; one without draws what comes next. Of an operator over functions
  // that draw: where they begin, which counts in runs on given numbers.
  std::optional<SymInt> random_offset;
  Dict extra;  // anything else, by name
};

// How texts write the type of a node; empty where it has none.
std::string type_text(const Node& node);
// Declares the type that a text has.
void set_type(Node& node, std::string_view text);

// One step of a graph. Its arguments are Values that may hold nodes at any depth; the users of each node are
// kept up to date. A node is made by a Graph and belongs to it until it is erased; a handle that is kept
// longer stays safe.
class Node final : public ValueObject, public InArena {
 public:
  ~Node() override;
  std::string type_name() const override { return "Node"; }

  NodeKind kind() const noexcept { return kind_; }
  const std::string& name() const noexcept { return name_; }
  const Target& target() const noexcept { return target_; }
  const ValueList& args() const noexcept { return args_; }
  const Kwargs& kwargs() const noexcept { return kwargs_; }
  const Value* kwarg(std::string_view name) const;
  const Users& users() const noexcept { return users_; }
  // The nodes among its arguments, each once, in the order they appear.
  const SmallVector<Node*, 2>& inputs() const noexcept { return inputs_; }
  // Null once it was erased.
  Graph* graph() const noexcept { return graph_; }
  Node* next() const noexcept { return next_; }
  Node* previous() const noexcept { return previous_; }

  void set_target(Target target);
  void set_args(ValueList args);
  void set_arg(size_t i, Value value);
  void set_kwargs(Kwargs kwargs);
  void set_kwarg(std::string_view name, Value value);
  // Asks the graph for a name like this one.
  void rename(std::string_view name);

  // Every use of this node becomes a use of `other`, except in nodes for which `keep` is true. The nodes that
  // changed.
  std::vector<Node*> replace_all_uses_with(Node& other, FunctionRef<bool(const Node&)> keep = nothing);
  // The uses of `from` among this node's arguments become uses of `to`.
  void replace_input(const Node& from, Node& to);

  // Moves it within the list of its graph.
  void move_before(Node& other);
  void move_after(Node& other);

  // Whether it must stay even when nobody uses it. Asks schema and traits; a missing operator may do
  // anything.
  bool is_impure(bool random_is_impure = true) const;
  // Whether it is a call that writes to an argument: of an operator that does, or of a method, which is any
  // of the operators of its name, where one writes to what it is called on. A missing operator may write.
  bool writes_in_place() const;

  // What an output node returns: its argument, None where it has none.
  Value returned() const { return args_.empty() ? Value() : args_[0]; }

  // Where in the program the call was made; empty when nobody noted it.
  std::string source() const;
  // The user's calls that led to it, as Python writes them: outermost first, with what stands in each line
  // where the source is at hand. Empty when nobody noted them.
  std::string stack_trace() const;

  // Where the calls come from that running it makes: what it does not know is as for its caller.
  Origin origin() const;

  // Made on first use.
  NodeMeta& meta();
  const NodeMeta* meta_or_null() const noexcept { return meta_.get(); }

  // "%add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, 1), kwargs = {})"
  std::string line() const;
  // Its name: how it appears inside arguments.
  std::string to_string() const override { return name_; }

 private:
  friend class Graph;
  friend class Program;
  static bool nothing(const Node&) { return false; }
  Node(Graph& graph, NodeKind kind, std::string name, Target target);
  void check_foreign(const Value& value) const;
  void refresh_inputs();

  // First what walks over long graphs ask every node for: one cache line.
  Graph* graph_;
  Node *next_ = nullptr, *previous_ = nullptr;
  Users users_;
  // Among the nodes that nobody uses.
  Node *next_unused_ = nullptr, *previous_unused_ = nullptr;
  NodeKind kind_;
  mutable uint64_t position_ = 0;  // ascends along the list, when the graph says it is up to date
  std::string name_;
  Target target_;
  ValueList args_;
  Kwargs kwargs_;
  SmallVector<Node*, 2> inputs_;
  std::unique_ptr<NodeMeta> meta_;
};

// What a node notes of a value: tensors without data that share nothing with those of the program, but have
// their types, symbolic sizes and strides, and say whether they required a gradient when this was called.
Value noted_form(const Value& value);

// The node that a Value holds; null when it holds something else.
Node* node_in(const Value& value);
Value value_of(Node& node);
// Calls f for every node in a Value, in the order they appear.
void for_each_node(const Value& value, FunctionRef<void(Node&)> f);
// The same Value with every node replaced by what f gives for it.
Value map_nodes(const Value& value, FunctionRef<Value(Node&)> f);

}  // namespace weft
