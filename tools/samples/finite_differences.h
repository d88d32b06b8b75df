#pragma once

#include <optional>
#include <string>
#include <vector>

#include "samples/sample_file.h"

namespace weft::recorded {

// The cotangent that the format fixes for a result, in the result's type.
Tensor cotangent_for(const Tensor& result);

// What the call gives in double precision, or the gradients of these results for each float or complex tensor
// among the arguments; undefined where there is none.
std::vector<Value> wide_results(const Operator& op, const Arguments& arguments);
std::vector<Tensor> wide_gradients(const Operator& op, const Arguments& arguments,
                                   const std::vector<size_t>& results);

// Compares weft's gradients of these results (indices among what the operator gives) with central
// differences, both in double precision; a gradient that is not there counts as zero. How the first one
// differs; nothing where all agree.
std::optional<std::string> finite_difference_mismatch(const Operator& op, const Arguments& arguments,
                                                      const std::vector<size_t>& results);

}  // namespace weft::recorded
