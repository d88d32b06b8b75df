#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "weft/core/tensor.h"

namespace weft {

// Hears of every tensor that the program makes from values of its own, and says what the program gets for it:
// a capture must keep the values.
class LiteralObserver {
 public:
  virtual ~LiteralObserver() = default;
  virtual Tensor literal(const Tensor& tensor) = 0;
};
namespace detail {
extern constinit thread_local LiteralObserver* literal_observer;  // of this thread; null: nobody
}
class LiteralScope {
 public:
  explicit LiteralScope(LiteralObserver& observer)
      : outer_(std::exchange(detail::literal_observer, &observer)) {}
  ~LiteralScope() { detail::literal_observer = outer_; }
  LiteralScope(const LiteralScope&) = delete;

 private:
  LiteralObserver* outer_;
};

// A tensor of these sizes with a copy of `values`, row-major; a vector unless sizes are given.
template <typename T>
Tensor from_data(const std::vector<T>& values, SymIntSpan sizes) {
  Tensor tensor = allocate_contiguous(sizes, dtype_of<T>);
  require(tensor.plain_numel() == static_cast<int64_t>(values.size()),
          "from_data: {} values do not fill sizes {}", values.size(), describe_sizes(sizes));
  for (size_t i = 0; i < values.size(); ++i) tensor.data<T>()[i] = values[i];
  return detail::literal_observer ? detail::literal_observer->literal(tensor) : tensor;
}
template <typename T>
Tensor from_data(const std::vector<T>& values) {
  return from_data(values, {static_cast<int64_t>(values.size())});
}

struct BlobOptions {
  std::optional<std::vector<int64_t>> strides = {};  // in elements; row-major if not given
  // Called with `data` when the last tensor over the memory is gone.
  std::function<void(void*)> deleter = {};
};
// A tensor over memory of the caller's, which is not copied: without a deleter it must outlive every tensor
// that views it. While a program is captured, its elements become a constant of the graph.
//   Tensor frame = from_blob(pixels, {height, width, 3}, kUInt8, {.deleter = [](void* p) { std::free(p); }});
Tensor from_blob(void* data, IntSpan sizes, DType dtype, BlobOptions options = {});
template <typename T>
Tensor from_blob(T* data, IntSpan sizes, BlobOptions options = {}) {
  return from_blob(static_cast<void*>(data), sizes, dtype_of<T>, std::move(options));
}

}  // namespace weft
