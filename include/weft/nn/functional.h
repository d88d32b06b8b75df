#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/ops/operators.h"

// Functions that are more than one operator, as torch.nn.functional has them.

namespace weft::nn::functional {

struct InterpolateOptions {
  // One of the two: the sizes of the spatial dims, or how many times larger they become. One number stands
  // for all dims.
  std::vector<SymInt> size = {};
  std::vector<double> scale_factor = {};
  std::string mode = "nearest";            // or "bilinear", or "area"
  std::optional<bool> align_corners = {};  // of "bilinear": false if it is not said
  bool recompute_scale_factor = false;     // the sizes that the factors give decide, not the factors
};
// An image of [N, C, H, W] at another height and width. Sizes may be symbolic.
//   interpolate(x, {.scale_factor = {2}, .mode = "bilinear"})
Tensor interpolate(const Tensor& input, const InterpolateOptions& options);

// The losses by their names in PyTorch; each is the operator.
struct CrossEntropyOptions {
  Tensor weight = {};  // of each class
  Reduction reduction = Reduction::kMean;
  int64_t ignore_index = -100;
  double label_smoothing = 0;
};
//   cross_entropy(scores, labels, {.label_smoothing = 0.1})
Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options = {});
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::kMean);
Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                Reduction reduction = Reduction::kMean, int64_t ignore_index = -100);

// What a bag of rows becomes.
enum class BagMode : int64_t { kSum = 0, kMean = 1, kMax = 2 };
struct EmbeddingBagOptions {
  Tensor offsets = {};  // where the bags begin in a list of indices; bags of [B, N] indices have none
  BagMode mode = BagMode::kMean;
  Tensor per_sample_weights = {};           // of sums: what each row counts
  std::optional<int64_t> padding_idx = {};  // a row that counts for nothing
  bool scale_grad_by_freq = false, sparse = false, include_last_offset = false;
};
Tensor embedding_bag(const Tensor& indices, const Tensor& weight, const EmbeddingBagOptions& options = {});

}  // namespace weft::nn::functional
