#pragma once

#include "weft/graph/interpreter.h"

namespace weft {

// Runs a graph and notes on each node (`meta().value`) the type, sizes and strides of what it gives. With
// fake tensors nothing is computed.
//
//   ShapeProp(module).propagate({x});
class ShapeProp final : public Interpreter {
 public:
  explicit ShapeProp(GraphModule module, bool fake = true) : Interpreter(std::move(module)), fake_(fake) {}
  // The result, of fake tensors unless the graph was to run for real.
  Value propagate(Args inputs);
  Value propagate(std::initializer_list<Value> inputs) {
    return propagate(Args(inputs.begin(), inputs.size()));
  }
  Value run_node(Node& node) override;
  Value get_attr(std::string_view path) override;

 private:
  bool fake_;
};

}  // namespace weft
