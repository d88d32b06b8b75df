#include "ops/support/fill.h"

#include <cmath>
#include <cstring>

#include "ops/support/number_range.h"
#include "ops/support/pointwise.h"

namespace weft {

void fill_values(const Tensor& tensor, const Scalar& value) {
  if (!tensor.storage()->has_memory() || tensor.plain_numel() == 0) return;
  // A negative zero has a bit set.
  if (value.equals_number(0) && !std::signbit(value.to_double()) && tensor.is_contiguous()) {
    std::memset(tensor.raw_data(), 0, static_cast<size_t>(tensor.plain_numel() * item_size(tensor.dtype())));
    return;
  }
  IntSpan sizes = tensor.plain_sizes();
  cpu::fill_strided({static_cast<char*>(tensor.raw_data()), tensor.dtype(), tensor.plain_strides().data()},
                    {sizes.data(), sizes.size()}, converted_param(value, tensor.dtype()));
}

void fill_number(const Tensor& tensor, const Scalar& value) {
  // A single element of a half type takes the infinity instead, as PyTorch has it.
  const bool is_half = tensor.dtype() == kFloat16 || tensor.dtype() == kBFloat16;
  if (is_half && tensor.plain_numel() == 1) require_fits(value, kFloat64);
  else require_fits(value, tensor.dtype());
  fill_values(tensor, value);
}

}  // namespace weft
