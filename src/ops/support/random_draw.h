#pragma once

#include <optional>

#include "weft/core/tensor.h"

// Tensors filled with random numbers: element i, in row-major order, depends on (seed, offset, i) alone.
// Tensors without memory take their share of the generator and stay as they are.

namespace weft {

using MaybeGenerator = std::optional<Generator>;

void draw_uniform(const Tensor& out, double from, double to, const MaybeGenerator& generator);
void draw_normal(const Tensor& out, double mean, double std, const MaybeGenerator& generator);
// Integers in [low, high).
void draw_integers(const Tensor& out, int64_t low, int64_t high, const MaybeGenerator& generator);
// Ones with probability p, zeros otherwise.
void draw_bernoulli(const Tensor& out, double p, const MaybeGenerator& generator);
void draw_bernoulli(const Tensor& out, const Tensor& p, const MaybeGenerator& generator);

// A probability is in [0, 1].
void check_probability(double p, const char* op);

}  // namespace weft
