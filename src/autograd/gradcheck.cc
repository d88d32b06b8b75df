#include "weft/autograd/gradcheck.h"

#include <cmath>

#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/ops/operators.h"

namespace weft::autograd {
namespace {

// Fixed weights, none of them equal: the sum of weighted results has the gradients of all of them in it.
Tensor weights_for(const Tensor& result, size_t number) {
  Tensor weights = empty(result.sizes(), result.dtype());
  for (int64_t i = 0; i < weights.plain_numel(); ++i)
    weights.data<double>()[i] = 0.3 + std::sin(1.7 * static_cast<double>(i) + static_cast<double>(number));
  return weights;
}

bool is_checked(const Tensor& tensor) { return tensor.defined() && tensor.dtype() == kFloat64; }

double weighted_sum(const TensorsFunction& f, const std::vector<Tensor>& inputs) {
  NoGrad no_grad;
  std::vector<Tensor> results = f(inputs);
  double total = 0;
  for (size_t r = 0; r < results.size(); ++r)
    if (is_checked(results[r])) total += (results[r] * weights_for(results[r], r)).sum().item().to_double();
  return total;
}

std::vector<Tensor> detached_copies(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> copies;
  for (const Tensor& input : inputs) {
    Tensor copy = input.detach().clone();
    if (input.requires_grad()) copy.set_requires_grad();
    copies.push_back(copy);
  }
  return copies;
}

double numeric(const TensorsFunction& f, const std::vector<Tensor>& inputs, size_t input, int64_t element,
               double eps) {
  auto shifted = [&](double by) {
    std::vector<Tensor> moved = detached_copies(inputs);
    Tensor flat = moved[input].detach().contiguous().clone();
    flat.data<double>()[element] += by;
    NoGrad no_grad;
    moved[input].copy_(flat);
    return weighted_sum(f, moved);
  };
  return (shifted(eps) - shifted(-eps)) / (2 * eps);
}

}  // namespace

void gradcheck(const TensorsFunction& f, const std::vector<Tensor>& given, const GradcheckOptions& options) {
  std::vector<Tensor> inputs = detached_copies(given), wanted;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    require(inputs[i].dtype() == kFloat64, "gradcheck: input {} is {}; finite differences need float64", i,
            describe(inputs[i]));
    wanted.push_back(inputs[i]);
    numbers.push_back(i);
  }
  require(!wanted.empty(), "gradcheck: no input requires a gradient");
  std::vector<Tensor> results = f(inputs), outputs, weights;
  for (size_t r = 0; r < results.size(); ++r)
    if (is_checked(results[r]) && results[r].requires_grad()) {
      outputs.push_back(results[r]);
      weights.push_back(weights_for(results[r], r));
    }
  require(!outputs.empty(), "gradcheck: no float64 result depends on the inputs that require a gradient");
  std::vector<Tensor> grads = grad(outputs, wanted, weights, {.materialize_grads = true});
  for (size_t k = 0; k < wanted.size(); ++k) {
    Tensor analytic = grads[k].detach().contiguous();
    for (int64_t e = 0; e < analytic.plain_numel(); ++e) {
      double got = analytic.data<double>()[e], expected = numeric(f, inputs, numbers[k], e, options.eps);
      require(std::abs(got - expected) <= options.atol + options.rtol * std::abs(expected),
              "gradcheck: the gradient of input {} at element {} is {}, but finite differences give {}",
              numbers[k], e, got, expected);
    }
  }
}

void gradgradcheck(const TensorsFunction& f, const std::vector<Tensor>& given,
                   const GradcheckOptions& options) {
  TensorsFunction first = [&](const std::vector<Tensor>& inputs) {
    EnableGrad enable;
    std::vector<Tensor> leaves, wanted;
    for (const Tensor& input : inputs) {
      // A step of finite differences runs without gradients; the inner derivative needs them.
      Tensor leaf =
          input.requires_grad() || input.dtype() != kFloat64 ? input : input.detach().set_requires_grad();
      leaves.push_back(leaf);
      if (leaf.requires_grad()) wanted.push_back(leaf);
    }
    std::vector<Tensor> outputs, weights, results = f(leaves);
    for (size_t r = 0; r < results.size(); ++r)
      if (is_checked(results[r]) && results[r].requires_grad()) {
        outputs.push_back(results[r]);
        weights.push_back(weights_for(results[r], r));
      }
    return grad(outputs, wanted, weights, {.create_graph = true, .materialize_grads = true});
  };
  gradcheck(first, given, options);
}

}  // namespace weft::autograd
