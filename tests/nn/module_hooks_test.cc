// Hooks that see gradients, children that go, modules on other devices, and their text.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/nn/layers.h"
#include "weft/nn/module_text.h"

namespace weft {
namespace {

using testing::expect_equal;

struct Triples : nn::Module {
  Tensor forward(const Tensor& x) { return x * 3; }
  WEFT_ARGS(x)
};

TEST(BackwardHooks, SeeAndReplaceGradients) {
  Triples net;
  int calls = 0;
  uint64_t id =
      net.register_backward_hook([&](std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
        ++calls;
        expect_equal(outputs.at(0), full({2}, 5.0));
        expect_equal(inputs.at(0), full({2}, 15.0));
        inputs[0] = inputs[0] * 2;
      });
  Tensor x = ones({2}).set_requires_grad();
  expect_equal(autograd::grad({net(x) * 5}, {x}, {ones({2})})[0], full({2}, 30.0));
  EXPECT_EQ(calls, 1);
  net.remove_hook(id);
  expect_equal(autograd::grad({net(x) * 5}, {x}, {ones({2})})[0], full({2}, 15.0));
  EXPECT_EQ(calls, 1);
}

TEST(BackwardHooks, RunWhereNoArgumentWantsAGradient) {
  nn::Linear net(3, 2);
  size_t inputs_seen = 9;
  net.register_backward_hook([&](std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
    inputs_seen = inputs.size();
    expect_equal(outputs.at(0), ones({4, 2}));
  });
  net(ones({4, 3})).sum().backward();
  EXPECT_EQ(inputs_seen, 1u);  // undefined
  EXPECT_TRUE(net.weight.grad().defined());
}

// An argument that is no tensor, and two results.
struct Scales : nn::Module {
  std::vector<Tensor> forward(const Tensor& x, int64_t by) { return {x * by, x + by}; }
  WEFT_ARGS(x, by)
};

TEST(ModuleHooks, SeeArgumentsAndResultsOfAllKinds) {
  Scales net;
  net.register_forward_pre_hook([](ValueList& inputs) { inputs[1] = inputs[1].to_int() + 1; });
  net.register_forward_hook([](const ValueList& inputs, Value& output) {
    EXPECT_EQ(inputs[1].to_int(), 3);
    output = Value::list({output.elements()[1], output.elements()[0]});
  });
  std::vector<Tensor> results = net(ones({2}), int64_t{2});
  expect_equal(results[0], full({2}, 4.0));
  expect_equal(results[1], full({2}, 3.0));
  Scales strict;
  uint64_t id = strict.register_forward_hook([](const std::vector<Tensor>&, Tensor&) {});
  EXPECT_ERROR(strict(ones({2}), int64_t{2}), "a forward hook on a tensor gave a list");
  strict.remove_hook(id);
  strict.register_forward_pre_hook([](std::vector<Tensor>&) {});
  EXPECT_ERROR(strict(ones({2}), int64_t{2}), "register a hook that takes a ValueList");
}

TEST(ModuleHooks, MayRemoveThemselves) {
  Triples net;
  int calls = 0;
  uint64_t before = 0, after = 0, back = 0;
  before = net.register_forward_pre_hook([&](std::vector<Tensor>&) { ++calls, net.remove_hook(before); });
  after = net.register_forward_hook(
      [&](const std::vector<Tensor>&, Tensor&) { ++calls, net.remove_hook(after); });
  back = net.register_backward_hook(
      [&](std::vector<Tensor>&, const std::vector<Tensor>&) { ++calls, net.remove_hook(back); });
  Tensor x = ones({2}).set_requires_grad();
  for (int i = 0; i < 2; ++i) net(x).sum().backward();
  EXPECT_EQ(calls, 3);
}

TEST(BackwardHooks, SeeGradientsOfSeveralResults) {
  Scales net;
  std::vector<Tensor> seen;
  net.register_backward_hook([&](std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
    EXPECT_EQ(inputs.size(), 1u);
    seen = outputs;
  });
  Tensor x = ones({2}).set_requires_grad();
  std::vector<Tensor> results = net(x, int64_t{2});
  (results[0] * 5).sum().backward();
  ASSERT_EQ(seen.size(), 2u);
  expect_equal(seen[0], full({2}, 5.0));
  EXPECT_FALSE(seen[1].defined());
  expect_equal(x.grad(), full({2}, 10.0));
}

struct Shared : nn::Module {
  nn::Linear a = child("a", nn::Linear(2, 2)), b = child("b", a);
  Tensor forward(const Tensor& x) { return b(a(x)); }
  WEFT_ARGS(x)
};

TEST(SharedParameters, HaveOneNameExceptInStateDicts) {
  Shared net;
  auto names = [](const nn::NamedTensors& tensors) {
    std::vector<std::string> all;
    for (const auto& entry : tensors) all.push_back(entry.first);
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(net.named_parameters()), (Names{"a.weight", "a.bias"}));
  EXPECT_EQ(names(net.named_parameters(false)), (Names{"a.weight", "a.bias", "b.weight", "b.bias"}));
  EXPECT_EQ(names(net.state_dict()), (Names{"a.weight", "a.bias", "b.weight", "b.bias"}));
  EXPECT_EQ(net.parameters().size(), 2u);
}

struct Parent : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(2, 2));
  nn::ReLU act = child("act", nn::ReLU());
  using nn::Module::remove_child;
};

TEST(Modules, LoseChildrenAndShowTheRest) {
  Parent parent;
  EXPECT_EQ(nn::module_text(parent), "Module(\n  (fc): Linear()\n  (act): ReLU()\n)");
  parent.remove_child("fc");
  EXPECT_EQ(nn::module_text(parent), "Module(\n  (act): ReLU()\n)");
  EXPECT_TRUE(parent.state_dict().empty());
  EXPECT_ERROR(parent.remove_child("fc"), "there is no child 'fc' to remove; there are [act]");
}

TEST(Modules, MoveBetweenDevices) {
  nn::Linear net(3, 2);
  Tensor x = randn({4, 3}), here = net(x);
  const Device sim("sim");
  net.to(sim);
  EXPECT_EQ(net.weight.device(), sim);
  Tensor there = net(to(x, std::nullopt, std::nullopt, sim));
  EXPECT_EQ(there.device(), sim);
  net.to(kCpu);
  EXPECT_EQ(net.weight.device(), kCpu);
  expect_equal(net(x), here);
}

}  // namespace
}  // namespace weft
