// Layers against the values of PyTorch 2.13's.
#include "weft/nn/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/nn/init.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using testing::close;
using testing::values;
using testing::vec;

std::vector<std::string> names_of(const nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& entry : module.state_dict()) names.push_back(entry.first);
  return names;
}
// 0, 1, 2, ... in row-major order.
Tensor counted(SymIntSpan sizes) {
  return arange(sym_product({sizes.data(), sizes.size()}).plain(), kFloat64).view(sizes);
}

// --- activations -----------------------------------------------------------------------------------------

const std::vector<double> kInputs = {-4, -0.5, 0, 0.5, 1, 7};

TEST(ActivationLayers, ComputeWhatTheirNamesSay) {
  Tensor x = vec(kInputs);
  EXPECT_TRUE(close(nn::Sigmoid()(x), vec({0.01798620996209156, 0.3775406687981454, 0.5, 0.6224593312018546,
                                           0.7310585786300049, 0.9990889488055994})));
  EXPECT_TRUE(close(nn::Tanh()(x), vec({-0.999329299739067, -0.46211715726000974, 0, 0.46211715726000974,
                                        0.7615941559557649, 0.9999983369439447})));
  EXPECT_TRUE(close(nn::GELU()(x), vec({-0.00012668496733247991, -0.15426876936299344, 0, 0.34573123063700656,
                                        0.841344746068543, 6.999999999991041})));
  EXPECT_TRUE(close(nn::GELU("tanh")(x), vec({-7.024594819227126e-05, -0.15428599017485606, 0,
                                              0.34571400982514394, 0.8411919906082768, 6.999999999999997})));
  EXPECT_TRUE(close(nn::SiLU()(x), vec({-0.07194483984836623, -0.1887703343990727, 0, 0.3112296656009273,
                                        0.7310585786300049, 6.993622641639196})));
  EXPECT_TRUE(
      close(nn::Softmax(0)(x), vec({1.6610940944322247e-05, 0.0005500788168303786, 0.0009069266458698048,
                                    0.0014952692520102694, 0.002465282221213202, 0.9945658321231321})));
  EXPECT_EQ(values(nn::ReLU()(x)), (std::vector<double>{0, 0, 0, 0.5, 1, 7}));
  EXPECT_EQ(values(nn::Hardtanh()(x)), (std::vector<double>{-1, -0.5, 0, 0.5, 1, 1}));
  EXPECT_EQ(values(nn::Hardtanh(-2, 0.25)(x)), (std::vector<double>{-2, -0.5, 0, 0.25, 0.25, 0.25}));
  EXPECT_EQ(values(nn::ReLU6()(x)), (std::vector<double>{0, 0, 0, 0.5, 1, 6}));
  EXPECT_EQ(values(nn::LeakyReLU()(x)), (std::vector<double>{-0.04, -0.005, 0, 0.5, 1, 7}));
  EXPECT_EQ(values(nn::LeakyReLU(0.5)(x)), (std::vector<double>{-2, -0.25, 0, 0.5, 1, 7}));
  EXPECT_TRUE(nn::Identity()(x).is_same(x));
  EXPECT_EQ(values(x), kInputs);
}

TEST(ActivationLayers, WriteOverTheirInputWhereAsked) {
  auto check = [](auto layer, double first) {
    Tensor x = vec(kInputs);
    EXPECT_TRUE(layer(x).is_same(x));
    EXPECT_NEAR(values(x)[0], first, 1e-12);
  };
  check(nn::ReLU({.inplace = true}), 0);
  check(nn::ReLU6({.inplace = true}), 0);
  check(nn::Hardtanh(-2, 2, {.inplace = true}), -2);
  check(nn::LeakyReLU(0.1, {.inplace = true}), -0.4);
  check(nn::SiLU({.inplace = true}), -0.07194483984836623);
}

TEST(ActivationLayers, RefuseWhatTheyCannotDo) {
  EXPECT_ERROR(nn::GELU("sigmoid"), "approximate must be \"none\" or \"tanh\", but is \"sigmoid\"");
  EXPECT_ERROR(nn::Hardtanh(1, 1), "expected max_val above min_val, but got [1, 1]");
}

// --- normalisation ---------------------------------------------------------------------------------------

