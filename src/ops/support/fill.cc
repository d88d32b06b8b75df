#include "ops/support/fill.h"

#include <cstring>

#include "ops/support/pointwise.h"

namespace weft {

void fill_values(const Tensor& tensor, const Scalar& value) {
  if (!tensor.storage()->has_memory() || tensor.plain_numel() == 0) return;
  if (value.equals_number(0) && tensor.is_contiguous()) {
    std::memset(tensor.raw_data(), 0, static_cast<size_t>(tensor.plain_numel() * item_size(tensor.dtype())));
    return;
  }
  IntSpan sizes = tensor.plain_sizes();
  cpu::fill_strided({static_cast<char*>(tensor.raw_data()), tensor.dtype(), tensor.plain_strides().data()},
                    {sizes.data(), sizes.size()}, param_of(value, tensor.dtype()));
}

}  // namespace weft
