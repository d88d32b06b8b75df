#pragma once

#include "func/functional_call.h"
#include "weft/core/value.h"

namespace weft::aot {

// A functional tensor for each tensor of `inputs`, as the program of a traced call sees it: extensions are
// taken apart, so that their inner tensors are functional. One tensor has one wrapper wherever it is given.
// What requires a gradient does so above the wrapper, and is a leaf or not as it was.
class FunctionalInputs {
 public:
  explicit FunctionalInputs(const ValueList& inputs);
  const ValueList& values() const { return values_; }

 private:
  ValueList values_;
};

// Makes `tensor` require a gradient as the result of something that nobody asks about.
void make_given_result(const Tensor& tensor);
// The wrapper of a tensor without history: itself functional, or an extension whose inner tensors are.
Tensor functional_form(const Tensor& value);
// What a functional tensor, or an extension of such, has become; any other Value stays.
Value current_value(const Value& value);
// Its type and geometry, and those of the tensors inside of an extension, without data or history.
Tensor shape_like(const Tensor& tensor);
// Of a functional tensor; null for others.
FunctionalBox* functional_box_of(const Tensor& tensor);
// What happened to a functional tensor, or to those inside of an extension, taken together.
func::FunctionalChanges changes_of(const Tensor& tensor);

}  // namespace weft::aot
