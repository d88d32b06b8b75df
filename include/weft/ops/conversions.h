#pragma once

#include <iterator>
#include <memory>
#include <vector>

#include "weft/core/value.h"
#include "weft/dispatch/layers.h"

// Values of tensors as values of C++. Captures cannot follow them there; a trace warns.

namespace weft {

// Hears of values that leave tensors on its thread.
class ConversionObserver {
 public:
  virtual ~ConversionObserver() = default;
  // `what` they become: "a C++ integer".
  virtual void converting(const Tensor& tensor, const char* what) = 0;
  // The program walks over the first dim.
  virtual void iterating(const Tensor& tensor) = 0;

  class Scope {
   public:
    explicit Scope(ConversionObserver* observer) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    ConversionObserver* outer_;
  };
};

namespace detail {
Scalar converted_item(const Tensor& tensor, const char* what);
// Contiguous, of that type, and outside of any recording.
Tensor converted_elements(const Tensor& tensor, DType dtype, const char* what);

template <typename T>
constexpr const char* name_of_converted() {
  if constexpr (std::same_as<T, bool>) return "a C++ boolean";
  else if constexpr (std::integral<T>) return "a C++ integer";
  else if constexpr (std::floating_point<T>) return "a C++ float";
  else return "a C++ number";
}
}  // namespace detail

// The one element as a C++ number: item<double>(x). An error for more or fewer.
template <typename T>
T item(const Tensor& tensor) {
  return detail::converted_item(tensor, detail::name_of_converted<T>()).template to<T>();
}
template <typename T>
T Tensor::item() const {
  return weft::item<T>(*this);
}
// Whether the one element is not zero: what `if` asks.
inline bool is_true(const Tensor& tensor) { return item<bool>(tensor); }

// All elements, row-major, in an array of their own.
template <typename T>
std::vector<T> to_vector(const Tensor& tensor) {
  Tensor elements = detail::converted_elements(tensor, dtype_of<T>, "a C++ array");
  std::vector<T> values(static_cast<size_t>(elements.plain_numel()));
  const T* from = elements.data<T>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = from[i];
  return values;
}
// The elements as numbers in lists of lists, one level a dim; a number for a tensor of no dims.
Value to_list(const Tensor& tensor);

// --- walking over the first dim: for (const Tensor& row : x) ---------------------------------------------

class TensorIterator {
 public:
  using value_type = Tensor;
  using difference_type = ptrdiff_t;
  using iterator_category = std::input_iterator_tag;

  explicit TensorIterator(std::vector<Tensor> rows)
      : rows_(std::make_shared<std::vector<Tensor>>(std::move(rows))) {}
  const Tensor& operator*() const { return (*rows_)[next_]; }
  const Tensor* operator->() const { return &(*rows_)[next_]; }
  TensorIterator& operator++() {
    ++next_;
    return *this;
  }
  void operator++(int) { ++next_; }
  bool operator==(std::default_sentinel_t) const { return next_ == rows_->size(); }

 private:
  std::shared_ptr<std::vector<Tensor>> rows_;
  size_t next_ = 0;
};

// An error for a tensor of no dims.
TensorIterator begin(const Tensor& tensor);
inline std::default_sentinel_t end(const Tensor&) { return {}; }

}  // namespace weft
