// Factories and fills as `full` and `full_like`, and what becomes of single numbers.
#include <algorithm>

#include "ops/decompositions/decompositions.h"
#include "ops/decompositions/steps.h"
#include "ops/support/pointwise.h"
#include "ops/support/shapes.h"
#include "weft/base/error.h"
#include "weft/ops/functions.h"
#include "weft/ops/operators.h"

namespace weft::ops {
namespace {

using MaybeType = std::optional<DType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using MaybeFlag = std::optional<bool>;
using MaybeFormat = std::optional<MemoryFormat>;

std::optional<Flag> flag(MaybeFlag given) { return given ? std::optional<Flag>(*given) : std::nullopt; }
Scalar one_of(DType type) { return type == kBool ? Scalar(true) : Scalar(1); }
Scalar zero_of(DType type) { return type == kBool ? Scalar(false) : Scalar(0); }

}  // namespace

Tensor zeros_parts(SymIntSpan size, MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeFlag pin) {
  const DType type = dtype.value_or(kFloat32);
  return full(size, zero_of(type), type, layout.value_or(Layout::kStrided), device,
              flag(pin.value_or(false)));
}
Tensor ones_parts(SymIntSpan size, MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeFlag pin) {
  const DType type = dtype.value_or(kFloat32);
  return full(size, one_of(type), type, layout.value_or(Layout::kStrided), device, flag(pin.value_or(false)));
}
Tensor zeros_like_parts(const Tensor& self, MaybeType dtype, MaybeLayout layout, MaybeDevice device,
                        MaybeFlag pin, MaybeFormat format) {
  return full_like(self, zero_of(dtype.value_or(self.dtype())), dtype, layout, device, flag(pin), format);
}
Tensor ones_like_parts(const Tensor& self, MaybeType dtype, MaybeLayout layout, MaybeDevice device,
                       MaybeFlag pin, MaybeFormat format) {
  return full_like(self, one_of(dtype.value_or(self.dtype())), dtype, layout, device, flag(pin), format);
}
Tensor new_full_parts(const Tensor& self, SymIntSpan size, const Scalar& value, MaybeType dtype,
                      MaybeLayout layout, MaybeDevice device, MaybeFlag pin) {
  return full(size, value, dtype.value_or(self.dtype()), layout, device.value_or(self.device()), flag(pin));
}
Tensor new_zeros_parts(const Tensor& self, SymIntSpan size, MaybeType dtype, MaybeLayout layout,
                       MaybeDevice device, MaybeFlag pin) {
  return new_full_parts(self, size, zero_of(dtype.value_or(self.dtype())), dtype, layout, device, pin);
}
Tensor new_ones_parts(const Tensor& self, SymIntSpan size, MaybeType dtype, MaybeLayout layout,
                      MaybeDevice device, MaybeFlag pin) {
  return new_full_parts(self, size, one_of(dtype.value_or(self.dtype())), dtype, layout, device, pin);
}
// Dense memory in the order of dims that the strides of `self` suggest.
Tensor empty_like_parts(const Tensor& self, MaybeType dtype, MaybeLayout layout, MaybeDevice device,
                        MaybeFlag pin, MaybeFormat format) {
  const DType type = dtype.value_or(self.dtype());
  const Device where = device.value_or(self.device());
  if (format && *format != MemoryFormat::kPreserve)
    return empty(self.sizes(), type, layout, where, flag(pin), format);
  const SymInts strides = preserved_strides(self);
  Ints order;
  for (int64_t d = 0; d < self.dim(); ++d) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return guard_or(strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)], false);
  });
  return empty_permuted(self.sizes(), order, type, layout, where, flag(pin));
}

Tensor fill_scalar_parts(const Tensor& self, const Scalar& value) { return full_like(self, value); }
Tensor fill_tensor_parts(const Tensor& self, const Tensor& value) {
  require(value.dim() == 0, "fill only supports 0-dimension value tensor but got tensor with {} dimensions",
          value.dim());
  return copy(self, value);
}
Tensor zero_parts(const Tensor& self) { return full_like(self, zero_of(self.dtype())); }

Tensor arange_parts(const Scalar& end, MaybeType dtype, MaybeLayout layout, MaybeDevice device,
                    MaybeFlag pin) {
  return arange(0, end, 1, dtype, layout, device, flag(pin));
}
Tensor arange_start_parts(const Scalar& start, const Scalar& end, MaybeType dtype, MaybeLayout layout,
                          MaybeDevice device, MaybeFlag pin) {
  return arange(start, end, 1, dtype, layout, device, flag(pin));
}

// A number decides by its category only: the tensor's own type where that can hold it.
Tensor masked_fill_scalar_parts(const Tensor& self, const Tensor& mask, const Scalar& value) {
  Tensor number = scalar_tensor(value, self.dtype(), Layout::kStrided, self.device());
  return where(mask, number, self);
}
Tensor masked_fill_tensor_parts(const Tensor& self, const Tensor& mask, const Tensor& value) {
  return where(mask, value.to(self.dtype()), self);
}
Tensor bernoulli_parts(const Tensor& self, const MaybeGenerator& generator) {
  Tensor drawn = generator ? rand(self.sizes(), generator, kFloat32, std::nullopt, self.device())
                           : rand(self.sizes(), kFloat32, std::nullopt, self.device());
  return (drawn < self).to(self.dtype());
}

}  // namespace weft::ops
