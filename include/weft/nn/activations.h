#pragma once

#include <string>

#include "weft/nn/module.h"

// Activation functions as modules. They have neither parameters nor buffers.

namespace weft::nn {

struct ActivationOptions {
  bool inplace = false;  // write the result over the input
};

class ReLU : public Module {
 public:
  explicit ReLU(ActivationOptions options = {}) : inplace(options.inplace) {}
  Tensor forward(const Tensor& x) { return inplace ? relu_(x) : relu(x); }
  WEFT_ARGS(input)
  bool inplace;
};

// The input held within [min_val, max_val].
class Hardtanh : public Module {
 public:
  explicit Hardtanh(double min_val = -1, double max_val = 1, ActivationOptions options = {});
  Tensor forward(const Tensor& x) {
    return inplace ? hardtanh_(x, min_val, max_val) : hardtanh(x, min_val, max_val);
  }
  WEFT_ARGS(input)
  double min_val, max_val;
  bool inplace;
};

// Hardtanh within [0, 6].
class ReLU6 : public Hardtanh {
 public:
  explicit ReLU6(ActivationOptions options = {}) : Hardtanh(0, 6, options) {}
};

class LeakyReLU : public Module {
 public:
  explicit LeakyReLU(double negative_slope = 0.01, ActivationOptions options = {})
      : negative_slope(negative_slope), inplace(options.inplace) {}
  Tensor forward(const Tensor& x) {
    return inplace ? leaky_relu_(x, negative_slope) : leaky_relu(x, negative_slope);
  }
  WEFT_ARGS(input)
  double negative_slope;
  bool inplace;
};

class Sigmoid : public Module {
 public:
  Tensor forward(const Tensor& x) { return sigmoid(x); }
  WEFT_ARGS(input)
};

class Tanh : public Module {
 public:
  Tensor forward(const Tensor& x) { return tanh(x); }
  WEFT_ARGS(input)
};

// x times the normal distribution's share below x, exactly ("none") or by the formula with tanh ("tanh").
class GELU : public Module {
 public:
  explicit GELU(std::string approximate = "none");
  Tensor forward(const Tensor& x) { return gelu(x, approximate); }
  WEFT_ARGS(input)
  std::string approximate;
};

class SiLU : public Module {
 public:
  explicit SiLU(ActivationOptions options = {}) : inplace(options.inplace) {}
  Tensor forward(const Tensor& x) { return inplace ? silu_(x) : silu(x); }
  WEFT_ARGS(input)
  bool inplace;
};

class Softmax : public Module {
 public:
  explicit Softmax(int64_t dim) : dim(dim) {}
  Tensor forward(const Tensor& x) { return softmax(x, dim); }
  WEFT_ARGS(input)
  int64_t dim;
};

}  // namespace weft::nn
