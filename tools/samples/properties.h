#pragma once

#include "samples/compare.h"

// Results that are not unique by nature: several answers are right, and the stored one is one of them.

namespace weft::recorded {

enum class Uniqueness : uint8_t {
  kUnique,
  kAmongEquals,  // an index that chooses among equal values; the gradient goes to the chosen one
  kAnyOrder,     // eigenvalues of a general matrix
  kUpToPhase,    // eigenvectors and singular vectors
  kAnyValue,     // bits that are nobody's business, and values that PyTorch gets wrong
};

// How result or written argument `name` of this call is to be compared. Results are called by their index:
// "0", "1".
Uniqueness uniqueness_of(const Row& row, const std::string& name);
// The same for the gradient of argument `name`.
Uniqueness gradient_uniqueness_of(const Row& row, const std::string& name);

// Indices into `self` along the call's dim (of the result or argument `name`): both lists must choose the
// same values, and none twice where the operator is a permutation or a choice of several.
void compare_choices(Differences& differences, const std::string& what, const std::string& name,
                     const Row& row, const Arguments& arguments, const Elements& got, const Elements& stored);
// The same values in every row, in any order.
void compare_in_any_order(Differences& differences, const std::string& what, const Elements& got,
                          const Elements& stored, double noise);
// Gradients that may go to another one of equal elements: sums along the call's dim must agree.
void compare_lane_sums(Differences& differences, const std::string& what, const Row& row, const Elements& got,
                       const Elements& stored, double noise);
// Takes out of the comparison what PyTorch answers in two ways: where the input of some activations is NaN,
// the vector loop of their derivative and the scalar loop for what is left over do not agree, so that the
// length of the tensor decides. Results of a derivative and gradients of an activation are looked at.
void leave_out_nan_inputs(const Row& row, bool is_gradient, const Arguments& arguments, Elements& got,
                          const Elements& stored);
// Whether the decomposition that came back multiplies to the matrix it was made from, with orthonormal
// vectors.
void check_decomposition(Differences& differences, const Row& row, const Arguments& arguments,
                         const std::vector<Tensor>& results);

}  // namespace weft::recorded
