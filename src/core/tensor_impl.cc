#include "weft/core/tensor_impl.h"

#include <algorithm>
#include <atomic>
#include <functional>

#include "weft/base/error.h"
#include "weft/core/tensor.h"
#include "weft/core/view_step.h"

namespace weft {

AutogradMeta::~AutogradMeta() = default;
TensorBox::~TensorBox() = default;

constinit thread_local uint32_t detail::new_tensor_flags = 0;

TensorImpl::TensorImpl(Ref<Storage> storage, DType dtype, Device device)
    : flags_(detail::new_tensor_flags | (device.is_cpu() ? 0 : layer::kKernelDetour)),
      dtype_(dtype),
      device_(device),
      storage_(std::move(storage)) {}

TensorImpl::TensorImpl(Ref<Storage> storage, DType dtype, Device device, SymInts&& sizes, SymInts&& strides,
                       SymInt offset)
    : flags_(detail::new_tensor_flags | (device.is_cpu() ? 0 : layer::kKernelDetour)),
      dtype_(dtype),
      device_(device),
      storage_(std::move(storage)),
      offset_(std::move(offset)),
      sizes_(std::move(sizes)),
      strides_(std::move(strides)) {
  invariant(sizes_.size() == strides_.size(), "{} sizes but {} strides", sizes_.size(), strides_.size());
  note_symbolic();
}

TensorImpl::~TensorImpl() {
  if (!view) return;
  // A step that nobody else keeps takes itself off the base's list: one lock instead of two.
  if (view->use_count() == 1) view.reset();
  else view->forget_view();
}

SymInt TensorImpl::numel() const {
  if (!is_symbolic()) return numel_;
  SymInt product = 1;
  for (const SymInt& size : sizes_) product = product * size;
  return product;
}

void TensorImpl::note_symbolic() {
  bool symbolic = offset_.is_symbolic(), overflow = false;
  int64_t product = 1;
  for (size_t d = 0; d < sizes_.size(); ++d) {
    symbolic |= sizes_[d].is_symbolic() || strides_[d].is_symbolic();
    overflow |= __builtin_mul_overflow(product, static_cast<int64_t>(sizes_[d].identity()), &product);
  }
  if (symbolic) [[unlikely]]
    return set_flags(tensor_flag::kSymbolic | layer::kKernelDetour);
  if (overflow) [[unlikely]]
    fail("a tensor of sizes {} has more elements than an int64 can count", describe_sizes(sizes()));
  numel_ = product;
  if (flags_ & tensor_flag::kSymbolic) [[unlikely]] {
    clear_flags(tensor_flag::kSymbolic);
    if (device_.is_cpu() && !(flags_ & (tensor_flag::kConjugate | tensor_flag::kNegative)))
      clear_flags(layer::kKernelDetour);
  }
}

bool TensorImpl::looks_inside(SymIntSpan list) const noexcept {
  auto is_part = [&](const SymInts& own) {
    return std::greater_equal<>()(list.data(), own.begin()) && std::less<>()(list.data(), own.end());
  };
  return is_part(sizes_) || is_part(strides_);
}

void TensorImpl::set_geometry(SymIntSpan sizes, SymIntSpan strides, SymInt offset) {
  invariant(sizes.size() == strides.size(), "{} sizes but {} strides", sizes.size(), strides.size());
  if (looks_inside(sizes) || looks_inside(strides)) {
    SymInts new_sizes(sizes), new_strides(strides);
    sizes_ = std::move(new_sizes);
    strides_ = std::move(new_strides);
  } else {
    sizes_.assign(sizes.begin(), sizes.end());
    strides_.assign(strides.begin(), strides.end());
  }
  offset_ = std::move(offset);
  layout_.store(0, std::memory_order_relaxed);
  note_symbolic();
}

void TensorImpl::set_contiguous(SymIntSpan sizes) {
  if (looks_inside(sizes)) sizes_ = SymInts(sizes);
  else sizes_.assign(sizes.begin(), sizes.end());
  offset_ = 0;
  strides_ = contiguous_strides(this->sizes());
  note_symbolic();
  layout_.store(kContiguousKnown | kContiguous, std::memory_order_relaxed);
}

void TensorImpl::set_storage(Ref<Storage> storage) {
  storage_ = std::move(storage);
  if (storage_->device() == device_) return;
  device_ = storage_->device();
  bool is_plain = device_.is_cpu() &&
                  !(flags_ & (tensor_flag::kConjugate | tensor_flag::kNegative | tensor_flag::kSymbolic));
  if (is_plain) clear_flags(layer::kKernelDetour);
  else set_flags(layer::kKernelDetour);
}

namespace {

// Whether the strides are those of memory where `order` lists dims from the fastest to the slowest. Dims of
// size 1 may have any stride. Undecided symbolic sizes answer no, without a guard.
template <typename Order>
bool is_dense_in_order(SymIntSpan sizes, SymIntSpan strides, const Order& order) {
  SymInt expected = 1;
  for (auto d : order) {
    if (guard_or(sizes[d] == 1, false)) continue;
    if (!guard_or(strides[d] == expected, false)) return false;
    expected = expected * sizes[d];
  }
  return true;
}

bool is_empty(SymIntSpan sizes) {
  for (const SymInt& size : sizes)
    if (guard_or(size == 0, false)) return true;
  return false;
}

}  // namespace

bool TensorImpl::decide_contiguous() const {
  bool contiguous = true;
  if (!is_symbolic()) {
    int64_t expected = 1;
    for (size_t d = sizes_.size(); numel_ != 0 && d-- > 0;) {
      int64_t size = sizes_[d].plain();
      if (size == 1) continue;
      if (strides_[d].plain() != expected) {
        contiguous = false;
        break;
      }
      expected *= size;
    }
  } else {
    SmallVector<size_t, 6> order;
    for (size_t d = sizes_.size(); d-- > 0;) order.push_back(d);
    contiguous = is_empty(sizes()) || is_dense_in_order(sizes(), strides(), order);
  }
  layout_.store(static_cast<uint8_t>(kContiguousKnown | (contiguous ? kContiguous : 0)),
                std::memory_order_relaxed);
  return contiguous;
}

void* TensorImpl::place_of_nothing() const {
  // Kernels add offsets to where a tensor begins and copy nothing from there, neither of which null allows.
  alignas(64) static char nothing[64];
  if (!is_symbolic() && numel_ == 0) return nothing;
  const std::string text = std::string(short_name(dtype_)) + SizesText{sizes()}.str();
  if (storage_->has_memory())
    fail("{} has no elements to read or write: its storage has 0 bytes. Resize the storage first", text);
  fail("{} has no elements to read or write: it stands for a tensor without memory", text);
}

bool TensorImpl::is_contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::kContiguous || format == MemoryFormat::kPreserve) return is_contiguous();
  return has_format(sizes(), strides(), format);
}

