#pragma once

#include <optional>

#include "weft/nn/functional.h"
#include "weft/nn/module.h"

// Layers that change the height and width of images: pooling and resizing. They have neither parameters nor
// buffers.

namespace weft::nn {

struct MaxPool2dOptions {
  int64_t stride = 0, padding = 0, dilation = 1;  // stride 0: the kernel's size
  bool ceil_mode = false;
};
class MaxPool2d : public Module {
 public:
  explicit MaxPool2d(int64_t kernel, MaxPool2dOptions options = {}) : kernel_(kernel), options_(options) {}
  Tensor forward(const Tensor& x);
  WEFT_ARGS(input)

 private:
  int64_t kernel_;
  MaxPool2dOptions options_;
};

struct AvgPool2dOptions {
  int64_t stride = 0, padding = 0;  // stride 0: the kernel's size
  bool ceil_mode = false;
  bool count_include_pad = true;                 // padding counts as zeros in the averages
  std::optional<int64_t> divisor_override = {};  // divide by this instead of the number of elements
};
class AvgPool2d : public Module {
 public:
  explicit AvgPool2d(int64_t kernel, AvgPool2dOptions options = {}) : kernel_(kernel), options_(options) {}
  Tensor forward(const Tensor& x);
  WEFT_ARGS(input)

 private:
  int64_t kernel_;
  AvgPool2dOptions options_;
};

// Averages over as many bins as the output has pixels. A size that is not given is the input's.
class AdaptiveAvgPool2d : public Module {
 public:
  explicit AdaptiveAvgPool2d(int64_t output_size) : AdaptiveAvgPool2d(output_size, output_size) {}
  AdaptiveAvgPool2d(std::optional<int64_t> height, std::optional<int64_t> width)
      : height_(height), width_(width) {}
  Tensor forward(const Tensor& x);
  WEFT_ARGS(input)

 private:
  std::optional<int64_t> height_, width_;
};

using UpsampleOptions = functional::InterpolateOptions;
// nn::Upsample({.scale_factor = {2}, .mode = "bilinear"})
class Upsample : public Module {
 public:
  explicit Upsample(UpsampleOptions options) : options_(std::move(options)) {}
  Tensor forward(const Tensor& x) { return functional::interpolate(x, options_); }
  WEFT_ARGS(input)

 private:
  UpsampleOptions options_;
};

}  // namespace weft::nn
