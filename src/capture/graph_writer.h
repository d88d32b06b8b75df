#pragma once

#include <unordered_map>
#include <unordered_set>

#include "capture/random_numbers.h"
#include "graph/size_nodes.h"
#include "weft/core/value_walk.h"
#include "weft/graph/graph_module.h"
#include "weft/ops/fake_converter.h"

namespace weft {

// What every capture needs to write a graph: which node stands for which tensor and which symbolic number,
// and the attributes that the graph names. Tensors are known by their serial number. One that is not known is
// a constant of the program; whoever derives from this says what becomes of it.
class GraphWriter {
 public:
  // `root` gives attributes their names, where it owns them; may be null.
  explicit GraphWriter(const nn::Module* root);
  virtual ~GraphWriter() = default;

  Graph& graph() noexcept { return graph_; }
  // Nodes that read sizes, and compute with them, say what they give.
  void note_size_values() { sizes_.note_values(); }
  // A placeholder for a leaf of the arguments.
  Node& add_input(const std::string& name, const Value& value);
  // The tensor without data that stands for an input. Two inputs are two tensors, also where one tensor is
  // given for both: a function that carries x and x may give different values for them.
  Tensor fake_input(FakeConverter& converter, const Tensor& given) const;
  // The same Value with nodes for tensors and symbolic numbers.
  Value as_nodes(const Value& value);
  // A call, by one node (or plain value) for each argument of the schema; `result` is what it gave.
  Node& add_call(const Operator& op, const ValueList& nodes, const Value& result);
  // The same as a call of the method of that name on the first argument.
  Node& add_method(const Operator& op, const ValueList& nodes);
  // From now on `value` is what `node` gives: a tensor, a symbolic number, or a sequence of them by items.
  void track(const Value& value, Node& node);
  // The graph with what it names; without nodes that nobody uses, unless they are to be kept.
  GraphModule finish(bool keep_dead_code, const std::string& class_name = "GraphModule");

 protected:
  // A tensor that no node stands for.
  virtual Value unknown_tensor(const Tensor& tensor) = 0;
  // Notes what is known of a node beyond what it does.
  virtual void annotate(Node& node, const Value& result);
  // Notes where the call of a node comes from: what is known of its origin, `here` where nothing is.
  static void note_origin(Node& node, Origin here);
  // The node that reads this tensor: under the root's name, or under a new one.
  Node& attribute_node(const Tensor& tensor);
  bool is_owned_by_root(const Tensor& tensor) const;
  // Null for a tensor that no node stands for.
  Node* node_of(const TensorImpl& tensor) const {
    auto found = nodes_.find(tensor.serial());
    return found == nodes_.end() ? nullptr : found->second;
  }
  // The node that reads any other value, under a name of its own: "true_graph_0".
  Node& new_attribute(const std::string& prefix, const Value& value, std::string_view separator = "");
  SizeNodes& sizes() noexcept { return sizes_; }
  RandomNumbers& random() noexcept { return random_; }
  // Which node stands for which tensor, by the tensor's serial number.
  using Nodes = std::unordered_map<uint64_t, Node*>;
  const Nodes& nodes() const noexcept { return nodes_; }
  // These nodes stand for nothing any more, and tensors are known as `known` says.
  void forget(const std::unordered_set<const Node*>& nodes, Nodes known);
  // What the graph names by this path and the root does not have; None where there is nothing.
  Value attribute(std::string_view path) const;

 private:
  void note_new_sizes(const Operator& op, const ValueList& nodes, const Value& result, Node& call);
  void track_items(const ValueList& elements, Node& node);
  void track_item(const Value& key, const Value& element, Node& node);

  const nn::Module* root_;
  Graph graph_;
  SizeNodes sizes_{graph_};
  RandomNumbers random_;
  Nodes nodes_;
  std::unordered_map<uint64_t, std::string> root_names_;  // of what the root owns
  std::unordered_map<std::string, int64_t> next_number_;  // of "_tensor_constant", "true_graph", ...
  GraphModule::Attributes attributes_;
};

// The path of a module and of every module below it, where it is met first.
using ModulePaths = std::unordered_map<const nn::ModuleState*, std::string>;
ModulePaths module_paths(const nn::ModuleState& root, const std::string& path);
// The module that a path leads to.
std::shared_ptr<nn::ModuleState> state_at(const nn::Module& root, std::string_view path);

bool is_symbolic_number(const Value& value);

}  // namespace weft
