#include "weft/passes/shape_prop.h"

#include "weft/ops/fake.h"

namespace weft {

// Every tensor of an input; those inside of containers are named by their paths.
Value ShapeProp::with_symbols(const Value& input, const std::string& source) const {
  const FakeMode& mode = *FakeMode::current();
  auto is_given = [&](const Tensor& tensor) {
    if (!tensor.is_symbolic()) return false;
    for (SymIntSpan numbers : {tensor.sizes(), tensor.strides()})
      for (const SymInt& number : numbers) env_->expr_of(number);  // an error for those of another one
    return true;
  };
  auto fake_of = [&](const KeyPath& path, const Value& leaf) -> Value {
    if (!leaf.is_tensor() || is_given(leaf.tensor_ref())) return leaf;
    return mode.fake_of(leaf.tensor_ref(), source + to_string(path));
  };
  return tree_map_with_path(fake_of, input);
}

Value ShapeProp::propagate(Args inputs) {
  if (!fake_) return run(inputs);
  FakeMode fake({.shape_env = env_, .allow_real_inputs = true});
  const std::vector<Node*> placeholders = module().graph().placeholders();
  ValueList shapes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = i < placeholders.size() ? placeholders[i]->target().to_string() : "";
    shapes.push_back(env_ ? with_symbols(inputs[i], name) : noted_form(inputs[i]));
  }
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
