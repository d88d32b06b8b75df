#include "weft/passes/shape_prop.h"

#include "weft/core/pytree.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

Value shapes_of(const Value& value) {
  auto shape_of = [](const Value& leaf) {
    Tensor shape = shape_only(leaf.tensor_ref());
    if (leaf.tensor_ref().requires_grad()) shape.set_requires_grad();
    return Value(shape);
  };
  return tree_map_only(Value::Kind::kTensor, shape_of, value);
}

}  // namespace

Value ShapeProp::propagate(Args inputs) {
  if (!fake_) return run(inputs);
  FakeMode fake({.allow_real_inputs = true});
  ValueList shapes;
  for (const Value& input : inputs) shapes.push_back(shapes_of(input));
  return run(shapes);
}

Value ShapeProp::run_node(Node& node) {
  Value result = Interpreter::run_node(node);
  node.meta().value = shapes_of(result);
  return result;
}

Value ShapeProp::get_attr(std::string_view path) {
  Value value = Interpreter::get_attr(path);
  return fake_ ? shapes_of(value) : value;
}

}  // namespace weft
