#pragma once

#include "weft/graph/interpreter.h"
#include "weft/sym/shape_env.h"

namespace weft {

// Runs a graph and notes on each node (`meta().value`) the type, sizes and strides of what it gives. With
// fake tensors nothing is computed; with a ShapeEnv the sizes of inputs are symbols of it, with sources named
// after the placeholders, and so are the sizes of everything that follows from them.
//
//   ShapeProp(module).propagate({x});
//   ShapeProp(module, ShapeEnv::create()).propagate({x});   // f32[s0, 4]
class ShapeProp final : public Interpreter {
 public:
  explicit ShapeProp(GraphModule module, bool fake = true) : Interpreter(std::move(module)), fake_(fake) {}
  ShapeProp(GraphModule module, Ref<ShapeEnv> env) : Interpreter(std::move(module)), env_(std::move(env)) {}
  // The result, of fake tensors unless the graph was to run for real. A tensor or number that is symbolic
  // already is taken as it is; its sizes belong to the ShapeEnv.
  Value propagate(Args inputs);
  Value propagate(std::initializer_list<Value> inputs) {
    return propagate(Args(inputs.begin(), inputs.size()));
  }
  Value run_node(Node& node) override;
  Value get_attr(std::string_view path) override;

 private:
  Value with_symbols(const Value& input, const std::string& source) const;

  bool fake_ = true;
  Ref<ShapeEnv> env_;
};

}  // namespace weft
