#pragma once

#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <unordered_set>

#include "weft/graph/node.h"

namespace weft {

namespace nn {
struct ModuleState;
}

// Names that are valid in Python, each given out once: `add`, `add_1`, ...
class Names {
 public:
  // A name like `wanted`: what is no letter, digit or _ becomes _, a name that is taken or means something in
  // Python gets a number.
  std::string make(std::string_view wanted);
  bool is_taken(std::string_view name) const;

 private:
  // The names that differ in a number at their end only: "add", "add_1", "add_2". Most graphs have thousands
  // of names and a few dozen families, so what is taken is kept as numbers.
  struct Family {
    bool has_bare = false;                  // "add" itself
    int64_t dense = 1;                      // all numbers from 1 up to here are taken
    std::unordered_set<int64_t> scattered;  // others that are
    int64_t last = 0;                       // where the search for a free one goes on
    bool has(std::optional<int64_t> number) const;
    void take(std::optional<int64_t> number);
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  Family& family(std::string_view base);
  std::unordered_map<std::string, Family, Hash, std::equal_to<>> families_;
};

// The one IR: a list of nodes, each using only nodes before it.
//
//   Graph g;
//   Node& x = g.placeholder("x");
//   Node& y = g.call(operator_named("aten::relu"), {value_of(x)});
//   g.output(value_of(y));
//   std::cout << g.code();
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;
  Graph(const Graph&) = delete;

  // --- making nodes: each goes to the insertion point, which is the end unless a scope below says otherwise
  // ---

  Node& placeholder(std::string_view name, std::optional<Value> default_value = std::nullopt);
  Node& get_attr(std::string_view path);
  Node& call(Target function, ValueList args, Kwargs kwargs = {});
  // The same with an operator or function by its name: "aten::relu", "operator.add".
  Node& call_function(std::string_view name, ValueList args, Kwargs kwargs = {});
  Node& call_method(std::string_view method, ValueList args, Kwargs kwargs = {});
  Node& call_module(std::string_view path, ValueList args, Kwargs kwargs = {});
  Node& output(Value result);
  // Any kind; `name` is a hint, and by default follows from the target by PyTorch's rules: fooBar is foo_bar.
  Node& create(NodeKind kind, Target target, ValueList args, Kwargs kwargs = {}, std::string_view name = {});
  // A copy of a node of any graph; `map` gives the node of this graph for each of its inputs. A random node
  // keeps its offset, and the graph's random_advance covers that of the node's own graph; its numbers are
  // then those of another node here that has the same. To join graphs that draw, use inline_graph.
  Node& node_copy(const Node& node, FunctionRef<Value(Node&)> map);

  // While it lives, new nodes go before (after) a node; several in the order they are made.
  class InsertScope {
   public:
    InsertScope(Graph& graph, Node* before);
    ~InsertScope();
    InsertScope(const InsertScope&) = delete;

   private:
    Graph& graph_;
    Ref<Node> saved_;
  };
  [[nodiscard]] InsertScope inserting_before(Node& node);
  [[nodiscard]] InsertScope inserting_after(Node& node);
  // The node that new ones go before; null: they go to the end.
  Node* insertion_point() const noexcept { return insert_before_; }

  // --- what is there ---

  class Iterator {
   public:
    explicit Iterator(Node* node) : node_(node) {}
    Node& operator*() const { return *node_; }
    Node* operator->() const { return node_; }
    Iterator& operator++() {
      node_ = node_->next();
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    Node* node_;
  };
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(nullptr); }
  size_t size() const noexcept { return size_; }
  Node* front() const noexcept { return first_; }
  Node* back() const noexcept { return last_; }
  std::vector<Node*> placeholders() const;
  // Null while there is none.
  Node* output_node() const;
  // The node of this name; null when there is none. Walks the list.
  Node* find(std::string_view name) const;
  bool is_before(const Node& a, const Node& b) const;

  // --- changing it ---

  // An error while it is used: the users are named.
  void erase(Node& node);
  // Removes nodes without users and side effects; whether there were any.
  bool eliminate_dead_code(bool random_is_impure = true);
  // A stable topological sort: every node comes after its inputs, otherwise in the present order. An error
  // for a cycle.
  void legalize();
  // Checks everything that must hold of a graph: an error says what does not, and at which node.
  void lint() const;
  // As it is: a graph whose nodes are out of order while it is edited has a copy that is too.
  Graph copy() const;
  // Copies the nodes of `other`, which is another graph and in order, but its output to the insertion point;
  // what its output returns, in terms of the copies. `inputs`, when given, are as many as its placeholders
  // and replace them. Its random numbers come after those of this graph.
  Value inline_graph(const Graph& other, std::span<const Value> inputs = {});

  // How far a run takes the default generator for the nodes with a random_offset, those that were removed
  // since included.
  const SymInt& random_advance() const noexcept { return random_advance_; }
  void set_random_advance(SymInt advance) { random_advance_ = std::move(advance); }

  // Whether equal constants among the arguments are one value to the script view, and numbers for tensors
  // stay numbers: optimised forms are written so.
  bool pools_constants() const noexcept { return pools_constants_; }
  void set_pools_constants(bool pools) noexcept { pools_constants_ = pools; }

  // What a path of a get_attr node leads to in the module that owns the graph; nothing while nobody does, and
  // where it leads nowhere.
  std::optional<Value> attribute(std::string_view path) const;

  Names& names() noexcept { return names_; }
  // Goes up with every change: what was made from the graph knows whether it still holds.
  uint64_t version() const noexcept { return version_; }

  // --- as text ---

  // Python code, as PyTorch's FX writes it.
  std::string code() const;
  // A line a node: "graph():" and Node::line.
  std::string to_string() const;
  // A table with the columns opcode, name, target, args, kwargs.
  std::string tabular() const;

 private:
  friend class Node;
  friend class Program;
  friend class GraphModule;
  void check_member(const Node& node, const char* what) const;
  void check_inlinable(const Graph& other, std::span<const Value> inputs) const;
  Node& copy_node(const Node& node, FunctionRef<Value(Node&)> map);
  bool can_cover(const SymInt& advance) const;
  void insert(Node& node, Node* before);
  void unlink(Node& node);
  void link_unused(Node& node);
  void unlink_unused(Node& node);
  void number_nodes() const;

  Node *first_ = nullptr, *last_ = nullptr;
  Node* unused_ = nullptr;         // the first of those without users, from which dead code is found
  Node* insert_before_ = nullptr;  // null: at the end
  size_t size_ = 0;
  mutable bool numbered_ = false;
  bool pools_constants_ = false;
  uint64_t version_ = 0;
  Names names_;
  Arena arena_;  // of the nodes
  SymInt random_advance_ = 0;
  // Of the module that this graph is part of: stays where it is when the nodes move to another graph.
  std::weak_ptr<nn::ModuleState> owner_;
};

// Writes `to_string()`.
std::ostream& operator<<(std::ostream& out, const Graph& graph);

}  // namespace weft
