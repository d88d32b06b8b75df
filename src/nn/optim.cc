#include "weft/nn/optim.h"

#include <cmath>
#include <unordered_set>

#include "weft/autograd/autograd.h"
#include "weft/base/error.h"

namespace weft::optim {
namespace {

void clear_gradients(const std::vector<Tensor>& parameters) {
  for (const Tensor& parameter : parameters) parameter.set_grad({});
}
void check_parameters(const std::vector<Tensor>& parameters, double lr, double weight_decay) {
  require(!parameters.empty(), "optimizer got an empty parameter list");
  require(lr >= 0, "Invalid learning rate: {}", lr);
  require(weight_decay >= 0, "Invalid weight_decay value: {}", weight_decay);
  std::unordered_set<const TensorImpl*> seen;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& parameter = parameters[i];
    require(parameter.defined(), "can't optimize parameter {}: it is an undefined tensor", i);
    require(parameter.is_leaf(), "can't optimize a non-leaf Tensor: {}", describe(parameter));
    require(seen.insert(parameter.impl()).second,
            "parameter {}, {}, is there twice: it would be moved twice in a step", i, describe(parameter));
  }
}
// Undefined for a parameter that no backward pass has reached.
Tensor gradient_of(const Tensor& parameter, bool maximize) {
  Tensor grad = parameter.grad();
  return maximize && grad.defined() ? grad.neg() : grad;
}

}  // namespace

SGD::SGD(std::vector<Tensor> parameters, SgdOptions options_)
    : options(options_), parameters_(std::move(parameters)), momenta_(parameters_.size()) {
  check_parameters(parameters_, options.lr, options.weight_decay);
  require(options.momentum >= 0, "Invalid momentum value: {}", options.momentum);
  require(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
          "Nesterov momentum requires a momentum and zero dampening");
}

void SGD::step() {
  NoGrad no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i];
    Tensor grad = gradient_of(parameter, options.maximize);
    if (!grad.defined()) continue;
    if (options.weight_decay != 0) grad = add(grad, parameter, options.weight_decay);
    if (options.momentum != 0) {
      Tensor& momentum = momenta_[i];
      if (!momentum.defined()) momentum = grad.clone();
      else momentum.mul_(options.momentum).add_(grad, 1 - options.dampening);
      grad = options.nesterov ? add(grad, momentum, options.momentum) : momentum;
    }
    parameter.add_(grad, -options.lr);
  }
}
void SGD::zero_grad() { clear_gradients(parameters_); }

AdamW::AdamW(std::vector<Tensor> parameters, AdamWOptions options_)
    : options(options_),
      parameters_(std::move(parameters)),
      first_(parameters_.size()),
      second_(parameters_.size()),
      largest_(parameters_.size()),
      steps_(parameters_.size(), 0) {
  check_parameters(parameters_, options.lr, options.weight_decay);
  require(options.eps >= 0, "Invalid epsilon value: {}", options.eps);
  require(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
          "Invalid betas: {} and {}", options.beta1, options.beta2);
}

void AdamW::step() {
  NoGrad no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Tensor parameter = parameters_[i], grad = gradient_of(parameter, options.maximize);
    if (!grad.defined()) continue;
    // Real and imaginary parts have means of their own.
    if (parameter.is_complex()) {
      parameter = view_as_real(parameter);
      grad = view_as_real(resolve_conj(grad));
    }
    if (!first_[i].defined()) {
      first_[i] = zeros_like(parameter);
      second_[i] = zeros_like(parameter);
    }
    auto step = static_cast<double>(++steps_[i]);
    parameter.mul_(1 - options.lr * options.weight_decay);
    // The running means of the gradient and its square, freed of their start at zero.
    first_[i].mul_(options.beta1).add_(grad, 1 - options.beta1);
    second_[i].mul_(options.beta2).add_(grad * grad, 1 - options.beta2);
    double correction1 = 1 - std::pow(options.beta1, step), correction2 = 1 - std::pow(options.beta2, step);
    if (options.amsgrad)
      largest_[i] = largest_[i].defined() ? maximum(largest_[i], second_[i]) : second_[i].clone();
    Tensor spread = sqrt(options.amsgrad ? largest_[i] : second_[i]) / std::sqrt(correction2) + options.eps;
    parameter.add_(first_[i] / spread, -options.lr / correction1);
  }
}
void AdamW::zero_grad() { clear_gradients(parameters_); }

}  // namespace weft::optim
