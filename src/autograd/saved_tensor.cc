#include "autograd/saved_tensor.h"

#include "weft/base/error.h"
#include "weft/dispatch/layers.h"

namespace weft {

SavedTensor::SavedTensor(const Tensor& tensor, bool is_result)
    : version_(tensor.defined() ? tensor.version() : 0), is_result_(is_result) {
  if (!tensor.defined()) return;
  require(!tensor.is_inference(),
          "Inference tensors cannot be saved for backward. To work around you can make a clone to use it in "
          "autograd; it is {}",
          describe(tensor));
  requires_grad_ = tensor.requires_grad();
  const VariableMeta* meta = autograd::variable_meta_or_null(tensor);
  bool is_leaf = !meta || (!meta->grad_fn && !tensor.impl()->view);
  if (!is_result && (!requires_grad_ || is_leaf)) {
    tensor_ = tensor;  // without history there is nothing to tie into a circle
    return;
  }
  tensor_ = autograd::shallow_copy(tensor);
  if (is_result) result_ = meta ? meta->result : 0;
  else history_ = autograd::gradient_edge(tensor);
}

void SavedTensor::check_version(const GradNode& owner) const {
  if (tensor_.version() == version_) return;
  std::string maker = is_result_ ? owner.name() : history_ ? history_.node->name() : "";
  if (!maker.empty())
    maker = fmt::format(", which is output {} of {},", is_result_ ? result_ : history_.result, maker);
  fail(
      "one of the variables needed for gradient computation has been modified by an inplace operation: "
      "[{}]{} is at "
      "version {}; expected version {} instead. Hint: {} saved it; clone the tensor before writing to it, or "
      "use the "
      "out-of-place operator.",
      describe(tensor_), maker, tensor_.version(), version_, owner.name());
}

Tensor SavedTensor::unpack(const Ref<GradNode>& owner) const {
  if (!tensor_.defined()) return {};
  check_version(*owner);
  if (!requires_grad_ || (!is_result_ && !history_)) return tensor_;
  Tensor tensor = autograd::shallow_copy(tensor_);
  VariableMeta& meta = autograd::variable_meta(tensor);
  meta.grad_fn = is_result_ ? owner : history_.node;
  meta.result = is_result_ ? result_ : history_.result;
  meta.view_version = tensor.version();
  tensor.impl()->set_flags(layer::kAutograd);
  return tensor;
}

}  // namespace weft
