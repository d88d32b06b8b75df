#pragma once

#include <memory>
#include <unordered_map>

#include "weft/graph/graph_module.h"

namespace weft {

// Runs a graph node by node; override a kind of node to change what it does.
//
//   struct NegSigmoidSwap : Interpreter {
//     using Interpreter::Interpreter;
//     Value call_function(const Target& target, Args args, const Kwargs& kwargs) override {
//       if (target == Target(operator_named("aten::sigmoid"))) return neg(args[0].to_tensor());
//       return Interpreter::call_function(target, args, kwargs);
//     }
//   };
//
// A GraphModule that is called runs a prepared form of its graph instead, which costs less.
class Interpreter {
 public:
  explicit Interpreter(GraphModule module) : module_(std::move(module)) {}
  virtual ~Interpreter() = default;

  // The inputs by position or by name, as a GraphModule is called, but of a program with trees for arguments
  // their leaves; what the output gives.
  Value run(Args inputs, const Kwargs& kwargs = {});
  Value run(std::initializer_list<Value> inputs, const Kwargs& kwargs = {}) {
    return run(Args(inputs.begin(), inputs.size()), kwargs);
  }

  // Every node passes here; the node is `current()`.
  virtual Value run_node(Node& node);
  virtual Value placeholder(std::string_view target, Args defaults);
  virtual Value get_attr(std::string_view path);
  virtual Value call_function(const Target& target, Args args, const Kwargs& kwargs);
  virtual Value call_method(std::string_view method, Args args, const Kwargs& kwargs);
  virtual Value call_module(std::string_view path, Args args, const Kwargs& kwargs);
  virtual Value output(const Value& result);

  const GraphModule& module() const noexcept { return module_; }

 protected:
  // One value for each placeholder: a tuple for `*args`, a dictionary for `**kwargs`.
  Value run_bound(Args inputs);
  Node& current() const noexcept { return *current_; }
  // What a node gave; an error once nobody needs it any more.
  const Value& value_at(const Node& node) const;
  // The arguments of a node with values for nodes.
  ValueList fetch_args(const Node& node) const;
  Kwargs fetch_kwargs(const Node& node) const;

 private:
  Value run_with_origin(Node& node);
  struct Numbers;
  // Those of the run, taken for all nodes when the first asks.
  const Numbers* random_numbers();

  GraphModule module_;
  std::unordered_map<const Node*, Value> values_;
  std::unordered_set<const Node*> asserted_;  // what only assertions read
  std::shared_ptr<const Numbers> numbers_;
  ValueList inputs_;
  size_t next_input_ = 0;
  Node* current_ = nullptr;
};

// Makes another graph: each method gives the node (as a Value) that stands for the old one.
class Transformer : public Interpreter {
 public:
  using Interpreter::Interpreter;
  GraphModule transform();

  Value run_node(Node& node) override;
  Value placeholder(std::string_view target, Args defaults) override;
  Value get_attr(std::string_view path) override;
  Value call_function(const Target& target, Args args, const Kwargs& kwargs) override;
  Value call_method(std::string_view method, Args args, const Kwargs& kwargs) override;
  Value call_module(std::string_view path, Args args, const Kwargs& kwargs) override;
  Value output(const Value& result) override;

 protected:
  Graph& new_graph() noexcept { return graph_; }

 private:
  Graph graph_;
};

// What a target gives for these arguments, through every active layer.
Value call_target(const Target& target, Args args, const Kwargs& kwargs = {});

}  // namespace weft