TEST(BatchNorm1dTest, NormalisesVectorsAndSequences) {
  nn::BatchNorm1d norm(3);
  norm.to(kFloat64);
  EXPECT_EQ(names_of(norm), (std::vector<std::string>{"weight", "bias", "running_mean", "running_var",
                                                      "num_batches_tracked"}));
  Tensor x = counted({2, 3, 2});
  const double a = 1.150792289087783, b = 0.8219944922055593;
  EXPECT_TRUE(close(norm(x).detach(), vec({-a, -b, -a, -b, -a, -b, b, a, b, a, b, a}).view({2, 3, 2})));
  EXPECT_TRUE(close(norm.running_mean, vec({0.35, 0.55, 0.75})));
  EXPECT_TRUE(close(norm.running_var, vec({2.1333333333333333, 2.1333333333333333, 2.1333333333333333})));
  norm.eval();
  EXPECT_NEAR(values(norm(x))[0], -0.2396280572809091, 1e-9);
  EXPECT_EQ(values(norm.num_batches_tracked), std::vector<double>{1});
  EXPECT_EQ(describe(norm(x.select(2, 0))).str(), "f64[2, 3]");
}

TEST(BatchNorm1dTest, WithoutStatisticsNormalisesByTheBatchAlways) {
  nn::BatchNorm1d norm(2, {.affine = false, .track_running_stats = false});
  EXPECT_TRUE(norm.state_dict().empty());
  Tensor x = counted({2, 3, 2}).select(1, 0), wanted = vec({-1, -1, 1, 1}).view({2, 2}) * 0.9999994444449074;
  EXPECT_TRUE(close(norm(x), wanted));
  norm.eval();
  EXPECT_TRUE(close(norm(x), wanted));
}

TEST(BatchNormLayers, SayWhatTheyTake) {
  EXPECT_ERROR(nn::BatchNorm1d(3)(ones({3})), "expected 2D or 3D input (got 1D input)");
  EXPECT_ERROR(nn::BatchNorm2d(3)(ones({3, 3})), "expected 4D input (got 2D input)");
  nn::BatchNorm1d norm(3);
  EXPECT_ERROR(norm(ones({1, 3})),
               "Expected more than 1 value per channel when training, got input size [1, 3]");
  norm.eval();
  EXPECT_EQ(describe(norm(ones({1, 3}))).str(), "f32[1, 3]");
}

TEST(GroupNormTest, NormalisesGroupsOfChannels) {
  nn::GroupNorm norm(2, 4);
  norm.to(kFloat64);
  EXPECT_EQ(names_of(norm), (std::vector<std::string>{"weight", "bias"}));
  std::vector<double> got = values(norm(counted({1, 4, 2, 2})));
  const double wanted[] = {-1.52752377686809, -1.0910884120486357, -0.6546530472291815, -0.21821768240972722};
  for (size_t i = 0; i < 16; ++i)
    EXPECT_NEAR(got[i], i % 8 < 4 ? wanted[i % 8] : -wanted[7 - i % 8], 1e-9) << i;
  EXPECT_TRUE(nn::GroupNorm(2, 4, {.affine = false}).state_dict().empty());
  EXPECT_ERROR(nn::GroupNorm(2, 3), "num_channels (3) must be divisible by num_groups (2)");
}

// --- initialisers ----------------------------------------------------------------------------------------

TEST(Initialisers, SpreadByTheFanThatTheyAreAskedFor) {
  manual_seed(1);
  Tensor weight = empty({64, 32, 3, 3}).set_requires_grad();
  EXPECT_EQ(nn::init::fans_of(weight).in, 288);
  EXPECT_EQ(nn::init::fans_of(weight).out, 576);
  auto deviation = [&] { return std(weight.detach()).item().to_double(); };
  EXPECT_TRUE(nn::init::kaiming_normal_(weight).is_same(weight));
  EXPECT_NEAR(deviation(), std::sqrt(2.0 / 288), 1e-3);
  nn::init::kaiming_normal_(weight, {.mode = nn::init::FanMode::kFanOut, .gain = 1});
  EXPECT_NEAR(deviation(), std::sqrt(1.0 / 576), 1e-3);
  nn::init::kaiming_uniform_(weight);
  EXPECT_NEAR(deviation(), std::sqrt(2.0 / 288), 1e-3);
  EXPECT_LE(abs(weight.detach()).max().item().to_double(), std::sqrt(6.0 / 288));
  EXPECT_TRUE(weight.is_leaf());
  EXPECT_ERROR(nn::init::kaiming_normal_(ones({3})), "f32[3] has less");
}

// --- pooling and resizing --------------------------------------------------------------------------------

