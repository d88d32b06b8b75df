#include "weft/nn/init.h"

#include <cmath>

#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/dispatch/layers.h"

namespace weft::nn::init {

Fans fans_of(const Tensor& weight) {
  require(weight.dim() >= 2, "the fans of a weight are its first two sizes, but {} has less",
          describe(weight));
  int64_t receptive = 1;
  for (int64_t size : weight.plain_sizes().subspan(2)) receptive *= size;
  return {weight.plain_sizes()[1] * receptive, weight.plain_sizes()[0] * receptive};
}

namespace {

double deviation(const Tensor& weight, const KaimingOptions& options) {
  Fans fans = fans_of(weight);
  auto fan = static_cast<double>(options.mode == FanMode::kFanIn ? fans.in : fans.out);
  return fan > 0 ? options.gain / std::sqrt(fan) : 0;
}

}  // namespace

const Tensor& kaiming_normal_(const Tensor& weight, KaimingOptions options) {
  GradModeScope no_grad(false);
  return normal_(weight, 0, deviation(weight, options));
}

const Tensor& kaiming_uniform_(const Tensor& weight, KaimingOptions options) {
  GradModeScope no_grad(false);
  double bound = std::sqrt(3.0) * deviation(weight, options);
  return uniform_(weight, -bound, bound);
}

}  // namespace weft::nn::init
