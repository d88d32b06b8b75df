#include "ops/support/fill.h"

#include <cmath>
#include <cstring>

#include "ops/support/number_range.h"
#include "ops/support/pointwise.h"
#include "weft/base/error.h"

namespace weft {

void fill_values(const Tensor& tensor, const Scalar& value) {
  if (!tensor.storage()->has_memory() || tensor.plain_numel() == 0) return;
  // A negative zero has a bit set.
  if (value.equals_number(0) && !std::signbit(value.to_double()) && tensor.is_contiguous()) {
    std::memset(tensor.raw_data(), 0, static_cast<size_t>(tensor.plain_numel() * item_size(tensor.dtype())));
    return;
  }
  // An imaginary part that would be lost is an error.
  const bool loses_part = value.is_complex() && !tensor.is_complex() && tensor.dtype() != kBool;
  if (loses_part) return fill_values(tensor, value.to_double());
  IntSpan sizes = tensor.plain_sizes();
  alignas(16) char number[16];
  visit_dtype(value.dtype(), [&]<typename T>() { *reinterpret_cast<T*>(number) = value.to<T>(); });
  cpu::fill_strided({static_cast<char*>(tensor.raw_data()), tensor.dtype(), tensor.plain_strides().data()},
                    {sizes.data(), sizes.size()}, number, value.dtype());
}

void require_fillable(const Tensor& tensor, const Scalar& value) {
  // A single element of a half type takes the infinity instead, as PyTorch has it.
  const bool is_half = tensor.dtype() == kFloat16 || tensor.dtype() == kBFloat16;
  if (is_half && tensor.plain_numel() == 1) require_fits(value, kFloat64);
  else require_fits(value, tensor.dtype());
}

void fill_number(const Tensor& tensor, const Scalar& value) {
  require_fillable(tensor, value);
  fill_values(tensor, value);
}

PointwiseCall filling_call(int value, DType dtype) {
  PointwiseCall call(cpu::kFill, dtype, {});
  call.add_constant(value);
  return call;
}

void run_fill(const PointwiseCall& call, const Tensor& out, const Scalar& value) {
  invariant(call.kernel == &cpu::kCopy && call.compute == out.dtype(), "a fill that computes {} in {}",
            call.kernel->name, dtype_name(call.compute));
  fill_values(out, value);
}

}  // namespace weft
