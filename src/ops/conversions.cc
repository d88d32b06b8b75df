#include "weft/ops/conversions.h"

#include "weft/base/error.h"
#include "weft/base/warning.h"
#include "weft/ops/operators.h"

namespace weft {

Tensor Tensor::to(Device device) const { return to(device, dtype()); }

namespace {

constinit thread_local ConversionObserver* observer = nullptr;

void tell(const Tensor& tensor, const char* what) {
  if (observer) observer->converting(tensor, what);
}

}  // namespace

ConversionObserver::Scope::Scope(ConversionObserver* inner) noexcept
    : outer_(std::exchange(observer, inner)) {}
ConversionObserver::Scope::~Scope() { observer = outer_; }

Scalar detail::converted_item(const Tensor& tensor, const char* what) {
  tell(tensor, what);
  LibraryWarningsOff said;
  return item(tensor);
}

Tensor detail::converted_elements(const Tensor& tensor, DType dtype, const char* what) {
  tell(tensor, what);
  MaskScope below(layer::below(layer::kRecorderUpper));
  return contiguous(to(detach(tensor), dtype));
}

namespace {

Value nested(const Tensor& tensor) {
  if (tensor.dim() == 0) return item(tensor);
  ValueList rows;
  for (const Tensor& row : unbind(tensor)) rows.push_back(nested(row));
  return Value::list(std::move(rows));
}

}  // namespace

Value to_list(const Tensor& tensor) {
  tell(tensor, "a C++ list");
  // Numbers that only a run tells are symbols, and a part of the program that is captured.
  if (!tensor.storage()->has_memory()) return nested(tensor);
  MaskScope below(layer::below(layer::kRecorderUpper));
  return nested(detach(tensor));
}

TensorIterator begin(const Tensor& tensor) {
  require(tensor.dim() > 0, "iteration over a tensor of no dims: {}", describe(tensor));
  if (observer) observer->iterating(tensor);
  return TensorIterator(unbind(tensor));
}

}  // namespace weft
