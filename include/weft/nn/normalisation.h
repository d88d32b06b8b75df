#pragma once

#include <vector>

#include "weft/nn/module.h"

// Layers that give their input a mean of zero and a variance of one, over some of its dims.

namespace weft::nn {

struct BatchNormOptions {
  double eps = 1e-5, momentum = 0.1;
  bool affine = true;               // a weight and a bias for each channel
  bool track_running_stats = true;  // false: evaluation normalises by the batch, as training does
};
// Normalises each channel of [N, C, ...] over the batch, and in evaluation by what it saw in training. What
// BatchNorm1d and BatchNorm2d share: they differ in the inputs that they take.
class BatchNorm : public Module {
 public:
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;
  int64_t num_features;
  double eps, momentum;

 protected:
  BatchNorm(int64_t channels, BatchNormOptions options);
  Tensor normalise(const Tensor& x);
};
// Of [N, C] or [N, C, L].
class BatchNorm1d : public BatchNorm {
 public:
  explicit BatchNorm1d(int64_t channels, BatchNormOptions options = {}) : BatchNorm(channels, options) {}
  Tensor forward(const Tensor& x);
  WEFT_ARGS(input)
};
// Of [N, C, H, W].
class BatchNorm2d : public BatchNorm {
 public:
  explicit BatchNorm2d(int64_t channels, BatchNormOptions options = {}) : BatchNorm(channels, options) {}
  Tensor forward(const Tensor& x);
  WEFT_ARGS(input)
};

class LayerNorm : public Module {
 public:
  explicit LayerNorm(std::vector<int64_t> shape, double eps = 1e-5);
  Tensor forward(const Tensor& x) { return layer_norm(x, shape_, weight, bias, eps_); }
  WEFT_ARGS(input)
  Tensor weight, bias;

 private:
  std::vector<int64_t> shape_;
  double eps_;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};
// Normalises the channels of [N, C, ...] in `groups` equal groups, each sample by itself.
class GroupNorm : public Module {
 public:
  GroupNorm(int64_t groups, int64_t channels, GroupNormOptions options = {});
  Tensor forward(const Tensor& x) { return group_norm(x, num_groups, weight, bias, eps); }
  WEFT_ARGS(input)
  int64_t num_groups, num_channels;
  double eps;
  Tensor weight, bias;
};

}  // namespace weft::nn
