// Residual networks against PyTorch's numbers. scripts/record_models.py made the files of tests/data/models
// and has the formula of the weights.
#include "weft/models/resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/fake.h"

namespace weft::models {
namespace {

using testing::values;

Json recorded(const std::string& name) {
  std::ifstream file(WEFT_SOURCE_DIR "/tests/data/models/" + name + ".json");
  std::stringstream text;
  text << file.rdbuf();
  return Json::parse(text.str(), name);
}

// Numbers in [-1, 1) that the recording side computes too.
Tensor spread(SymIntSpan sizes, uint64_t seed) {
  Tensor tensor = empty(sizes, kFloat64);
  for (int64_t i = 0; i < tensor.plain_numel(); ++i) {
    auto mixed = static_cast<uint32_t>((static_cast<uint64_t>(i) + 1000003 * seed) * 2654435761u);
    tensor.data<double>()[i] = static_cast<double>(mixed) / 0x1p31 - 1;
  }
  return tensor;
}

void fill(const nn::Module& net) {
  GradModeScope no_grad(false);
  uint64_t k = 0;
  for (const auto& [name, tensor] : net.state_dict()) {
    Tensor numbers = spread(tensor.sizes(), k++);
    if (!tensor.is_floating_point()) continue;
    if (tensor.dim() == 4)
      numbers *= std::sqrt(6.0 / static_cast<double>(tensor.plain_numel() / tensor.plain_sizes()[0]));
    else if (name.ends_with("running_var") || (name.ends_with("weight") && tensor.dim() == 1))
      numbers = numbers * 0.25 + 1;
    else numbers *= 0.125;
    copy_(tensor, numbers);
  }
}

std::vector<double> sums(const Tensor& tensor) {
  Tensor flat = tensor.detach().flatten();
  return {norm(flat).item().to_double(), (flat * spread(flat.sizes(), 1)).sum().item().to_double()};
}

void expect_close(const std::vector<double>& got, const Json& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  double largest = 0;
  for (const Json& number : wanted.as_array()) largest = std::max(largest, std::fabs(number.as_double()));
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], wanted.at(i).as_double(), 1e-7 * largest) << what << ", number " << i;
}

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
  Json wanted = recorded(GetParam().name);
  FakeMode no_data;
  ResNet net = GetParam().make({});
  nn::NamedTensors state = net.state_dict();
  ASSERT_EQ(state.size(), wanted.at("state").size());
  for (size_t i = 0; i < state.size(); ++i) {
    const Json& entry = wanted.at("state").at(i);
    EXPECT_EQ(state[i].first, entry.at(0).as_string());
    std::vector<int64_t> sizes;
    for (const Json& size : entry.at(1).as_array()) sizes.push_back(size.as_int());
    EXPECT_EQ(state[i].second.plain_sizes().vec(), sizes) << state[i].first;
  }
  int64_t parameters = 0;
  for (const Tensor& parameter : net.parameters()) parameters += parameter.plain_numel();
  EXPECT_EQ(parameters, wanted.at("parameters").as_int());
}
INSTANTIATE_TEST_SUITE_P(Model, ResNetState, ::testing::Values(kResNet18, kResNet34, kResNet50, kResNeXt50),
                         name_of);

class ResNetValues : public ::testing::TestWithParam<Model> {};

TEST_P(ResNetValues, ArePyTorchs) {
  Json wanted = recorded(GetParam().name);
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
  EXPECT_EQ(recorded("resnet18").at("parameters").as_int(), 11'689'512);
  EXPECT_EQ(recorded("resnet50").at("parameters").as_int(), 25'557'032);
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
