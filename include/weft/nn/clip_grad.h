#pragma once

#include <vector>

#include "weft/core/tensor.h"

namespace weft::nn {

struct ClipOptions {
  double norm_type = 2;  // infinity is the largest magnitude
  bool error_if_nonfinite = false;
};
// Scales the gradients of the parameters, in place, so that the norm of all of them together is at most
// `max_norm`. Returns the norm that they had.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, ClipOptions options = {});

// Brings every element of the gradients, in place, into [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

}  // namespace weft::nn
