#include "ops/support/preserved_copy.h"

#include <cstring>

#include "ops/structured.h"
#include "ops/support/shapes.h"

namespace weft {

TensorSpec preserved_copy_spec(const Tensor& self) {
  return {self.dtype(), self.device(), SymInts(self.sizes()),
          repeats_elements(self) ? preserved_strides(self) : SymInts(self.strides())};
}

Tensor preserved_copy(const Tensor& self) {
  if (repeats_elements(self)) {
    Tensor copy = allocate(preserved_copy_spec(self));
    copy_values(copy, self);
    return copy;
  }
  // The whole storage is copied, as gaps and what is ahead may be read through other strides.
  const int64_t elements = static_cast<int64_t>(self.storage()->bytes()) / item_size(self.dtype());
  Tensor memory = allocate_contiguous({elements}, self.dtype(), self.device());
  const char* begin =
      static_cast<const char*>(self.raw_data()) - self.storage_offset().plain() * item_size(self.dtype());
  if (elements > 0)
    std::memcpy(memory.raw_data(), begin, static_cast<size_t>(elements * item_size(self.dtype())));
  return alias_with(memory, self.sizes(), self.strides(), self.storage_offset());
}

}  // namespace weft
