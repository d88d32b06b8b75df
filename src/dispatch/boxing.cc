#include "weft/dispatch/boxing.h"

#include "weft/base/error.h"
#include "weft/sym/shape_env.h"

namespace weft {

void boxing::check_count(size_t given, size_t expected) {
  invariant(given == expected, "{} arguments for a function of {}", given, expected);
}

Value boxing::box(const TensorSpec& spec) {
  // Data that becomes a size must be one.
  for (const SymInt& size : spec.sizes)
    if (size.is_symbolic() && size.expr()->has_unbacked()) check_size_like(size);
  auto impl = make_ref<TensorImpl>(Storage::without_memory(0, spec.device), spec.dtype, spec.device);
  impl->set_geometry(spec.sizes, spec.strides);
  return Tensor(std::move(impl));
}

}  // namespace weft
