#pragma once

#include "weft/nn/module.h"

namespace weft::optim {

struct SgdOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;  // climbs instead of descending
};
// Stochastic gradient descent, with PyTorch's momentum.
class SGD {
 public:
  SGD(std::vector<Tensor> parameters, SgdOptions options = {});
  // Moves every parameter that has a gradient.
  void step();
  void zero_grad();
  SgdOptions options;

 private:
  std::vector<Tensor> parameters_, momenta_;
};

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;
  bool amsgrad = false;   // divides by the largest mean square so far
  bool maximize = false;  // climbs instead of descending
};
// Adam with weight decay apart from the gradient.
class AdamW {
 public:
  AdamW(std::vector<Tensor> parameters, AdamWOptions options = {});
  void step();
  void zero_grad();
  AdamWOptions options;

 private:
  std::vector<Tensor> parameters_, first_, second_, largest_;
  std::vector<int64_t> steps_;
};

}  // namespace weft::optim