TEST(PoolingLayers, AverageWindowsAndBins) {
  Tensor x = counted({1, 4, 2, 2}), one = x.slice(1, 0, 1);
  EXPECT_EQ(values(nn::AdaptiveAvgPool2d(1)(x)), (std::vector<double>{1.5, 5.5, 9.5, 13.5}));
  EXPECT_EQ(values(nn::AdaptiveAvgPool2d(std::nullopt, 1)(one)), (std::vector<double>{0.5, 2.5}));
  EXPECT_EQ(values(nn::AvgPool2d(2)(x)), (std::vector<double>{1.5, 5.5, 9.5, 13.5}));
  EXPECT_EQ(values(nn::AvgPool2d(2, {.stride = 1, .padding = 1})(one)),
            (std::vector<double>{0, 0.25, 0.25, 0.5, 1.5, 1, 0.5, 1.25, 0.75}));
  EXPECT_EQ(values(nn::AvgPool2d(2, {.stride = 1, .padding = 1, .count_include_pad = false})(one)),
            (std::vector<double>{0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3}));
  EXPECT_EQ(values(nn::AvgPool2d(2, {.divisor_override = 3})(one)), (std::vector<double>{2}));
}

TEST(UpsampleTest, ResizesImages) {
  Tensor x = counted({1, 1, 2, 2});
  EXPECT_EQ(values(nn::Upsample({.scale_factor = {2}})(x)),
            (std::vector<double>{0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3}));
  std::vector<double> ramp = {0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3};
  EXPECT_TRUE(close(nn::Upsample({.size = {3}, .mode = "bilinear"})(x), vec(ramp).view({1, 1, 3, 3})));
  nn::Upsample aligned({.scale_factor = {1.5}, .mode = "bilinear", .align_corners = true});
  EXPECT_TRUE(close(aligned(x), vec(ramp).view({1, 1, 3, 3})));
}

using nn::functional::interpolate;

TEST(Interpolate, FollowsItsFactorsOrTheSizesTheyGive) {
  Tensor x = counted({1, 1, 5, 5});
  EXPECT_TRUE(close(interpolate(x, {.scale_factor = {0.5}, .mode = "bilinear"}),
                    vec({3, 5, 13, 15}).view({1, 1, 2, 2})));
  EXPECT_TRUE(
      close(interpolate(x, {.scale_factor = {0.5}, .mode = "bilinear", .recompute_scale_factor = true}),
            vec({4.5, 7, 17, 19.5}).view({1, 1, 2, 2})));
  EXPECT_TRUE(close(interpolate(x, {.size = {2, 3}, .mode = "area"}),
                    vec({5.5, 7, 8.5, 15.5, 17, 18.5}).view({1, 1, 2, 3})));
  EXPECT_TRUE(
      close(interpolate(x, {.scale_factor = {0.5}, .mode = "area"}), vec({6, 8, 16, 18}).view({1, 1, 2, 2})));
}

TEST(Interpolate, ComputesSymbolicSizes) {
  Tensor real = counted({1, 2, 6, 10});
  Ref<ShapeEnv> env = ShapeEnv::create();
  FakeMode mode({.shape_env = env});
  Tensor x = mode.fake_of(real, "x");
  Tensor y = interpolate(x, {.scale_factor = {2}, .mode = "bilinear"});
  EXPECT_EQ(y.size(2).hint(), 12);
  EXPECT_TRUE(y.size(2).is_symbolic());
  Tensor z = interpolate(x, {.scale_factor = {0.5, 1.5}, .recompute_scale_factor = true});
  EXPECT_EQ(z.size(2).hint(), 3);
  EXPECT_EQ(z.size(3).hint(), 15);
  EXPECT_TRUE(z.size(3).is_symbolic());
  for (const auto& [symbol, value] : env->replacements())
    EXPECT_FALSE(value->is_constant()) << symbol->to_string() << " became " << value->to_string();
  // The sizes of another image.
  Tensor like = interpolate(x, {.size = {x.size(2), x.size(3)}});
  EXPECT_TRUE(like.size(2).same_as(x.size(2)));
}

TEST(Interpolate, RefusesContradictions) {
  Tensor x = ones({1, 1, 5, 5});
  EXPECT_ERROR(interpolate(x, {}), "either size or scale_factor should be defined");
  EXPECT_ERROR(interpolate(x, {.size = {2}, .scale_factor = {2}}), "only one of size or scale_factor");
  EXPECT_ERROR(interpolate(x, {.size = {2}, .align_corners = true}), "align_corners option can only be set");
  EXPECT_ERROR(interpolate(x, {.size = {2, 2, 2}}),
               "Input and output must have the same number of spatial dimensions");
  EXPECT_ERROR(interpolate(x, {.scale_factor = {2, 2, 2}}),
               "Input and scale_factor must have the same number");
  EXPECT_ERROR(interpolate(x, {.size = {2}, .recompute_scale_factor = true}),
               "not meaningful with an explicit size");
  EXPECT_ERROR(interpolate(x, {.size = {2}, .mode = "bicubic"}), "mode \"bicubic\"");
  EXPECT_ERROR(interpolate(ones({5, 5}), {.size = {2}}), "expected an image of [N, C, H, W]");
}

}  // namespace
}  // namespace weft
