#pragma once

#include <functional>

#include "weft/core/tensor.h"

namespace weft::autograd {

struct GradcheckOptions {
  double eps = 1e-6, rtol = 1e-4, atol = 1e-5;
};
using TensorsFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// Compares the gradients of `f` with finite differences, for every element of the inputs (f64, or both parts
// of c128) that require one and every element of the results. An error names the first that differs.
void gradcheck(const TensorsFunction& f, const std::vector<Tensor>& inputs,
               const GradcheckOptions& options = {});
// The same for the gradients of the gradients.
void gradgradcheck(const TensorsFunction& f, const std::vector<Tensor>& inputs,
                   const GradcheckOptions& options = {});

}  // namespace weft::autograd
