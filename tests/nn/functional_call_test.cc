#include "weft/nn/functional_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/dispatch/recorder.h"
#include "weft/func/func.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using testing::close;
using testing::ramp;
using testing::values;
using testing::vec;

struct SubstitutedNet : nn::Module {
  nn::Linear fc1 = child("fc1", nn::Linear(3, 4));
  nn::Linear fc2 = child("fc2", nn::Linear(4, 1));
  Tensor forward(const Tensor& x) { return fc2(tanh(fc1(x))); }
  WEFT_ARGS(x)
};

TEST(FunctionalCall, UsesTheGivenTensorsAndLeavesTheModule) {
  nn::Linear layer(3, 2);
  Tensor x = ramp({2, 3}).to(kFloat32), before = layer.weight.clone();
  Tensor w = zeros({2, 3}), b = vec({1, 2}).to(kFloat32);
  EXPECT_EQ(values(nn::functional_call(layer, {{"weight", w}, {"bias", b}}, x)),
            (std::vector<double>{1, 2, 1, 2}));
  EXPECT_TRUE(close(layer.weight.detach(), before.detach()));
  EXPECT_TRUE(close(layer(x).detach(), linear(x, layer.weight, layer.bias).detach()));
}

TEST(FunctionalCall, GradientsGoToTheGivenTensors) {
  nn::Linear layer(3, 2);
  Tensor x = ramp({2, 3}).to(kFloat32), w = ramp({2, 3}).to(kFloat32).set_requires_grad();
  nn::functional_call(layer, {{"weight", w}}, x).sum().backward();
  EXPECT_TRUE(w.grad().defined());
  EXPECT_FALSE(layer.weight.grad().defined());
  EXPECT_TRUE(layer.bias.grad().defined());  // not named: the module's own
}

TEST(FunctionalCall, PerSampleGradientsOfAModule) {
  SubstitutedNet net;
  Tensor x = ramp({5, 3}).to(kFloat32);
  nn::NamedTensors parameters = net.named_parameters();
  func::Tensors given;
  for (const auto& [name, tensor] : parameters) given.push_back(tensor.detach());
  auto loss = [&](const func::Tensors& args) {
    nn::NamedTensors named;
    for (size_t i = 0; i < parameters.size(); ++i) named.emplace_back(parameters[i].first, args[i]);
    return func::Tensors{pow(nn::functional_call(net, named, args.back()), 2).sum()};
  };
  func::Tensors args = given;
  args.push_back(x);
  std::vector<int64_t> in_dims(given.size(), func::kNoDim);
  in_dims.push_back(0);
  func::Tensors per_sample = func::vmap(func::grad(func::Fn(loss), {0, 1, 2, 3}), {.in_dims = in_dims})(args);
  for (int64_t i = 0; i < 5; ++i) {
    net.zero_grad();
    pow(net(x.select(0, i)), 2).sum().backward();
    for (size_t p = 0; p < parameters.size(); ++p)
      EXPECT_TRUE(close(per_sample[p].select(0, i), parameters[p].second.grad(), 1e-4, 1e-5))
          << parameters[p].first << " " << i;
  }
}

TEST(FunctionalCall, CompositesStayWholeForRecorders) {
  nn::Linear layer(3, 2);
  CallList recorder;
  {
    RecorderScope scope(recorder, Recorder::Position::kUpper);
    nn::functional_call(layer, {{"weight", zeros({2, 3})}}, zeros({1, 3}));
  }
  EXPECT_THAT(recorder.names(), ::testing::Contains("aten::linear"));
}

TEST(FunctionalCallErrors, NameWhatIsWrong) {
  nn::Linear layer(3, 2);
  EXPECT_ERROR(nn::functional_call(layer, {{"weights", zeros({2, 3})}}, zeros({1, 3})),
               "the module has no parameter or buffer 'weights'");
  EXPECT_ERROR(nn::functional_call(layer, {{"weight", zeros({3, 2})}}, zeros({1, 3})),
               "'weight' is f32[2, 3] in the module, but f32[3, 2] was given");
  EXPECT_EQ(layer_state().level_depth, 0);
}

}  // namespace
}  // namespace weft
