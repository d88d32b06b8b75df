#pragma once

#include "weft/ops/operators.h"

// Initialisers: they fill a parameter in place, outside of any gradient.

namespace weft::nn::init {

// How many inputs reach one output of a weight [out, in, ...], and how many outputs one input reaches.
struct Fans {
  int64_t in, out;
};
Fans fans_of(const Tensor& weight);

enum class FanMode : uint8_t { kFanIn, kFanOut };

struct KaimingOptions {
  FanMode mode = FanMode::kFanIn;    // which side keeps the variance of what passes: forward, or backward
  double gain = 1.4142135623730951;  // of the activation that follows; this is ReLU's
};
// Normal numbers with a deviation of gain / sqrt(fan).
const Tensor& kaiming_normal_(const Tensor& weight, KaimingOptions options = {});
// Uniform ones with that deviation.
const Tensor& kaiming_uniform_(const Tensor& weight, KaimingOptions options = {});

}  // namespace weft::nn::init
