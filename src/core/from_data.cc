#include "weft/core/from_data.h"

#include <cstring>
#include <memory>

#include "weft/core/tensor_impl.h"

namespace weft {

constinit thread_local LiteralObserver* detail::literal_observer = nullptr;

namespace {

struct Blob {
  void* data;
  std::function<void(void*)> deleter;
};
void release_blob(void* context) {
  const std::unique_ptr<Blob> blob(static_cast<Blob*>(context));
  blob->deleter(blob->data);
}

struct BlobLayout {
  SymInts strides;
  size_t bytes;  // from the first element to the end of the last
};

BlobLayout layout_of(const void* data, IntSpan sizes, DType dtype, const BlobOptions& options) {
  for (int64_t size : sizes)
    require(size >= 0, "from_blob: sizes must not be negative, but are {}", describe_sizes(sizes));
  BlobLayout layout{contiguous_strides(sizes), 0};
  if (options.strides) {
    require(options.strides->size() == sizes.size(), "from_blob: {} strides do not fit sizes {}",
            options.strides->size(), describe_sizes(sizes));
    layout.strides = SymInts(options.strides->begin(), options.strides->end());
  }
  int64_t last = 0;
  bool is_empty = false, overflow = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t stride = layout.strides[i].plain();
    require(stride >= 0, "from_blob: strides must not be negative, but are {}",
            describe_sizes(layout.strides));
    int64_t step = 0;
    is_empty |= sizes[i] == 0;
    overflow |= __builtin_mul_overflow(std::max<int64_t>(sizes[i] - 1, 0), stride, &step) ||
                __builtin_add_overflow(last, step, &last);
  }
  overflow |= __builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, item_size(dtype), &last);
  require(is_empty || !overflow, "from_blob: sizes {} with strides {} have more bytes than can be addressed",
          describe_sizes(sizes), describe_sizes(layout.strides));
  require(is_empty || data, "from_blob: the memory of a tensor of sizes {} is a null pointer",
          describe_sizes(sizes));
  layout.bytes = is_empty ? 0 : static_cast<size_t>(last);
  return layout;
}

// The elements in memory of their own, in the same layout: a graph outlives what the caller lends.
Tensor copy_of(const void* data, IntSpan sizes, DType dtype, const BlobLayout& layout) {
  Ref<Storage> storage = Storage::allocate(layout.bytes, kCpu);
  if (layout.bytes > 0) std::memcpy(storage->data(), data, layout.bytes);
  auto impl = make_ref<TensorImpl>(std::move(storage), dtype, kCpu);
  impl->set_geometry(sizes, layout.strides);
  return Tensor(std::move(impl));
}

}  // namespace

Tensor from_blob(void* data, IntSpan sizes, DType dtype, BlobOptions options) {
  const BlobLayout layout = layout_of(data, sizes, dtype, options);
  if (detail::literal_observer) {
    Tensor copy = copy_of(data, sizes, dtype, layout);
    if (options.deleter) options.deleter(data);
    return detail::literal_observer->literal(copy);
  }
  void* context = options.deleter ? new Blob{data, std::move(options.deleter)} : nullptr;
  auto impl = make_ref<TensorImpl>(
      Storage::borrow(data, layout.bytes, kCpu, context ? &release_blob : nullptr, context), dtype, kCpu);
  impl->set_geometry(sizes, layout.strides);
  return Tensor(std::move(impl));
}

}  // namespace weft
