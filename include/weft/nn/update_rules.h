#pragma once

#include <string>
#include <vector>

#include "weft/core/tensor.h"

// What an optimizer does to one parameter, as a function of tensors. The rules write to nothing, read no
// element and count nothing themselves: the learning rate and the number of the step are tensors of one
// element, so that one captured graph serves every step of a training run.

namespace weft::optim {

struct SgdOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;  // climbs instead of descending
};

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;  // added to the gradient
  bool amsgrad = false;     // divides by the largest mean square so far
  bool maximize = false;    // climbs instead of descending
};

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 1e-2;  // shrinks the parameter, apart from the gradient
  bool amsgrad = false;        // divides by the largest mean square so far
  bool maximize = false;       // climbs instead of descending
};

// What the parameter and the state that is kept for it become.
struct Updated {
  Tensor parameter;
  std::vector<Tensor> state;
};

// The names of the tensors that a rule keeps for each parameter, as PyTorch calls them: "momentum_buffer".
// Each has the parameter's sizes, and is zero before the first step.
std::vector<std::string> state_names(const SgdOptions& options);
std::vector<std::string> state_names(const AdamOptions& options);
std::vector<std::string> state_names(const AdamWOptions& options);

// One step. `lr` takes the place of options.lr, and `momentum`, where it is given, that of options.momentum
// or beta1; `step` counts from 1; the state is in the order of `state_names`.
Updated updated(const SgdOptions& options, const Tensor& parameter, const Tensor& gradient,
                const std::vector<Tensor>& state, const Tensor& lr, const Tensor& step,
                const Tensor& momentum = {});
Updated updated(const AdamOptions& options, const Tensor& parameter, const Tensor& gradient,
                const std::vector<Tensor>& state, const Tensor& lr, const Tensor& step,
                const Tensor& momentum = {});
Updated updated(const AdamWOptions& options, const Tensor& parameter, const Tensor& gradient,
                const std::vector<Tensor>& state, const Tensor& lr, const Tensor& step,
                const Tensor& momentum = {});

}  // namespace weft::optim
