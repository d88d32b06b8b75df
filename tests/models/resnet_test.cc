// Residual networks against PyTorch's numbers.
#include "weft/models/resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/recorded_model.h"
#include "support/expect_error.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/fake.h"

namespace weft::models {
namespace {

using testing::values;

struct Model {
  std::string name;
  ResNet (*make)(const ResNetOptions& options);
};
const Model kResNet18{"resnet18", [](const ResNetOptions& o) { return resnet18(o); }},
    kResNet34{"resnet34", [](const ResNetOptions& o) { return resnet34(o); }},
    kResNet50{"resnet50", [](const ResNetOptions& o) { return resnet50(o); }},
    kResNeXt50{"resnext50_32x4d", [](const ResNetOptions& o) { return resnext50_32x4d(o); }};
std::string name_of(const ::testing::TestParamInfo<Model>& info) { return info.param.name; }

class ResNetState : public ::testing::TestWithParam<Model> {};

TEST_P(ResNetState, IsTorchvisions) {
  Json wanted = recorded(WEFT_SOURCE_DIR, GetParam().name);
  FakeMode no_data;
  ResNet net = GetParam().make({});
  expect_state(net, wanted);
}
INSTANTIATE_TEST_SUITE_P(Model, ResNetState, ::testing::Values(kResNet18, kResNet34, kResNet50, kResNeXt50),
                         name_of);

class ResNetValues : public ::testing::TestWithParam<Model> {};

TEST_P(ResNetValues, ArePyTorchs) {
  Json wanted = recorded(WEFT_SOURCE_DIR, GetParam().name);
  ResNet net = GetParam().make({.num_classes = 10});
  net.to(kFloat64);
  fill(net);
  Tensor images = spread({4, 3, 32, 32}, 9999), scores = net(images);
  expect_close(values(scores), wanted.at("training"), "scores in training");
  square(scores).mean().backward();
  for (const auto& [name, parameter] : net.named_parameters())
    expect_close(sums(parameter.grad()), wanted.at("gradients").at(name), "gradient of " + name);
  for (const auto& [name, buffer] : net.named_buffers())
    if (name.starts_with("layer4.0.bn1.running_"))
      expect_close(sums(buffer), wanted.at(name.substr(name.rfind('.') + 1)), name);
  net.eval();
  expect_close(values(net(images)), wanted.at("evaluation"), "scores in evaluation");
}
INSTANTIATE_TEST_SUITE_P(Model, ResNetValues, ::testing::Values(kResNet18, kResNet50), name_of);

TEST(ResNet, HasAsManyParametersAsPublished) {
  EXPECT_EQ(recorded(WEFT_SOURCE_DIR, "resnet18").at("parameters").as_int(), 11'689'512);
  EXPECT_EQ(recorded(WEFT_SOURCE_DIR, "resnet50").at("parameters").as_int(), 25'557'032);
}

TEST(ResNet, BeginsAsTrainingOfReluNetworksWants) {
  manual_seed(3);
  ResNet net = resnet18({.num_classes = 10, .zero_init_residual = true});
  for (const auto& [name, tensor] : net.named_parameters()) {
    if (tensor.dim() == 4) {
      double fan_out = static_cast<double>(tensor.plain_numel() / tensor.plain_sizes()[1]);
      double expected = std::sqrt(2 / fan_out), got = std(tensor.detach()).item().to_double();
      EXPECT_NEAR(got / expected, 1, 0.05) << name;
    } else if (name.find("bn") != std::string::npos) {
      bool is_last = name.ends_with("bn2.weight");
      EXPECT_EQ(values(tensor)[0], name.ends_with("bias") || is_last ? 0 : 1) << name;
    }
  }
}

TEST(ResNet, LeavesItsInputAlone) {
  ResNet net = resnet18({.num_classes = 4});
  Tensor images = spread({2, 3, 32, 32}, 5).to(kFloat32), before = clone(images);
  EXPECT_EQ(describe(net(images)).str(), "f32[2, 4]");
  EXPECT_TRUE(equal(images, before));
}

TEST(ResNet, RunsWithoutDataForAnyBatch) {
  Tensor images = spread({5, 3, 64, 48}, 5).to(kFloat32);
  Ref<ShapeEnv> env = ShapeEnv::create();
  FakeMode mode({.shape_env = env});
  ResNet net = resnet18({.num_classes = 4});
  Tensor fake = mode.fake_of(images, "x");
  for (bool training : {true, false}) {
    net.train(training);
    Tensor scores = net(fake);
    EXPECT_TRUE(scores.size(0).is_symbolic());
    EXPECT_TRUE(scores.size(0).same_as(fake.size(0)));
    EXPECT_EQ(scores.size(1).plain(), 4);
  }
}

TEST(ResNet, RefusesGroupsInBasicBlocks) {
  EXPECT_ERROR(resnet18({.groups = 2}), "BasicBlock only supports groups=1 and base_width=64");
}

}  // namespace
}  // namespace weft::models
