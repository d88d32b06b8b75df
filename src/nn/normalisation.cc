#include "weft/nn/normalisation.h"

#include "weft/base/error.h"

namespace weft::nn {

BatchNorm::BatchNorm(int64_t channels, BatchNormOptions options)
    : weight(parameter("weight", options.affine ? ones({channels}) : Tensor())),
      bias(parameter("bias", options.affine ? zeros({channels}) : Tensor())),
      running_mean(buffer("running_mean", options.track_running_stats ? zeros({channels}) : Tensor())),
      running_var(buffer("running_var", options.track_running_stats ? ones({channels}) : Tensor())),
      num_batches_tracked(
          buffer("num_batches_tracked", options.track_running_stats ? zeros({}, kInt64) : Tensor())),
      num_features(channels),
      eps(options.eps),
      momentum(options.momentum) {}

namespace {

// What stands for a value while a program is traced without inputs may have no sizes to check.
bool is_stand_in(const Tensor& x) {
  return (x.flags() & tensor_flag::kWatched) && !x.storage()->has_memory();
}

void check_dims(const Tensor& x, std::initializer_list<int64_t> allowed, const char* words) {
  if (is_stand_in(x)) return;
  for (int64_t dims : allowed)
    if (x.dim() == dims) return;
  fail("expected {} input (got {}D input)", words, x.dim());
}

// One value has no variance.
void check_values(const Tensor& x) {
  if (is_stand_in(x)) return;
  SymInt values = x.sizes()[0];
  for (const SymInt& size : x.sizes().subspan(2)) values = values * size;
  if (guard_or(values == 1, false))
    fail("Expected more than 1 value per channel when training, got input size {}",
         describe_sizes(x.sizes()));
}

}  // namespace

Tensor BatchNorm::normalise(const Tensor& x) {
  bool by_batch = is_training() || !running_mean.defined();
  if (by_batch) check_values(x);
  if (is_training() && num_batches_tracked.defined()) num_batches_tracked.add_(1);
  return batch_norm(x, weight, bias, running_mean, running_var, by_batch, momentum, eps, true);
}

Tensor BatchNorm1d::forward(const Tensor& x) {
  check_dims(x, {2, 3}, "2D or 3D");
  return normalise(x);
}

Tensor BatchNorm2d::forward(const Tensor& x) {
  check_dims(x, {4}, "4D");
  return normalise(x);
}

LayerNorm::LayerNorm(std::vector<int64_t> shape, double eps)
    : weight(parameter("weight", ones(shape))),
      bias(parameter("bias", zeros(shape))),
      shape_(std::move(shape)),
      eps_(eps) {}

namespace {

int64_t checked_groups(int64_t groups, int64_t channels) {
  require(groups > 0 && channels % groups == 0, "num_channels ({}) must be divisible by num_groups ({})",
          channels, groups);
  return groups;
}

}  // namespace

GroupNorm::GroupNorm(int64_t groups, int64_t channels, GroupNormOptions options)
    : num_groups(checked_groups(groups, channels)),
      num_channels(channels),
      eps(options.eps),
      weight(parameter("weight", options.affine ? ones({channels}) : Tensor())),
      bias(parameter("bias", options.affine ? zeros({channels}) : Tensor())) {}

}  // namespace weft::nn
