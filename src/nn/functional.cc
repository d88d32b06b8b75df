#include "weft/nn/functional.h"

#include "weft/base/error.h"
#include "weft/ops/functions.h"

namespace weft::nn::functional {
namespace {

template <typename T>
std::vector<T> for_each_dim(const std::vector<T>& given, const Tensor& input, const char* what) {
  auto spatial = static_cast<size_t>(input.dim() - 2);
  if (given.size() == 1) return std::vector<T>(spatial, given[0]);
  require(
      given.size() == spatial,
      "interpolate: Input and {} must have the same number of spatial dimensions, but {} has {} of them, and "
      "{} numbers were given",
      what, describe(input), spatial, given.size());
  return given;
}

std::vector<SymInt> sizes_by_factors(const Tensor& input, const std::vector<double>& factors) {
  std::vector<SymInt> sizes;
  for (size_t i = 0; i < factors.size(); ++i)
    sizes.push_back(sym_floor(sym_float(input.sizes()[i + 2]) * factors[i]));
  return sizes;
}

}  // namespace

Tensor interpolate(const Tensor& input, const InterpolateOptions& options) {
  bool mixes = options.mode == "bilinear";
  if (!mixes && options.mode != "nearest" && options.mode != "area")
    unsupported("interpolate: mode \"{}\"; \"nearest\", \"bilinear\" and \"area\" are there", options.mode);
  require(mixes || !options.align_corners,
          "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
          "trilinear");
  require(input.dim() == 4, "interpolate: expected an image of [N, C, H, W] for mode \"{}\", but got {}",
          options.mode, describe(input));
  require(options.size.empty() || options.scale_factor.empty(),
          "only one of size or scale_factor should be defined");
  require(!options.size.empty() || !options.scale_factor.empty(),
          "either size or scale_factor should be defined");
  require(!options.recompute_scale_factor || options.size.empty(),
          "recompute_scale_factor is not meaningful with an explicit size.");
  std::vector<SymInt> sizes;
  std::vector<double> factors;
  if (options.size.empty()) factors = for_each_dim(options.scale_factor, input, "scale_factor");
  else sizes = for_each_dim(options.size, input, "output");
  if (!factors.empty() && (options.recompute_scale_factor || options.mode == "area")) {
    sizes = sizes_by_factors(input, factors);
    factors.clear();
  }
  if (options.mode == "area") return adaptive_avg_pool2d(input, sizes);
  OptionalSymIntSpan output_size;
  OptionalSpan<ListSpan<double>> scale_factors;
  if (factors.empty()) output_size = SymIntSpan(sizes);
  else scale_factors = ListSpan<double>(factors);
  if (!mixes) return upsample_nearest2d(input, output_size, scale_factors);
  return upsample_bilinear2d(input, output_size, options.align_corners.value_or(false), scale_factors);
}

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options) {
  return cross_entropy_loss(input, target, options.weight, options.reduction, options.ignore_index,
                            options.label_smoothing);
}
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  return weft::mse_loss(input, target, reduction);
}
Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight, Reduction reduction,
                int64_t ignore_index) {
  return nll_loss_nd(input, target, weight, reduction, ignore_index);
}

Tensor embedding_bag(const Tensor& indices_, const Tensor& weight, const EmbeddingBagOptions& options) {
  Tensor indices = indices_, offsets = options.offsets, factors = options.per_sample_weights;
  require(!factors.defined() || factors.dim() == indices.dim(),
          "embedding_bag: If per_sample_weights ({}) is not null, then it must have the same shape as the "
          "input ({})",
          factors.defined() ? describe(factors).str() : "", describe(indices));
  if (indices.dim() == 2) {
    require(
        !offsets.defined(),
        "if input is 2D, then offsets has to be null, as input is treated is a mini-batch of fixed length "
        "sequences. However, found offsets of type {}",
        offsets.defined() ? describe(offsets).str() : "");
    offsets = arange(0, Scalar(indices.numel()), Scalar(indices.size(1)), indices.dtype(), std::nullopt,
                     indices.device());
    indices = reshape(indices, {-1});
    if (factors.defined()) factors = reshape(factors, {-1});
  } else {
    require(indices.dim() == 1, "input has to be 1D or 2D Tensor, but got Tensor of dimension {}",
            indices.dim());
    require(offsets.defined(), "offsets has to be a 1D Tensor but got null");
    require(offsets.dim() == 1, "offsets has to be a 1D Tensor, but it is {}", describe(offsets));
  }
  require(!options.scale_grad_by_freq || options.mode != BagMode::kMax,
          "max mode does not support scaling the gradient by the frequency");
  require(!options.sparse || options.mode != BagMode::kMax, "max mode does not support sparse weights");
  return std::get<0>(weft::embedding_bag(weight, indices, offsets, options.scale_grad_by_freq,
                                         static_cast<int64_t>(options.mode), options.sparse, factors,
                                         options.include_last_offset, options.padding_idx));
}

}  // namespace weft::nn::functional
