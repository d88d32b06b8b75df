#include "weft/nn/recurrent.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/nn/layers.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::close;

std::vector<std::string> named_sizes(const nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : module.named_parameters())
    names.push_back(name + describe_sizes(tensor.sizes()).str());
  return names;
}

TEST(Lstm, HasPyTorchsParameters) {
  EXPECT_EQ(named_sizes(nn::LSTM(3, 2)), (std::vector<std::string>{"weight_ih_l0[8, 3]", "weight_hh_l0[8, 2]",
                                                                "bias_ih_l0[8]", "bias_hh_l0[8]"}));
  const nn::LSTM both(3, 4, {.num_layers = 2, .bias = false, .bidirectional = true, .proj_size = 2});
  EXPECT_EQ(named_sizes(both),
            (std::vector<std::string>{
                "weight_ih_l0[16, 3]", "weight_hh_l0[16, 2]", "weight_hr_l0[2, 4]",
                "weight_ih_l0_reverse[16, 3]", "weight_hh_l0_reverse[16, 2]", "weight_hr_l0_reverse[2, 4]",
                "weight_ih_l1[16, 4]", "weight_hh_l1[16, 2]", "weight_hr_l1[2, 4]",
                "weight_ih_l1_reverse[16, 4]", "weight_hh_l1_reverse[16, 2]", "weight_hr_l1_reverse[2, 4]"}));
}

TEST(Lstm, GoesOnFromAState) {
  const nn::LSTM lstm(3, 2, {.num_layers = 2});
  const Tensor sequence = randn({6, 4, 3});
  const auto [whole, last] = lstm(sequence);
  const auto [first, state] = lstm(slice(sequence, 0, 0, 2));
  const auto [rest, last_too] = lstm(slice(sequence, 0, 2), std::optional<nn::LSTM::State>(state));
  EXPECT_TRUE(close(cat({first, rest}, 0), whole, 1e-5, 1e-6));
  EXPECT_TRUE(close(std::get<0>(last), std::get<0>(last_too), 1e-5, 1e-6));
  EXPECT_TRUE(close(std::get<1>(last), std::get<1>(last_too), 1e-5, 1e-6));
}

TEST(Lstm, OneSequenceIsABatchOfOne) {
  for (const bool batch_first : {false, true}) {
    const nn::LSTM lstm(3, 2, {.batch_first = batch_first, .bidirectional = true});
    const int64_t batch_dim = batch_first ? 0 : 1;
    const Tensor sequence = randn({5, 3});
    const auto [one, state] = lstm(sequence);
    const auto [batch, states] = lstm(unsqueeze(sequence, batch_dim));
    EXPECT_TRUE(close(unsqueeze(one, batch_dim), batch, 1e-5, 1e-6));
    EXPECT_TRUE(close(unsqueeze(std::get<1>(state), 1), std::get<1>(states), 1e-5, 1e-6));
    const auto [again, ignored] = lstm(sequence, std::optional<nn::LSTM::State>(state));
    EXPECT_EQ(describe_sizes(again.sizes()).str(), "[5, 4]");
  }
}

TEST(Lstm, RefusesSizesThatMakeNoSense) {
  EXPECT_USER_ERROR(nn::LSTM(0, 2), "must be greater than zero");
  EXPECT_USER_ERROR(nn::LSTM(3, 2, {.proj_size = 2}), "proj_size must be smaller than the hidden size 2");
  EXPECT_USER_ERROR(nn::LSTM(3, 2, {.dropout = 2}), "in [0, 1], but is 2");
  EXPECT_USER_ERROR(nn::LSTM(3, 2)(randn({2, 2, 2, 3})), "Expected input to be 2D or 3D");
}

TEST(Conv1d, IsAConvolutionOverOneDim) {
  const nn::Conv1d layer(4, 6, 3, {.stride = 2, .padding = 1, .groups = 2});
  EXPECT_EQ(named_sizes(layer), (std::vector<std::string>{"weight[6, 2, 3]", "bias[6]"}));
  const Tensor x = randn({2, 4, 9});
  const Tensor by_two_dims =
      squeeze(conv2d(unsqueeze(x, 2), unsqueeze(layer.weight, 2), layer.bias, {1, 2}, {0, 1}, {1, 1}, 2), 2);
  EXPECT_TRUE(close(layer(x), by_two_dims, 1e-5, 1e-6));
  EXPECT_TRUE(close(layer(x[0]), by_two_dims[0], 1e-5, 1e-6));
}

TEST(FixedMode, OfAPartStaysOfTheModuleIsAnError) {
  nn::Sequential outer{nn::Dropout(), nn::Dropout()};
  nn::Module part = outer.modules()[1];
  part.state()->has_fixed_mode = true;
  outer.eval();
  EXPECT_FALSE(outer.is_training());
  EXPECT_TRUE(part.is_training());
  EXPECT_FALSE(outer.modules()[2].is_training());
  EXPECT_UNSUPPORTED(part.eval(), "Calling eval() is not supported yet.");
}

}  // namespace
}  // namespace weft
