#include "io/stored_tensor.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/error.h"

namespace weft {

size_t element_alignment(DType dtype) {
  const auto size = static_cast<size_t>(item_size(dtype));
  return is_complex(dtype) ? size / 2 : size;
}

StoredLayout row_major(Ints sizes) {
  StoredLayout layout{std::move(sizes), {}, 0};
  layout.strides.resize(layout.sizes.size());
  int64_t step = 1;
  for (size_t i = layout.sizes.size(); i-- > 0;) {
    layout.strides[i] = step;
    // An overflow is found where the elements are looked for.
    if (__builtin_mul_overflow(step, std::max<int64_t>(layout.sizes[i], 1), &step)) step = INT64_MAX;
  }
  return layout;
}

Tensor tensor_over(Ref<Storage> storage, DType dtype, const StoredLayout& layout, std::string_view what) {
  auto refuse = [&](std::string_view reason) { throw FormatError(fmt::format("{}: {}", what, reason)); };
  const auto &sizes = layout.sizes, &strides = layout.strides;
  if (sizes.size() != strides.size())
    refuse(fmt::format("{} sizes have {} strides", sizes.size(), strides.size()));
  bool is_empty = false, overflow = false;
  int64_t last = layout.offset, count = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || strides[i] < 0)
      refuse(fmt::format("sizes {} and strides {} must not be negative", describe_sizes(IntSpan(sizes)).str(),
                         describe_sizes(IntSpan(strides)).str()));
    is_empty |= sizes[i] == 0;
    int64_t step = 0;
    overflow |= __builtin_mul_overflow(std::max<int64_t>(sizes[i] - 1, 0), strides[i], &step) ||
                __builtin_add_overflow(last, step, &last) ||
                __builtin_mul_overflow(count, std::max<int64_t>(sizes[i], 1), &count);
  }
  if (layout.offset < 0) refuse(fmt::format("the offset {} must not be negative", layout.offset));
  const int64_t elements = static_cast<int64_t>(storage->bytes()) / item_size(dtype);
  if (overflow || (!is_empty && last >= elements))
    refuse(fmt::format("sizes {} with strides {} at offset {} reach beyond the {} elements that are there",
                       describe_sizes(IntSpan(sizes)).str(), describe_sizes(IntSpan(strides)).str(),
                       layout.offset, elements));
  auto impl = make_ref<TensorImpl>(std::move(storage), dtype, kCpu);
  impl->set_geometry(IntSpan(sizes), IntSpan(strides), layout.offset);
  return Tensor(std::move(impl));
}

void check_bools(const Storage& storage, std::string_view what) {
  const auto* values = static_cast<const uint8_t*>(storage.data());
  if (!std::all_of(values, values + storage.bytes(), [](uint8_t v) { return v <= 1; }))
    throw FormatError(fmt::format("{}: a bool is neither 0 nor 1", what));
}

}  // namespace weft
