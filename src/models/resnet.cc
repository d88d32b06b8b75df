#include "weft/models/resnet.h"

#include "weft/base/error.h"
#include "weft/dispatch/layers.h"
#include "weft/nn/init.h"

namespace weft::models {
namespace {

// A convolution without bias, since a batch norm follows each, that begins as training of ReLU networks
// wants.
nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1, int64_t groups = 1) {
  nn::Conv2d conv(in, out, kernel,
                  {.stride = stride, .padding = kernel / 2, .groups = groups, .bias = false});
  nn::init::kaiming_normal_(conv.weight, {.mode = nn::init::FanMode::kFanOut});
  return conv;
}

// Made only where the block's input does not fit its output.
std::optional<nn::Sequential> shortcut(int64_t in, int64_t out, int64_t stride) {
  if (stride == 1 && in == out) return std::nullopt;
  return nn::Sequential(convolution(in, out, 1, stride), nn::BatchNorm2d(out));
}

int64_t width_of(const Bottleneck::Shape& shape) {
  return shape.planes * shape.base_width / 64 * shape.groups;
}

}  // namespace

BasicBlock::BasicBlock(const Shape& shape)
    : conv1(child("conv1", convolution(shape.in, shape.planes, 3, shape.stride))),
      bn1(child("bn1", nn::BatchNorm2d(shape.planes))),
      relu(child("relu", nn::ReLU({.inplace = true}))),
      conv2(child("conv2", convolution(shape.planes, shape.planes, 3))),
      bn2(child("bn2", nn::BatchNorm2d(shape.planes))),
      downsample(shortcut(shape.in, shape.planes * kExpansion, shape.stride)) {
  require(shape.groups == 1 && shape.base_width == 64,
          "BasicBlock only supports groups=1 and base_width=64, but got groups={} and base_width={}",
          shape.groups, shape.base_width);
  if (downsample) child("downsample", *downsample);
}

Tensor BasicBlock::forward(const Tensor& x) {
  Tensor out = bn2(conv2(relu(bn1(conv1(x)))));
  out += downsample ? (*downsample)(x) : x;
  return relu(out);
}

// The stride is the 3x3 convolution's, as in torchvision, not the first one's as in the paper.
Bottleneck::Bottleneck(const Shape& shape)
    : conv1(child("conv1", convolution(shape.in, width_of(shape), 1))),
      bn1(child("bn1", nn::BatchNorm2d(width_of(shape)))),
      conv2(child("conv2", convolution(width_of(shape), width_of(shape), 3, shape.stride, shape.groups))),
      bn2(child("bn2", nn::BatchNorm2d(width_of(shape)))),
      conv3(child("conv3", convolution(width_of(shape), shape.planes * kExpansion, 1))),
      bn3(child("bn3", nn::BatchNorm2d(shape.planes * kExpansion))),
      relu(child("relu", nn::ReLU({.inplace = true}))),
      downsample(shortcut(shape.in, shape.planes * kExpansion, shape.stride)) {
  if (downsample) child("downsample", *downsample);
}

Tensor Bottleneck::forward(const Tensor& x) {
  Tensor out = bn3(conv3(relu(bn2(conv2(relu(bn1(conv1(x))))))));
  out += downsample ? (*downsample)(x) : x;
  return relu(out);
}

namespace {

// One stage: its first block changes the sizes, the others keep them.
template <typename Block>
nn::Sequential stage_of(int64_t in, int64_t planes, int64_t depth, int64_t stride,
                        const ResNetOptions& options) {
  nn::Sequential stage;
  for (int64_t i = 0; i < depth; ++i) {
    Block block({i == 0 ? in : planes * Block::kExpansion, planes, i == 0 ? stride : 1, options.groups,
                 options.width_per_group});
    if (options.zero_init_residual) {
      GradModeScope no_grad(false);
      if constexpr (std::is_same_v<Block, Bottleneck>) block.bn3.weight.zero_();
      else block.bn2.weight.zero_();
    }
    stage.push_back(std::move(block));
  }
  return stage;
}

int64_t expansion_of(ResNet::Block block) {
  return block == ResNet::Block::kBasic ? BasicBlock::kExpansion : Bottleneck::kExpansion;
}
// Stage i (from 0) has 64 * 2^i planes.
nn::Sequential stage(ResNet::Block block, int i, const std::array<int64_t, 4>& depths,
                     const ResNetOptions& options) {
  int64_t planes = int64_t{64} << i, in = i == 0 ? 64 : planes / 2 * expansion_of(block);
  auto make = block == ResNet::Block::kBasic ? &stage_of<BasicBlock> : &stage_of<Bottleneck>;
  return make(in, planes, depths[static_cast<size_t>(i)], i == 0 ? 1 : 2, options);
}

}  // namespace

ResNet::ResNet(Block block, const std::array<int64_t, 4>& depths, const ResNetOptions& options)
    : conv1(child("conv1", convolution(3, 64, 7, 2))),
      bn1(child("bn1", nn::BatchNorm2d(64))),
      relu(child("relu", nn::ReLU({.inplace = true}))),
      maxpool(child("maxpool", nn::MaxPool2d(3, {.stride = 2, .padding = 1}))),
      layer1(child("layer1", stage(block, 0, depths, options))),
      layer2(child("layer2", stage(block, 1, depths, options))),
      layer3(child("layer3", stage(block, 2, depths, options))),
      layer4(child("layer4", stage(block, 3, depths, options))),
      avgpool(child("avgpool", nn::AdaptiveAvgPool2d(1))),
      fc(child("fc", nn::Linear(512 * expansion_of(block), options.num_classes))) {}

Tensor ResNet::forward(const Tensor& x) {
  Tensor out = maxpool(relu(bn1(conv1(x))));
  out = layer4(layer3(layer2(layer1(out))));
  return fc(flatten(avgpool(out), 1));
}

ResNet resnet18(const ResNetOptions& options) { return ResNet(ResNet::Block::kBasic, {2, 2, 2, 2}, options); }
ResNet resnet34(const ResNetOptions& options) { return ResNet(ResNet::Block::kBasic, {3, 4, 6, 3}, options); }
ResNet resnet50(const ResNetOptions& options) {
  return ResNet(ResNet::Block::kBottleneck, {3, 4, 6, 3}, options);
}
ResNet resnext50_32x4d(ResNetOptions options) {
  options.groups = 32;
  options.width_per_group = 4;
  return resnet50(options);
}

}  // namespace weft::models
