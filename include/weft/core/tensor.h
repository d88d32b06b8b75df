#pragma once

#include <array>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "weft/base/random.h"
#include "weft/core/option_types.h"
#include "weft/core/scalar.h"
#include "weft/core/tensor_impl.h"

namespace weft {

namespace autograd {
class HookHandle;
}

// A reference-counted handle (8 bytes) to a tensor: an n-dimensional array, or nothing. Copies share it.
//
// Operators are methods (`x.add(y)`) and free functions (`add(x, y)`) made from their ATen schemas; what
// stands here by hand is what a tensor *is*: its type, geometry, memory and gradient state.
class Tensor {
 public:
  Tensor() noexcept = default;
  explicit Tensor(Ref<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}

  bool defined() const noexcept { return static_cast<bool>(impl_); }
  TensorImpl* impl() const noexcept { return impl_.get(); }
  const Ref<TensorImpl>& ref() const& noexcept { return impl_; }
  Ref<TensorImpl> ref() && noexcept { return std::move(impl_); }
  // The very same tensor, not merely equal values.
  bool is_same(const Tensor& other) const noexcept { return impl_ == other.impl_; }
  uint32_t flags() const noexcept { return impl_ ? impl_->flags() : 0; }

  DType dtype() const { return asked("dtype()").dtype(); }
  Device device() const { return asked("device()").device(); }
  int64_t dim() const { return asked("dim()").dim(); }
  SymIntSpan sizes() const { return is_watched() ? watched_sizes() : impl_->sizes(); }
  SymIntSpan strides() const { return asked("strides()").strides(); }
  // A dimension may be counted from the end (-1 is the last).
  SymInt size(int64_t dim) const;
  SymInt stride(int64_t dim) const;
  SymInt numel() const { return is_watched() ? watched_numel() : impl_->numel(); }
  const SymInt& storage_offset() const { return the_impl().storage_offset(); }
  bool is_symbolic() const { return the_impl().is_symbolic(); }
  // The geometry as integers; an error when it is symbolic.
  IntSpan plain_sizes() const { return require_plain().sizes().unsafe_plain(); }
  IntSpan plain_strides() const { return require_plain().strides().unsafe_plain(); }
  int64_t plain_numel() const { return require_plain().plain_numel(); }

  bool is_contiguous(MemoryFormat format = MemoryFormat::kContiguous) const {
    return the_impl().is_contiguous(format);
  }
  bool is_floating_point() const { return weft::is_floating(dtype()); }
  bool is_complex() const { return weft::is_complex(dtype()); }
  bool is_conj() const { return flags() & tensor_flag::kConjugate; }
  bool is_neg() const { return flags() & tensor_flag::kNegative; }

  const Ref<Storage>& storage() const { return the_impl().storage(); }
  // The first element. An error for tensors without memory or of another type.
  template <typename T>
  T* data() const {
    return static_cast<T*>(checked_data(dtype_of<T>));
  }
  void* raw_data() const { return the_impl().data(); }

  // Made under InferenceMode: keeps no history, now or later.
  bool is_inference() const { return flags() & tensor_flag::kInference; }

  uint32_t version() const { return the_impl().version(); }
  bool is_view() const { return static_cast<bool>(the_impl().view); }

  // --- gradients (defined by the autograd layer) ---
  bool requires_grad() const { return flags() & layer::kAutograd; }
  const Tensor& set_requires_grad(bool requires_grad = true) const;
  const Tensor& requires_grad_(bool requires_grad = true) const { return set_requires_grad(requires_grad); }
  bool is_leaf() const;
  Tensor grad() const;
  void set_grad(const Tensor& grad) const;
  // Computes d(this)/d(leaves) and adds it to each leaf's `.grad`; `gradient` defaults to 1 for one element.
  void backward(const Tensor& gradient = {}, bool retain_graph = false, bool create_graph = false) const;

  // Calls `hook` with the gradient of this tensor in every backward; what it returns, if defined, replaces
  // it.
  autograd::HookHandle register_hook(std::function<Tensor(const Tensor&)> hook) const;

