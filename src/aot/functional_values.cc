#include "aot/functional_values.h"

#include <unordered_map>

#include "aot/extension_tree.h"
#include "weft/autograd/grad_node.h"
#include "weft/core/value_walk.h"
#include "weft/ops/fake.h"

namespace weft::aot {
namespace {

// Makes an input the result of something, as it was for the caller; nothing asks for its gradient.
class GivenResult final : public GradNode {
 public:
  std::string name() const override { return "GivenResult"; }
  std::vector<Tensor> apply(std::vector<Tensor>) override { return {}; }
};

void merge(func::FunctionalChanges& all, const func::FunctionalChanges& one) {
  all.writes += one.writes;
  all.writes_under_no_grad += one.writes_under_no_grad;
  all.writes_in_inference_mode += one.writes_in_inference_mode;
  all.writes_to_detached += one.writes_to_detached;
  all.writes_hidden_from_autograd += one.writes_hidden_from_autograd;
  all.generation += one.generation;
  all.frozen |= one.frozen;
  all.resized |= one.resized;
  all.storage_resizes += one.storage_resizes;
  all.metadata |= one.metadata;
  all.storage_replaced |= one.storage_replaced;
}

}  // namespace

void make_given_result(const Tensor& tensor) {
  autograd::set_history(tensor, Ref<GradNode>(new GivenResult));
}

FunctionalBox* functional_box_of(const Tensor& tensor) {
  return tensor.defined() ? dynamic_cast<FunctionalBox*>(tensor.impl()->box.get()) : nullptr;
}

Tensor functional_form(const Tensor& value) {
  if (extension_of(value)) return map_inner(value, functional_form);
  return func::to_functional(autograd::shallow_copy(value), func::FunctionalPosition::kLower);
}

Value current_value(const Value& value) {
  if (!value.is_tensor()) return value;
  const Tensor& tensor = value.tensor_ref();
  if (extension_of(tensor))
    return map_inner(tensor, [](const Tensor& inner) { return current_value(inner).to_tensor(); });
  return func::is_functional(tensor) ? Value(func::from_functional(tensor)) : value;
}

Tensor shape_like(const Tensor& tensor) {
  return extension_of(tensor) ? map_inner(tensor, shape_like) : shape_only(tensor);
}

func::FunctionalChanges changes_of(const Tensor& tensor) {
  if (func::is_functional(tensor)) return func::functional_changes(tensor);
  func::FunctionalChanges all;
  if (Extension* extension = extension_of(tensor))
    for (const Tensor& inner : extension->inner_tensors())
      if (inner.defined()) merge(all, changes_of(inner));
  return all;
}

FunctionalInputs::FunctionalInputs(const ValueList& inputs) {
  std::unordered_map<uint64_t, Tensor> known;
  for (const Value& input : inputs) {
    if (!input.is_tensor() || !input.tensor_ref().defined()) {
      values_.push_back(input);
      continue;
    }
    const Tensor& given = input.tensor_ref();
    auto [found, is_new] = known.try_emplace(given.impl()->serial());
    if (is_new) {
      found->second = functional_form(given);
      if (given.requires_grad() && given.is_leaf()) found->second.set_requires_grad();
      else if (given.requires_grad()) make_given_result(found->second);
    }
    values_.push_back(found->second);
  }
}

}  // namespace weft::aot
