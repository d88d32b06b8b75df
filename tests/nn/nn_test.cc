#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/make_graph.h"
#include "weft/func/func.h"
#include "weft/io/safetensors.h"
#include "weft/nn/functional_call.h"
#include "weft/nn/layers.h"
#include "weft/nn/optim.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using testing::close;
using testing::ramp;
using testing::values;
using testing::vec;

struct Net : nn::Module {
  nn::Linear fc1 = child("fc1", nn::Linear(3, 4));
  nn::Sequential tail = child("tail", nn::Sequential(nn::ReLU(), nn::Linear(4, 2, {.bias = false})));
  Tensor scale = buffer("scale", ones({1}));
  Tensor forward(Tensor x) { return tail(fc1(x)) * scale; }
  WEFT_ARGS(x)
};

TEST(ModuleTest, NamesInOrder) {
  Net net;
  std::vector<std::string> names;
  for (const auto& entry : net.state_dict()) names.push_back(entry.first);
  EXPECT_EQ(names, (std::vector<std::string>{"scale", "fc1.weight", "fc1.bias", "tail.1.weight"}));
  EXPECT_EQ(net.parameters().size(), 3u);
  EXPECT_STREQ(Net::argument_names(), "x");
}

struct NoForward : nn::Module {
  Tensor weight = parameter("weight", ones({2}));
};

TEST(ModuleTest, PathsLeadToWhatIsThere) {
  struct Holder : nn::Module {
    NoForward part = child("part", NoForward());
    Net net = child("net", Net());
    Holder() { attribute("number", 5); }
  } holder;
  EXPECT_TRUE(holder.try_find("part.weight")->to_tensor().is_same(holder.part.weight));
  EXPECT_TRUE(holder.try_find("net.tail.1.weight").has_value());
  EXPECT_NE(callable_in(*holder.try_find("net.tail")), nullptr);
  EXPECT_EQ(*holder.try_find("number"), Value(5));
  for (const char* path : {"", "weight", "part", "part.height", "net.tail.2.weight", "number.part", "net."}) {
    EXPECT_FALSE(holder.try_find(path).has_value()) << path;
    EXPECT_THROW(holder.find(path), Error) << path;
  }
  EXPECT_ERROR(holder.find("net.tail.2.weight"),
               "there is no '2' in 'Sequential' (looking for 'net.tail.2.weight')");
  EXPECT_UNSUPPORTED(holder.find("part"), "'part' cannot be called by name");
}

TEST(ModuleTest, ToReachesBuffersThatAreNotSaved) {
  struct Unsaved : nn::Module {
    Tensor scale = buffer("scale", ones({1}), false);
  } module;
  module.to(kFloat64);
  EXPECT_EQ(module.scale.dtype(), kFloat64);
  module.to(Device(DeviceType::kSim));
  EXPECT_EQ(module.scale.device(), Device(DeviceType::kSim));
}

TEST(ModuleTest, CopiesShareAndStateLoads) {
  Net a, b;
  Net copy = a;
  b.load_state_dict(a.state_dict());
  Tensor x = ramp({5, 3}).to(kFloat32);
  EXPECT_TRUE(close(a(x), b(x)));
  EXPECT_TRUE(copy.fc1.weight.is_same(a.fc1.weight));
  auto state = a.state_dict();
  state[1].first = "other";
  EXPECT_ERROR(b.load_state_dict(state), "missing names: [fc1.weight]; unexpected names: [other]");
  state = a.state_dict();
  state[1].second = ones({2});
  EXPECT_ERROR(b.load_state_dict(state), "fc1.weight: the file has f32[2], the module f32[4, 3]");
}

TEST(ModuleTest, ToCastsInPlace) {
  Net net;
  Tensor weight = net.fc1.weight;
  net.to(kFloat64);
  EXPECT_EQ(weight.dtype(), kFloat64);
  EXPECT_EQ(net(ramp({2, 3})).dtype(), kFloat64);
}

