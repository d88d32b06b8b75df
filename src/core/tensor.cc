#include "weft/core/tensor.h"

#include <fmt/format.h>

#include "weft/core/from_data.h"

namespace weft {

SymInt TensorWatcher::size(const TensorImpl& tensor, int64_t dim) {
  return sizes(tensor)[static_cast<size_t>(normalize_dim(dim, tensor.dim()))];
}

SymInt Tensor::size(int64_t dim) const {
  if (is_watched() && detail::tensor_watcher) return detail::tensor_watcher->size(*impl_, dim);
  return sizes()[static_cast<size_t>(normalize_dim(dim, this->dim()))];
}
SymInt Tensor::stride(int64_t dim) const {
  return strides()[static_cast<size_t>(normalize_dim(dim, this->dim()))];
}

constinit thread_local TensorWatcher* detail::tensor_watcher = nullptr;

SymIntSpan Tensor::watched_sizes() const {
  return detail::tensor_watcher ? detail::tensor_watcher->sizes(*impl_) : impl_->sizes();
}
SymInt Tensor::watched_numel() const {
  return detail::tensor_watcher ? detail::tensor_watcher->numel(*impl_) : impl_->numel();
}
void Tensor::ask_watcher(const char* what) const {
  if (detail::tensor_watcher) detail::tensor_watcher->about_to_read(*impl_, what);
}

void Tensor::refuse_undefined() {
  fail(
      "the tensor is undefined: it has no type, sizes or data. A gradient is so before backward() reaches "
      "its tensor; "
      "ask defined() first");
}

void Tensor::refuse_symbolic() const {
  unsupported(
      "the sizes of {} are symbolic here, and plain integers were asked for; use sizes() instead of "
      "plain_sizes()",
      describe(*this));
}

void* Tensor::checked_data(DType expected) const {
  require(defined(), "data: the tensor is undefined");
  require(dtype() == expected, "data: expected a tensor of {} but it is {}; convert it with to({}) first",
          dtype_name(expected), describe(*this), dtype_name(expected));
  require(storage()->has_memory(), "data: {} on {} has no memory; only its shape is known", describe(*this),
          device().to_string());
  return impl_->data();
}

TensorSpec spec_of(const Tensor& tensor) {
  return {tensor.dtype(), tensor.device(), SymInts(tensor.sizes()), SymInts(tensor.strides())};
}

TensorSpec contiguous_spec(SymIntSpan sizes, DType dtype, Device device) {
  return {dtype, device, SymInts(sizes), contiguous_strides(sizes)};
}

namespace {

// The bytes that a dense or strided geometry reaches; symbolic ones need no memory and count as 0.
size_t bytes_reached(SymIntSpan sizes, SymIntSpan strides, DType dtype) {
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d].is_symbolic() || strides[d].is_symbolic() || sizes[d].plain() == 0) return 0;
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t reach = 0;
    bool overflow = __builtin_mul_overflow(sizes[d].plain() - 1, strides[d].plain(), &reach);
    overflow |= __builtin_add_overflow(last, reach, &last);
    require(!overflow && last <= INT64_MAX / 32,
            "a tensor of sizes {} and type {} needs more bytes than can be addressed", describe_sizes(sizes),
            dtype_name(dtype));
  }
  return static_cast<size_t>(last + 1) * static_cast<size_t>(item_size(dtype));
}

void refuse_negative_sizes(SymIntSpan sizes) {
  for (const SymInt& size : sizes)
    if (!size.is_symbolic())
      require(size.plain() >= 0, "Trying to create tensor with negative dimension {}: {}", size.plain(),
              describe_sizes(sizes));
}

}  // namespace

Tensor allocate(TensorSpec spec) {
  refuse_negative_sizes(spec.sizes);
  size_t bytes = bytes_reached(spec.sizes, spec.strides, spec.dtype);
  return Tensor(make_ref<TensorImpl>(Storage::allocate(bytes, spec.device), spec.dtype, spec.device,
                                     std::move(spec.sizes), std::move(spec.strides)));
}

Tensor allocate_contiguous(SymIntSpan sizes, DType dtype, Device device) {
  size_t elements = 1;
  for (const SymInt& size : sizes) {
    if (size.is_symbolic() || size.plain() < 0 || size.plain() >= (int64_t{1} << 31)) [[unlikely]]
      return allocate(contiguous_spec(sizes, dtype, device));
    if (__builtin_mul_overflow(elements, static_cast<size_t>(size.plain()), &elements) || elements >> 55)
      return allocate(contiguous_spec(sizes, dtype, device));
  }
  size_t bytes = elements * static_cast<size_t>(item_size(dtype));
  auto impl = make_ref<TensorImpl>(Storage::allocate(bytes, device), dtype, device);
  impl->set_contiguous(sizes);
  return Tensor(std::move(impl));
}

Tensor alias_with(const Tensor& source, SymIntSpan sizes, SymIntSpan strides, const SymInt& offset) {
  return alias_with(source, SymInts(sizes), SymInts(strides), offset);
}

Tensor alias_with(const Tensor& source, SymInts&& sizes, SymInts&& strides, SymInt offset) {
  auto impl = make_ref<TensorImpl>(source.storage(), source.dtype(), source.device(), std::move(sizes),
                                   std::move(strides), std::move(offset));
  constexpr uint32_t kept = tensor_flag::kConjugate | tensor_flag::kNegative | layer::kFake |
                            layer::kKernelDetour | tensor_flag::kInference;
  impl->clear_flags(tensor_flag::kInference);  // as its source, whatever the mode
  impl->set_flags(source.flags() & kept);
  return Tensor(std::move(impl));
}

void SymIntSpan::refuse_symbolic() const {
  for (const SymInt& value : *this)
    if (const std::optional<int64_t> constant = value.maybe_plain(); constant && value.is_symbolic())
      fail("a size or index of {} is out of range", *constant);
  invariant(false, "the list {} depends on symbols, but is read as integers", SizesText{*this}.str());
  __builtin_unreachable();
}

std::string SizesText::str() const {
  std::string text = "[";
  for (size_t d = 0; d < sizes.size(); ++d) text += (d ? ", " : "") + sizes[d].to_string();
  return text + "]";
}

std::string TensorText::str() const {
  if (!tensor.defined()) return "undefined";
  return std::string(short_name(tensor.dtype())) + SizesText{tensor.sizes()}.str();
}

int64_t normalize_dim(int64_t dim, int64_t rank) {
  int64_t range = rank == 0 ? 1 : rank;
  require(dim >= -range && dim < range,
          "Dimension out of range (expected to be in range of [{}, {}], but got {})", -range, range - 1, dim);
  return dim < 0 ? dim + range : dim;
}

}  // namespace weft
