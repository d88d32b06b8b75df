#pragma once

#include <string>

namespace weft {

class Tensor;

// A TensorBox that derives from this too says how its tensors are printed.
class PrintableBox {
 public:
  virtual ~PrintableBox() = default;
  virtual std::string text_of(const Tensor& tensor) const = 0;
};

}  // namespace weft