TEST(ModuleTest, TrainAndEvalReachChildren) {
  nn::Sequential net(nn::Dropout(0.5), nn::Dropout(0.5));
  Tensor x = ones({1000});
  net.eval();
  EXPECT_TRUE(close(net(x), x));
  net.train();
  EXPECT_FALSE(close(net(x), x));
}

TEST(ModuleTest, HooksRunAroundForward) {
  nn::Linear fc(2, 2);
  int calls = 0;
  uint64_t id = fc.register_forward_hook([&](const std::vector<Tensor>& in, Tensor& out) {
    ++calls;
    EXPECT_EQ(in.size(), 1u);
    out = out * 0;
  });
  EXPECT_EQ(values(fc(ones({1, 2}))), (std::vector<double>{0, 0}));
  fc.remove_hook(id);
  fc(ones({1, 2}));
  EXPECT_EQ(calls, 1);
}

TEST(BatchNormTest, KeepsRunningStatistics) {
  nn::BatchNorm2d norm(1);
  Tensor x = vec({1, 2, 3, 4}).to(kFloat32).view({4, 1, 1, 1});
  norm(x);
  EXPECT_NEAR(values(norm.running_mean)[0], 0.25, 1e-6);
  EXPECT_NEAR(values(norm.running_var)[0], 0.9 + 0.1 * 5.0 / 3, 1e-6);
  EXPECT_EQ(values(norm.num_batches_tracked), (std::vector<double>{1}));
}

TEST(DropoutTest, RefusesWhatIsNoProbability) {
  EXPECT_ERROR(nn::Dropout(1.5), "dropout probability has to be between 0 and 1, but got 1.5");
}

TEST(EmbeddingBagTest, AddsAveragesAndTakesMaximaOfRows) {
  using nn::functional::BagMode;
  Tensor indices = from_data(std::vector<int64_t>{0, 2, 2, 1}),
         offsets = from_data(std::vector<int64_t>{0, 3});
  auto bag = [&](nn::EmbeddingBagOptions options) {
    nn::EmbeddingBag layer(3, 2, options);
    NoGrad no_grad;
    layer.weight.copy_(arange(6, kFloat32).view({3, 2}));
    return layer;
  };
  EXPECT_EQ(testing::values(bag({.mode = BagMode::kSum})(indices, offsets)),
            (std::vector<double>{8, 11, 2, 3}));
  EXPECT_EQ(testing::values(bag({.mode = BagMode::kMax})(indices, offsets)),
            (std::vector<double>{4, 5, 2, 3}));
  EXPECT_EQ(testing::values(bag({.mode = BagMode::kMean})(indices.view({2, 2}))),
            (std::vector<double>{2, 3, 3, 4}));
  EXPECT_EQ(testing::values(bag({.padding_idx = 0, .mode = BagMode::kMean})(indices.view({2, 2}))),
            (std::vector<double>{4, 5, 3, 4}));
  EXPECT_EQ(testing::values(bag({.mode = BagMode::kSum})(indices, offsets, ones({4}) * 2)),
            (std::vector<double>{16, 22, 4, 6}));
  EXPECT_ERROR(bag({})(indices), "offsets has to be a 1D Tensor but got null");
  EXPECT_ERROR(bag({})(indices.view({2, 2}), offsets), "if input is 2D, then offsets has to be null");
  EXPECT_ERROR(bag({.mode = BagMode::kMax, .sparse = true})(indices, offsets),
               "max mode does not support sparse weights");
  EXPECT_ERROR(nn::EmbeddingBag(3, 2, {.padding_idx = 3}), "padding_idx 3 must be within the 3 rows");
}

TEST(LinearTest, HasParametersOfTheTypeThatIsAskedFor) {
  nn::Linear wide(3, 2, {.dtype = kFloat64}), complex(3, 2, {.dtype = kComplex64});
  EXPECT_EQ(wide.weight.dtype(), kFloat64);
  EXPECT_EQ(wide.bias.dtype(), kFloat64);
  EXPECT_EQ(complex.weight.dtype(), kComplex64);
  Tensor x = randn({4, 3}, kComplex64);
  Tensor y = complex(x);
  EXPECT_EQ(y.dtype(), kComplex64);
  EXPECT_TRUE(testing::close(y, matmul(x, complex.weight.t()) + complex.bias));
  EXPECT_GT(imag(complex.weight).abs().max().item().to_double(), 0);
}