bool TensorImpl::is_non_overlapping_and_dense() const {
  if (is_contiguous()) return true;
  SmallVector<size_t, 6> order;
  for (size_t d = 0; d < sizes_.size(); ++d)
    if (!guard_or(sizes_[d] == 1, false)) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return guard_or(strides_[a] < strides_[b], false); });
  return is_empty(sizes()) || is_dense_in_order(sizes(), strides(), order);
}

uint64_t TensorImpl::serial() const {
  static std::atomic<uint64_t> next{1};
  uint64_t known = serial_.load(std::memory_order_relaxed);
  if (known) return known;
  const uint64_t fresh = next.fetch_add(1, std::memory_order_relaxed);
  // Where another thread was first, the number that it gave counts.
  return serial_.compare_exchange_strong(known, fresh, std::memory_order_relaxed) ? fresh : known;
}

namespace {

// `strides` in row-major order; false, with nothing decided, where a size is symbolic or the product
// overflows.
bool try_plain_strides(SymIntSpan sizes, SymInts& strides) {
  int64_t running = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = running;
    if (sizes[d].is_symbolic()) return false;
    int64_t size = sizes[d].plain();
    if (size > 1 && __builtin_mul_overflow(running, size, &running)) return false;
  }
  return true;
}

}  // namespace

SymInts contiguous_strides(SymIntSpan sizes) {
  SymInts strides(sizes.size());
  if (try_plain_strides(sizes, strides)) [[likely]]
    return strides;
  SymInt running = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = running;
    if (d == 0) break;
    if (sizes[d].is_symbolic() || running.is_symbolic()) {
      running = running * max(sizes[d], SymInt(1));
      continue;
    }
    int64_t product = running.plain();
    require(!__builtin_mul_overflow(product, std::max<int64_t>(sizes[d].plain(), 1), &product),
            "a tensor of sizes {} has more elements than an int64 can count", describe_sizes(sizes));
    running = product;
  }
  return strides;
}

namespace {
// Dims from the fastest to the slowest in memory: channels, then space from the last dim up, then batch.
SmallVector<size_t, 6> channels_last_order(size_t rank) {
  SmallVector<size_t, 6> order{1};
  for (size_t d = rank - 1; d >= 2; --d) order.push_back(d);
  order.push_back(0);
  return order;
}
size_t rank_of(MemoryFormat format) { return format == MemoryFormat::kChannelsLast3d ? 5 : 4; }
}  // namespace

SymInts strides_of_format(SymIntSpan sizes, MemoryFormat format) {
  if (format == MemoryFormat::kContiguous || format == MemoryFormat::kPreserve)
    return contiguous_strides(sizes);
  require(sizes.size() == rank_of(format), "required rank {} tensor to use {} format, but got sizes {}",
          rank_of(format), memory_format_name(format), describe_sizes(sizes));
  SymInts strides(sizes.size());
  SymInt running = 1;
  for (size_t d : channels_last_order(sizes.size())) {
    strides[d] = running;
    if (d != 0) running = running * sizes[d];
  }
  return strides;
}

bool has_format(SymIntSpan sizes, SymIntSpan strides, MemoryFormat format) {
  if (sizes.size() != rank_of(format)) return false;
  SymInt expected = 1;
  for (size_t d : channels_last_order(sizes.size())) {
    if (guard_or(sizes[d] == 1, false)) continue;
    if (!guard_or(strides[d] == expected, false)) return false;
    expected = expected * sizes[d];
  }
  return true;
}

}  // namespace weft
