#include "ops/support/masked_fill.h"

#include "ops/support/dense.h"
#include "ops/support/index_offsets.h"
#include "ops/support/pointwise.h"

namespace weft {
namespace {

// Element by element, since one that is not chosen may alias a chosen one.
void fill_chosen_in_place(const Tensor& target, const Tensor& mask, const Tensor& value) {
  const Tensor chosen = dense_as(mask, target.sizes(), kBool);
  const Tensor number = dense_as(value, target.dtype());
  const std::vector<int64_t> offsets = strided_offsets(target.plain_sizes(), target.plain_strides());
  const bool* is_chosen = chosen.data<bool>();
  visit_dtype(target.dtype(), [&]<typename T>() {
    T* data = static_cast<T*>(target.raw_data());
    const T filling = *static_cast<const T*>(number.raw_data());
    for (size_t i = 0; i < offsets.size(); ++i)
      if (is_chosen[i]) data[offsets[i]] = filling;
  });
}

}  // namespace

PointwiseCall masked_fill_call(const Tensor& self) { return {cpu::kWhere, self.dtype(), {1, 2, 0}}; }

void fill_chosen(const Tensor& self, const Tensor& mask, const Tensor& value, const Tensor& out) {
  if (repeats_elements(out)) return fill_chosen_in_place(out, mask, value);
  run_call(masked_fill_call(self), out, self, mask, value);
}

}  // namespace weft