TEST(EmbeddingTest, LooksUpRowsAndSparesThePadding) {
  nn::Embedding table(4, 3, {.padding_idx = -1});
  EXPECT_EQ(values(table.weight.detach().select(0, 3)), (std::vector<double>{0, 0, 0}));
  Tensor indices = vec({0, 2, 0, 3}).to(kInt64).view({2, 2});
  Tensor rows = table(indices);
  EXPECT_EQ(describe(rows).str(), "f32[2, 2, 3]");
  EXPECT_TRUE(close(rows.detach().select(0, 0).select(0, 1), table.weight.detach().select(0, 2)));
  rows.sum().backward();
  EXPECT_EQ(values(table.weight.grad().select(1, 0)), (std::vector<double>{2, 0, 1, 0}));
  EXPECT_ERROR(nn::Embedding(4, 3, {.padding_idx = 4}), "padding_idx 4 must be within the 4 rows");
  EXPECT_ERROR(table(vec({4}).to(kInt64)), "out of range");
}

TEST(Module, ConvertedWithoutDataHasNone) {
  nn::Linear layer(3, 2);
  const Tensor input = shape_only(ramp({5, 3}));
  {
    FakeMode fake({.allow_real_inputs = true});
    layer.to(kFloat64);
    EXPECT_EQ(describe(layer(input)).str(), "f64[5, 2]");
  }
  EXPECT_TRUE(is_fake(layer.weight));
  EXPECT_TRUE(layer.weight.requires_grad());
  EXPECT_EQ(describe(layer(input)).str(), "f64[5, 2]");
  EXPECT_ERROR(layer.weight.raw_data(), "it stands for a tensor without memory");
}

TEST(Module, IsNotConvertedInsideOfATransform) {
  nn::Linear layer(3, 2);
  auto f = [&](const Tensor& w) {
    nn::Substitution inside(layer, {{"weight", w}});
    layer.to(kFloat64);
    return w * 1;
  };
  EXPECT_ERROR(func::vmap(f)(ones({4, 2, 3})), "convert the module outside of the transform");
}

TEST(StateDict, ErrorsNameAllThatIsWrong) {
  nn::Linear linear(3, 2);
  EXPECT_USER_ERROR(linear.load_state_dict({{"weight", ones({2, 4})}, {"extra", ones({1})}}), "sizes differ");
  EXPECT_USER_ERROR(linear.load_state_dict({{"weight", ones({2, 4})}, {"extra", ones({1})}}),
                    "missing names: [bias]; unexpected names: [extra]");
}

TEST(StateDict, GoesToAFileAndComesBackInOneCall) {
  const std::string path =
      ::testing::TempDir() + "weft_state_dict_" + std::to_string(::getpid()) + ".safetensors";
  Net net, other;
  save_safetensors(net.state_dict(), path);
  other.load_state_dict(load_safetensors(path));
  std::filesystem::remove(path);
  const Tensor x = ramp({2, 3}).to(kFloat32);
  EXPECT_TRUE(close(other(x).detach(), net(x).detach(), 0, 0));
  EXPECT_ERROR(SafeTensors({{"a", ones({1})}, {"a", ones({1})}}), "two tensors are called 'a'");
}

