#include "weft/nn/layers.h"

#include <cmath>

#include "weft/autograd/autograd.h"
#include "weft/base/error.h"

namespace weft::nn {
namespace {

// Uniform in +-1/sqrt(fan_in): what PyTorch's layers start from.
Tensor uniform_by_fan(SymIntSpan sizes, int64_t fan_in, DType dtype = kFloat32) {
  double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  Tensor tensor = empty(sizes, dtype);
  // Both parts of complex numbers are drawn.
  (tensor.is_complex() ? view_as_real(tensor) : tensor).uniform_(-bound, bound);
  return tensor;
}

}  // namespace

Linear::Linear(int64_t in, int64_t out, LinearOptions options)
    : weight(parameter("weight", uniform_by_fan({out, in}, in, options.dtype))),
      bias(parameter("bias", options.bias ? uniform_by_fan({out}, in, options.dtype) : Tensor())) {}

Conv1d::Conv1d(int64_t in, int64_t out, int64_t kernel, ConvOptions options)
    : weight(parameter("weight",
                       uniform_by_fan({out, in / options.groups, kernel}, in / options.groups * kernel))),
      bias(parameter("bias", options.bias ? uniform_by_fan({out}, in / options.groups * kernel) : Tensor())),
      options_(options) {}

Tensor Conv1d::forward(const Tensor& x) {
  return conv1d(x, weight, bias, {options_.stride}, {options_.padding}, {options_.dilation}, options_.groups);
}

Conv2d::Conv2d(int64_t in, int64_t out, int64_t kernel, Conv2dOptions options)
    : weight(parameter("weight", uniform_by_fan({out, in / options.groups, kernel, kernel},
                                                in / options.groups * kernel * kernel))),
      bias(parameter("bias",
                     options.bias ? uniform_by_fan({out}, in / options.groups * kernel * kernel) : Tensor())),
      options_(options) {}

Tensor Conv2d::forward(const Tensor& x) {
  return conv2d(x, weight, bias, {options_.stride, options_.stride}, {options_.padding, options_.padding},
                {options_.dilation, options_.dilation}, options_.groups);
}

namespace {

int64_t padding_row(std::optional<int64_t> padding_idx, int64_t count) {
  if (!padding_idx) return -1;
  int64_t row = *padding_idx < 0 ? *padding_idx + count : *padding_idx;
  require(row >= 0 && row < count, "Embedding: padding_idx {} must be within the {} rows", *padding_idx,
          count);
  return row;
}

Tensor embedding_table(int64_t count, int64_t dim, int64_t padding) {
  require(count >= 0 && dim >= 0, "Embedding: {} rows of {} numbers cannot be made", count, dim);
  Tensor table = randn({count, dim});
  if (padding >= 0) table.select(0, padding).zero_();
  return table;
}

}  // namespace

Embedding::Embedding(int64_t count, int64_t dim, EmbeddingOptions options)
    : weight(parameter("weight", embedding_table(count, dim, padding_row(options.padding_idx, count)))),
      padding_(padding_row(options.padding_idx, count)),
      scale_grad_by_freq_(options.scale_grad_by_freq),
      sparse_(options.sparse) {}

EmbeddingBag::EmbeddingBag(int64_t count, int64_t dim, EmbeddingBagOptions options)
    : weight(parameter("weight", embedding_table(count, dim, padding_row(options.padding_idx, count)))),
      options_(options) {}
Tensor EmbeddingBag::forward(const Tensor& indices, const Tensor& offsets, const Tensor& per_sample_weights) {
  return functional::embedding_bag(indices, weight,
                                   {.offsets = offsets,
                                    .mode = options_.mode,
                                    .per_sample_weights = per_sample_weights,
                                    .padding_idx = options_.padding_idx,
                                    .scale_grad_by_freq = options_.scale_grad_by_freq,
                                    .sparse = options_.sparse,
                                    .include_last_offset = options_.include_last_offset});
}

}  // namespace weft::nn
