#include "weft/autograd/data.h"

namespace weft::autograd {

Tensor untracked_data(const Tensor& tensor) {
  const TensorImpl& impl = *tensor.impl();
  Tensor data = alias_with(tensor, impl.sizes(), impl.strides(), impl.storage_offset());
  data.impl()->detach_version();
  return data;
}

}  // namespace weft::autograd