TEST(StateDict, OfAnOptimizerGoesToAFileToo) {
  const std::string path =
      ::testing::TempDir() + "weft_optimizer_" + std::to_string(::getpid()) + ".safetensors";
  Tensor p = vec({1, -2}).set_requires_grad(), q = vec({1, -2}).set_requires_grad();
  optim::AdamW first({p}, {.lr = 0.3, .amsgrad = true}), second({q});
  auto train = [](const Tensor& x, optim::Optimizer& optimizer) {
    optimizer.zero_grad();
    (x * x).sum().backward();
    optimizer.step();
  };
  train(p, first);
  save_safetensors(first.state_dict(), path);
  second.load_state_dict(load_safetensors(path));
  std::filesystem::remove(path);
  optim::AdamW fresh({q}, {.lr = 0.3, .amsgrad = true});
  train(q, fresh);
  EXPECT_TRUE(second.options().amsgrad);
  train(p, first);
  train(q, second);
  EXPECT_TRUE(close(q.detach(), p.detach(), 0, 0));
}

// Assigning to a member would leave the parent with the old layer.
static_assert(!std::is_copy_assignable_v<nn::Linear> && !std::is_move_assignable_v<nn::Linear>);
static_assert(!std::is_move_assignable_v<Net> && !std::is_move_assignable_v<nn::Sequential>);

TEST(ReplaceChild, IsSeenInTheObjectAndByItsName) {
  Net net;
  net.replace_child(net.fc1, nn::Linear(3, 4, {.bias = false}));
  EXPECT_TRUE(net.find("fc1.weight").to_tensor().is_same(net.fc1.weight));
  std::vector<std::string> names;
  for (const auto& entry : net.state_dict()) names.push_back(entry.first);
  EXPECT_EQ(names, (std::vector<std::string>{"scale", "fc1.weight", "tail.1.weight"}));
  const Tensor x = ramp({2, 3}).to(kFloat32);
  const Value by_name = callable_in(net.find("fc1"))->call(ValueList{x});
  EXPECT_TRUE(close(by_name.to_tensor().detach(), net.fc1(x).detach(), 0, 0));
  net(x).sum().backward();
  EXPECT_TRUE(net.fc1.weight.grad().defined());
}

TEST(ReplaceChild, RefusesWhatIsNoChildOrHasTwoNames) {
  Net net;
  nn::Linear other(3, 4);
  EXPECT_ERROR(net.replace_child(other, nn::Linear(3, 4)),
               "is no child of this module; there are [scale, fc1, tail]");
  struct Tied : nn::Module {
    nn::Linear a = child("a", nn::Linear(2, 2));
    nn::Linear b = child("b", a);
  } tied;
  EXPECT_ERROR(tied.replace_child(tied.a, nn::Linear(2, 2)), "the Linear is registered as 'a' and as 'b'");
}

TEST(ReplaceChild, IsForGraphModulesToo) {
  GraphModule twice = make_graph([](const Tensor& t) { return t * 2; })(ones({2}));
  GraphModule thrice = make_graph([](const Tensor& t) { return t * 3; })(ones({2}));
  struct Holder : nn::Module {
    GraphModule part;
    explicit Holder(GraphModule graph) : part(child("part", std::move(graph))) {}
  } holder(twice);
  EXPECT_ERROR(holder.part = thrice, "which would keep the old one; use replace_child");
  holder.replace_child(holder.part, thrice);
  EXPECT_EQ(values(holder.part(ones({2}))), (std::vector<double>{3, 3}));
  GraphModule handle = holder.part;
  handle = twice;  // a handle of its own is no member
  EXPECT_EQ(values(handle(ones({2}))), (std::vector<double>{2, 2}));
}

struct TiedNet : nn::Module {
  nn::Linear a = child("a", nn::Linear(2, 2));
  nn::Linear b = child("b", a);
  Tensor forward(const Tensor& x) { return b(a(x)); }
  WEFT_ARGS(x)
};

TEST(Modules, AreVisitedOnceAndCalledWhenConst) {
  const TiedNet net;
  EXPECT_EQ(net.modules().size(), 2u);
  size_t parameters = 0;
  net.apply([&](nn::Module& module) { parameters = module.parameters().size(); });
  EXPECT_EQ(parameters, 2u);
  EXPECT_EQ(net(ones({1, 2})).size(1), 2);
}

}  // namespace
}  // namespace weft
