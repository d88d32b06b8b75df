#include "weft/ops/boxing.h"

namespace weft {

Value boxing::box(const TensorSpec& spec) {
  auto impl = make_ref<TensorImpl>(Storage::without_memory(0, spec.device), spec.dtype, spec.device);
  impl->set_geometry(spec.sizes, spec.strides);
  return Tensor(std::move(impl));
}

}  // namespace weft
