#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "weft/base/detail/object_pool.h"
#include "weft/base/detail/small_vector.h"
#include "weft/base/device.h"
#include "weft/base/dtype.h"
#include "weft/base/ref.h"
#include "weft/core/spans.h"
#include "weft/core/storage.h"

namespace weft {

using SymInts = SmallVector<SymInt, 5>;
using Ints = SmallVector<int64_t, 6>;

// Why an operator call must leave the fast path. The thread's active layers and the arguments' flags share
// these bits, so that one OR decides; a higher bit is met first (the order of DESIGN: "the layer stack").
namespace layer {
inline constexpr uint32_t kKernelDetour =
    1u << 0;  // lazy conj/neg, symbolic sizes, `meta` and `sim`: looked at beside the kernel
inline constexpr uint32_t kFake = 1u << 1;
inline constexpr uint32_t kRecorderLower = 1u << 2;
inline constexpr uint32_t kFunctionalizeLower = 1u << 3;
inline constexpr uint32_t kExtension = 1u << 4;
inline constexpr uint32_t kModes = 1u << 5;
inline constexpr uint32_t kAutograd = 1u << 6;
inline constexpr uint32_t kComposites = 1u << 7;
inline constexpr uint32_t kAutocast = 1u << 8;
inline constexpr uint32_t kRecorderUpper = 1u << 9;
inline constexpr uint32_t kFunctionalizeUpper = 1u << 10;
inline constexpr uint32_t kLevels = 1u << 11;
inline constexpr uint32_t kAll = (1u << 12) - 1;
inline constexpr uint32_t kNotLayers =
    1u << 20;  // other reasons to leave the fast path: tensor_flag::kInference
// Everything below a layer, that layer excluded.
constexpr uint32_t below(uint32_t bit) { return (bit - 1) | kNotLayers; }
constexpr uint32_t at_and_below(uint32_t bit) { return ((bit << 1) - 1) | kNotLayers; }
}  // namespace layer

// Set beside the layer bits in a tensor's flags.
namespace tensor_flag {
inline constexpr uint32_t kConjugate = 1u << 16;      // the values are the conjugates of what memory holds
inline constexpr uint32_t kNegative = 1u << 17;       // the values are the negatives of what memory holds
inline constexpr uint32_t kSymbolic = 1u << 18;       // some size, stride or the offset is symbolic
inline constexpr uint32_t kWrappedNumber = 1u << 19;  // made from a C++ number: weak in type promotion
inline constexpr uint32_t kInference = 1u << 20;      // made under inference_mode: no version, no views
inline constexpr uint32_t kWatched = 1u << 21;        // questions about its shape go to the TensorWatcher
}  // namespace tensor_flag

class Tensor;

// What autograd keeps for a tensor; the autograd layer derives from it.
struct AutogradMeta : RefCounted {
  virtual ~AutogradMeta();
  // The tensor is no longer the result of anything.
  virtual void forget_history() {}
};

// A tensor that stands for other tensors: a user's extension, a transform level's wrapper, or a functional
// wrapper. The flags of the tensor say which layer answers for it.
struct TensorBox : RefCounted {
  virtual ~TensorBox();
  // The one tensor of the layer below that it stands for, if it is of that kind.
  virtual const Tensor* stands_for() const { return nullptr; }
};

struct ViewStep;
class TensorImpl;

// Observes what the program asks of watched tensors. A trace answers with sizes that know their source;
// a tensor that is only a name has no answer to some of the questions.
class TensorWatcher {
 public:
  virtual ~TensorWatcher() = default;
  virtual SymIntSpan sizes(const TensorImpl& tensor) = 0;
  // `dim` as the program wrote it, possibly counted from the end.
  virtual SymInt size(const TensorImpl& tensor, int64_t dim);
  virtual SymInt numel(const TensorImpl& tensor) = 0;
  // Before dtype, device, rank or strides ("dtype()", ...) are read: an error where they are not known.
  virtual void about_to_read(const TensorImpl& tensor, const char* what) = 0;
};

namespace detail {
// Whom watched tensors of this thread ask; null: they answer themselves.
extern constinit thread_local TensorWatcher* tensor_watcher;

// Flags that new tensors of this thread begin with.
extern constinit thread_local uint32_t new_tensor_flags;
}  // namespace detail

class TensorImpl final : public RefCounted, public Pooled {
 public:
  TensorImpl(Ref<Storage> storage, DType dtype, Device device);
  TensorImpl(Ref<Storage> storage, DType dtype, Device device, SymInts&& sizes, SymInts&& strides,
             SymInt offset = 0);
  ~TensorImpl();
  TensorImpl(const TensorImpl&) = delete;

