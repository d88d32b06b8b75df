#include "weft/autograd/data.h"

#include "weft/base/error.h"
#include "weft/core/untracked_box.h"
#include "weft/ops/extension.h"

namespace weft::autograd {
namespace {

// What a tensor stands for is not in its memory: the new tensor must stand for it too, or a kernel would look
// for elements where there are none.
Ref<TensorBox> untracked_box(const Tensor& tensor) {
  TensorBox* box = tensor.impl()->box.get();
  if (auto* known = dynamic_cast<UntrackedBox*>(box)) return known->untracked();
  if (Extension* extension = extension_of(tensor)) {
    std::vector<Tensor> inner = extension->inner_tensors();
    for (Tensor& part : inner)
      if (part.defined()) part = untracked_data(part);
    return extension->with_inner(std::move(inner));
  }
  unsupported("untracked_data: {} stands for other tensors in a way that has no second handle",
              describe(tensor));
}

}  // namespace

Tensor untracked_data(const Tensor& tensor) {
  require(tensor.defined(), "untracked_data: the tensor is undefined");
  const TensorImpl& impl = *tensor.impl();
  // A tensor that is only a name in a graph has neither memory nor value: what it gives is a call there.
  if (impl.flags() & layer::kRecorderUpper) return tensor.detach();
  Tensor data = alias_with(tensor, impl.sizes(), impl.strides(), impl.storage_offset());
  data.impl()->detach_version();
  if (!impl.box) return data;
  constexpr uint32_t wrappers =
      layer::kLevels | layer::kFunctionalizeUpper | layer::kFunctionalizeLower | layer::kExtension;
  data.impl()->box = untracked_box(tensor);
  data.impl()->set_flags(impl.flags() & (wrappers | tensor_flag::kWrappedNumber));
  return data;
}

}  // namespace weft::autograd
