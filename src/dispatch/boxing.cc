#include "weft/dispatch/boxing.h"

#include "weft/base/error.h"
#include "weft/sym/shape_env.h"

namespace weft {

void boxing::check_count(size_t given, size_t expected) {
  invariant(given == expected, "{} arguments for a function of {}", given, expected);
}

namespace {

// What its memory would measure; 0 where nobody asks: of symbolic sizes, and of sizes beyond all memory.
size_t bytes_of(const TensorSpec& spec) {
  int64_t last = 0, reach = 0, bytes = 0;
  for (size_t d = 0; d < spec.sizes.size(); ++d) {
    const SymInt &size = spec.sizes[d], &stride = spec.strides[d];
    if (size.is_symbolic() || stride.is_symbolic() || size.plain() <= 0) return 0;
    if (__builtin_mul_overflow(size.plain() - 1, stride.plain(), &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return 0;
  }
  const bool is_too_large =
      __builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, item_size(spec.dtype), &bytes);
  return is_too_large || bytes < 0 ? 0 : static_cast<size_t>(bytes);
}

}  // namespace

Value boxing::box(const TensorSpec& spec) {
  // Data that becomes a size must be one.
  for (const SymInt& size : spec.sizes)
    if (size.is_symbolic() && size.expr()->has_unbacked()) check_size_like(size);
  auto impl =
      make_ref<TensorImpl>(Storage::without_memory(bytes_of(spec), spec.device), spec.dtype, spec.device);
  impl->set_geometry(spec.sizes, spec.strides);
  return Tensor(std::move(impl));
}

}  // namespace weft
