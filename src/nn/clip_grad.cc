#include "weft/nn/clip_grad.h"

#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/ops/conversions.h"
#include "weft/ops/operators.h"

namespace weft::nn {
namespace {

std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : parameters)
    if (Tensor gradient = parameter.grad(); gradient.defined()) gradients.push_back(gradient);
  return gradients;
}

}  // namespace

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, ClipOptions options) {
  NoGrad no_grad;
  const std::vector<Tensor> gradients = gradients_of(parameters);
  if (gradients.empty()) return zeros({});
  std::vector<Tensor> norms;
  for (const Tensor& gradient : gradients) norms.push_back(norm(gradient, options.norm_type));
  const Tensor total = norm(stack(norms), options.norm_type);
  require(!options.error_if_nonfinite || isfinite(total).item<bool>(),
          "the norm of order {} of the gradients is {}, so it cannot be clipped; set error_if_nonfinite to "
          "false to scale by it all the same",
          options.norm_type, total.item().to_double());
  // Always multiplied, by 1 where the norm is small enough: no element has to be read for it.
  const Tensor scale = clamp(max_norm / (total + 1e-6), {}, 1.0);
  for (const Tensor& gradient : gradients) gradient.mul_(scale);
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  NoGrad no_grad;
  for (const Tensor& gradient : gradients_of(parameters)) gradient.clamp_(-clip_value, clip_value);
}

}  // namespace weft::nn