  // The one element as a C++ number, x.item<double>(); needs weft/ops/conversions.h.
  template <typename T>
  T item() const;

  // Parts along the first dim, as Python's brackets: a view of one row, or the rows at these positions, or
  // those that a mask keeps. at(x, {...}) of weft/ops/indexing.h takes several entries.
  Tensor operator[](int64_t row) const;
  Tensor operator[](const SymInt& row) const;
  Tensor operator[](const Tensor& rows) const;

  // PyTorch's layout: nested brackets, aligned columns, a dtype where it is not the default.
  std::string to_string() const;

  // A copy on another device; the tensor itself where it is there already.
  Tensor to(Device device) const;

#include "weft/core/tensor_methods.inc"

 private:
  bool is_watched() const {
    if (the_impl().flags() & tensor_flag::kWatched) [[unlikely]]
      return true;
    return false;
  }
  // An undefined tensor has nothing to tell: an error.
  const TensorImpl& the_impl() const {
    if (!impl_) [[unlikely]]
      refuse_undefined();
    return *impl_;
  }
  [[noreturn, gnu::cold]] static void refuse_undefined();
  SymIntSpan watched_sizes() const;
  SymInt watched_numel() const;
  void ask_watcher(const char* what) const;
  const TensorImpl& asked(const char* what) const {
    if (is_watched()) ask_watcher(what);
    return *impl_;
  }
  const TensorImpl& require_plain() const {
    if (is_symbolic()) [[unlikely]]
      refuse_symbolic();
    return *impl_;
  }
  [[noreturn]] void refuse_symbolic() const;
  void* checked_data(DType expected) const;

  Ref<TensorImpl> impl_;
};

// What a meta function answers: everything about a result but its values.
struct TensorSpec {
  DType dtype;
  Device device;
  SymInts sizes;
  SymInts strides;
};

// What a tensor is like.
TensorSpec spec_of(const Tensor& tensor);
// A spec with row-major strides.
TensorSpec contiguous_spec(SymIntSpan sizes, DType dtype, Device device);
// Fresh memory for `spec`, uninitialised.
Tensor allocate(TensorSpec spec);
// The same for plain sizes and row-major strides, without a spec in between.
Tensor allocate_contiguous(SymIntSpan sizes, DType dtype, Device device = kCpu);
// A new tensor over the same storage with another geometry; no view relation is noted.
Tensor alias_with(const Tensor& source, SymIntSpan sizes, SymIntSpan strides, const SymInt& offset);
Tensor alias_with(const Tensor& source, SymInts&& sizes, SymInts&& strides, SymInt offset);

// How messages write a tensor, "f32[2, 3]" or "undefined", and sizes, "[2, 3]". The text is only made when it
// is printed: a check that passes pays nothing for its message.
struct TensorText {
  const Tensor& tensor;
  std::string str() const;
  operator std::string() const { return str(); }  // NOLINT(google-explicit-constructor)
};
struct SizesText {
  SymIntSpan sizes;
  std::string str() const;
  operator std::string() const { return str(); }  // NOLINT(google-explicit-constructor)
};
// Writes `to_string()`; fmt does so too.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
inline TensorText describe(const Tensor& tensor) { return {tensor}; }
inline SizesText describe_sizes(SymIntSpan sizes) { return {sizes}; }

// -1 is the last of `rank` dims; an error in PyTorch's words when out of range. A 0-dim tensor has dims -1
// and 0.
int64_t normalize_dim(int64_t dim, int64_t rank);

}  // namespace weft

namespace weft::detail {
template <typename Text>
struct TextFormatter {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const Text& text, Context& context) const {
    auto out = context.out();
    for (char c : text.str()) *out++ = c;
    return out;
  }
};
}  // namespace weft::detail
template <>
struct fmt::formatter<weft::Tensor> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const weft::Tensor& tensor, Context& context) const {
    return fmt::formatter<std::string_view>::format(tensor.to_string(), context);
  }
};
template <>
struct fmt::formatter<weft::TensorText> : weft::detail::TextFormatter<weft::TensorText> {};
template <>
struct fmt::formatter<weft::SizesText> : weft::detail::TextFormatter<weft::SizesText> {};
