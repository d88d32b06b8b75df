#include "weft/autograd/gradcheck.h"

#include <cmath>

#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/ops/operators.h"

namespace weft::autograd {
namespace {

bool is_checked(DType dtype) { return dtype == kFloat64 || dtype == kComplex128; }
bool is_checked(const Tensor& tensor) { return tensor.defined() && is_checked(tensor.dtype()); }

// The real numbers that a contiguous tensor is made of: two for each complex one.
int64_t count_of_parts(const Tensor& tensor) { return tensor.plain_numel() * (tensor.is_complex() ? 2 : 1); }
double& part_of(const Tensor& tensor, int64_t i) { return static_cast<double*>(tensor.raw_data())[i]; }

// The values themselves, in a contiguous copy.
Tensor plain_copy(const Tensor& tensor) {
  NoGrad no_grad;
  return empty(tensor.sizes(), tensor.dtype()).copy_(tensor);
}

// Fixed weights, none of them equal: the sum of weighted results has the gradients of all of them in it.
Tensor weights_for(const Tensor& result, size_t number) {
  Tensor weights = empty(result.sizes(), result.dtype());
  for (int64_t i = 0; i < count_of_parts(weights); ++i)
    part_of(weights, i) = 0.3 + std::sin(1.7 * static_cast<double>(i) + static_cast<double>(number));
  return weights;
}

double weighted_sum(const TensorsFunction& f, const std::vector<Tensor>& inputs) {
  NoGrad no_grad;
  std::vector<Tensor> results = f(inputs);
  double total = 0;
  for (size_t r = 0; r < results.size(); ++r)
    if (is_checked(results[r])) {
      Tensor values = plain_copy(results[r]), weights = weights_for(values, r);
      for (int64_t i = 0; i < count_of_parts(values); ++i) total += part_of(values, i) * part_of(weights, i);
    }
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

double numeric(const TensorsFunction& f, const std::vector<Tensor>& inputs, size_t input, int64_t part,
               double eps) {
  auto shifted = [&](double by) {
    std::vector<Tensor> moved = detached_copies(inputs);
    Tensor flat = plain_copy(moved[input]);
    part_of(flat, part) += by;
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
    require(is_checked(inputs[i]), "gradcheck: input {} is {}; finite differences need float64 or complex128",
            i, describe(inputs[i]));
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
  require(!outputs.empty(),
          "gradcheck: no float64 or complex128 result depends on the inputs that require a gradient");
  std::vector<Tensor> grads = grad(outputs, wanted, weights, {.materialize_grads = true});
  for (size_t k = 0; k < wanted.size(); ++k) {
    Tensor analytic = plain_copy(grads[k]);
    bool has_parts = analytic.is_complex();
    for (int64_t p = 0; p < count_of_parts(analytic); ++p) {
      double got = part_of(analytic, p), expected = numeric(f, inputs, numbers[k], p, options.eps);
      require(std::abs(got - expected) <= options.atol + options.rtol * std::abs(expected),
              "gradcheck: the gradient of input {} at element {}{} is {}, but finite differences give {}",
              numbers[k], has_parts ? p / 2 : p,
              !has_parts ? ""
              : p % 2    ? ", imaginary part,"
                         : ", real part,",
              got, expected);
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
      Tensor leaf = input.requires_grad() || !is_checked(input) ? input : input.detach().set_requires_grad();
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
