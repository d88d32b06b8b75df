#pragma once

#include <array>
#include <optional>

#include "weft/nn/layers.h"

// Residual networks for images (He et al., 2015), with the structure and the parameter names of
// torchvision's: its state dicts load.
//
//   models::ResNet net = models::resnet18({.num_classes = 10});
//   Tensor scores = net(randn({1, 3, 224, 224}));

namespace weft::models {

// Two 3x3 convolutions beside a shortcut.
class BasicBlock : public nn::Module {
 public:
  static constexpr int64_t kExpansion = 1;  // channels that leave, for each of `planes`
  struct Shape {
    int64_t in, planes, stride = 1, groups = 1, base_width = 64;
  };
  explicit BasicBlock(const Shape& shape);
  Tensor forward(const Tensor& x);
  WEFT_ARGS(x)

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::ReLU relu;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  std::optional<nn::Sequential> downsample;  // where the shortcut changes the sizes
};

// A 3x3 convolution between two 1x1 ones, which narrow and widen the channels, beside a shortcut.
class Bottleneck : public nn::Module {
 public:
  static constexpr int64_t kExpansion = 4;
  using Shape = BasicBlock::Shape;
  explicit Bottleneck(const Shape& shape);
  Tensor forward(const Tensor& x);
  WEFT_ARGS(x)

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Conv2d conv3;
  nn::BatchNorm2d bn3;
  nn::ReLU relu;
  std::optional<nn::Sequential> downsample;
};

struct ResNetOptions {
  int64_t num_classes = 1000;
  bool zero_init_residual = false;           // every block begins as its shortcut alone
  int64_t groups = 1, width_per_group = 64;  // of the 3x3 convolutions in bottlenecks
};
// Images of [N, 3, H, W] to scores of [N, num_classes].
class ResNet : public nn::Module {
 public:
  enum class Block : uint8_t { kBasic, kBottleneck };
  // `depths`: how many blocks each of the four stages has.
  ResNet(Block block, const std::array<int64_t, 4>& depths, const ResNetOptions& options = {});
  Tensor forward(const Tensor& x);
  WEFT_ARGS(x)

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::ReLU relu;
  nn::MaxPool2d maxpool;
  nn::Sequential layer1, layer2, layer3, layer4;
  nn::AdaptiveAvgPool2d avgpool;
  nn::Linear fc;
};

ResNet resnet18(const ResNetOptions& options = {});
ResNet resnet34(const ResNetOptions& options = {});
ResNet resnet50(const ResNetOptions& options = {});
// ResNeXt-50 32x4d: a ResNet-50 with 32 groups of 4 channels.
ResNet resnext50_32x4d(ResNetOptions options = {});

}  // namespace weft::models