  uint32_t flags() const noexcept { return flags_; }
  void set_flags(uint32_t bits) noexcept { flags_ |= bits; }
  void clear_flags(uint32_t bits) noexcept { flags_ &= ~bits; }

  DType dtype() const noexcept { return dtype_; }
  Device device() const noexcept { return device_; }
  int64_t dim() const noexcept { return static_cast<int64_t>(sizes_.size()); }
  SymIntSpan sizes() const noexcept { return ListSpan<SymInt>(sizes_.data(), sizes_.size()); }
  SymIntSpan strides() const noexcept { return ListSpan<SymInt>(strides_.data(), strides_.size()); }
  const SymInt& storage_offset() const noexcept { return offset_; }
  bool is_symbolic() const noexcept { return flags_ & tensor_flag::kSymbolic; }
  SymInt numel() const;
  // For tensors without symbolic sizes.
  int64_t plain_numel() const noexcept { return numel_; }

  // Replaces the geometry and recomputes all that follows from it.
  void set_geometry(SymIntSpan sizes, SymIntSpan strides, SymInt offset = 0);
  // Row-major strides over `sizes`: the common case, without a look at strides.
  void set_contiguous(SymIntSpan sizes);
  // For kinds of tensors whose elements are not as many as their sizes say; after the geometry.
  void set_numel(int64_t numel) noexcept { numel_ = numel; }
  void set_storage(Ref<Storage> storage);
  void set_dtype(DType dtype) noexcept { dtype_ = dtype; }

  bool is_contiguous() const {
    const uint8_t layout = layout_.load(std::memory_order_relaxed);
    return (layout & kContiguousKnown) ? (layout & kContiguous) : decide_contiguous();
  }
  bool is_contiguous(MemoryFormat format) const;
  // Some permutation of the dims is contiguous: every byte between the first and last element is an element.
  bool is_non_overlapping_and_dense() const;

  const Ref<Storage>& storage() const noexcept { return storage_; }
  // Never null: a tensor without elements points to memory that nobody reads. An error for elements that are
  // nowhere: of a tensor without memory, or whose storage was emptied.
  void* data() const {
    char* const start = static_cast<char*>(storage_->data());
    if (!start) [[unlikely]]
      return place_of_nothing();
    return start + offset_.plain() * item_size(dtype_);
  }

  uint32_t version() const noexcept { return own_version_ ? *own_version_ : storage_->version(); }
  void bump_version() noexcept {
    if (own_version_) ++*own_version_;
    else storage_->bump_version();
  }
  // From now on writes through this tensor are counted apart from its storage's (`.data`).
  void detach_version() { own_version_ = version(); }
  bool has_own_version() const noexcept { return own_version_.has_value(); }

  // A number that no other tensor of the process ever had or will have; given out on first use.
  uint64_t serial() const;
  // For an internal copy that stands for the very same value.
  void share_serial(const TensorImpl& other) { serial_.store(other.serial(), std::memory_order_relaxed); }

  // Makes this tensor one that requires no gradient; what its `.grad` holds stays.
  void forget_history() {
    clear_flags(layer::kAutograd);
    if (autograd) autograd->forget_history();
  }

  Ref<AutogradMeta> autograd;
  Ref<TensorBox> box;
  Ref<ViewStep> view;  // how this tensor was made from its base; null for a base

 private:
  friend struct ViewStep;
  enum LayoutBits : uint8_t { kContiguousKnown = 1, kContiguous = 2 };
  bool decide_contiguous() const;
  void* place_of_nothing() const;
  void note_symbolic();
  // Whether a span of sizes or strides is part of this tensor's own.
  bool looks_inside(SymIntSpan list) const noexcept;

  uint32_t flags_ = 0;
  DType dtype_;
  Device device_;
  // Found out when first asked for, by any of the threads that read the tensor: all of them find the same.
  mutable std::atomic<uint8_t> layout_ = 0;
  Ref<Storage> storage_;
  SymInt offset_ = 0;
  int64_t numel_ = 0;
  SymInts sizes_, strides_;
  std::optional<uint32_t> own_version_;
  mutable std::atomic<uint64_t> serial_ = 0;
  // The views of this base, so that a write which gives it a history can reach them.
  mutable ViewStep* views_ = nullptr;
  mutable std::atomic_flag views_lock_ = ATOMIC_FLAG_INIT;
};

// Row-major strides for `sizes`; a dim of size 0 counts as 1, as in PyTorch.
SymInts contiguous_strides(SymIntSpan sizes);
// Strides of `format` for sizes of 4 (channels_last) or 5 dims (channels_last_3d).
SymInts strides_of_format(SymIntSpan sizes, MemoryFormat format);
// Whether memory laid out as (sizes, strides) has the dense layout of `format`.
bool has_format(SymIntSpan sizes, SymIntSpan strides, MemoryFormat format);

}  // namespace weft
