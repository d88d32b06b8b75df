#include "weft/passes/shape_prop.h"

#include "weft/ops/fake.h"

namespace weft {

Value ShapeProp::propagate(Args inputs) {
  if (!fake_) return run(inputs);
  FakeMode fake({.allow_real_inputs = true});
  ValueList shapes;
  for (const Value& input : inputs) shapes.push_back(noted_form(input));
  return run(shapes);
}

Value ShapeProp::run_node(Node& node) {
  Value result = Interpreter::run_node(node);
  node.meta().value = noted_form(result);
  return result;
}

Value ShapeProp::get_attr(std::string_view path) {
  Value value = Interpreter::get_attr(path);
  return fake_ ? noted_form(value) : value;
}

}  // namespace weft
