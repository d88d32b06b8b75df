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
  EXPECT_EQ(inputs_seen, 0u);
  EXPECT_TRUE(net.weight.grad().defined());
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
