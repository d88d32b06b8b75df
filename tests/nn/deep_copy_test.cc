// Copies of models: every tensor, module and C++ object of the copy is its own.
#include "weft/nn/deep_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/capture/trace.h"
#include "weft/graph/graph_module.h"
#include "weft/models/resnet.h"
#include "weft/nn/functional.h"
#include "weft/nn/layers.h"
#include "weft/nn/optim.h"

namespace weft {
namespace {

using testing::expect_equal;

// The same names and values, and no tensor in common.
void expect_own_tensors(const nn::Module& copy, const nn::Module& model) {
  const nn::NamedTensors own = copy.state_dict(), other = model.state_dict();
  ASSERT_EQ(own.size(), other.size());
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_EQ(own[i].first, other[i].first);
    expect_equal(own[i].second, other[i].second);
    EXPECT_FALSE(own[i].second.is_same(other[i].second)) << own[i].first;
    EXPECT_NE(own[i].second.storage().get(), other[i].second.storage().get()) << own[i].first;
    EXPECT_EQ(own[i].second.requires_grad(), other[i].second.requires_grad()) << own[i].first;
  }
}

std::vector<Tensor> values_of(const nn::Module& model) {
  std::vector<Tensor> values;
  for (const auto& [name, tensor] : model.state_dict()) values.push_back(tensor.detach().clone());
  return values;
}

// Trains the copy for a few steps: it changes, and the model does not.
template <typename M>
void expect_trains_alone(M& copy, M& model, const Tensor& x) {
  const std::vector<Tensor> before = values_of(model);
  const Tensor was = model(x).detach();
  expect_equal(copy(x).detach(), was);
  const std::vector<Tensor> after_call = values_of(model);
  optim::SGD optimizer(copy.parameters(), {.lr = 0.1});
  for (int step = 0; step < 2; ++step) {
    copy.zero_grad();
    (copy(x) * copy(x)).sum().backward();
    optimizer.step();
  }
  const std::vector<Tensor> now = values_of(model);
  for (size_t i = 0; i < now.size(); ++i) expect_equal(now[i], after_call[i]);
  for (const Tensor& parameter : model.parameters()) EXPECT_FALSE(parameter.grad().defined());
  for (const Tensor& parameter : copy.parameters()) EXPECT_TRUE(parameter.grad().defined());
  EXPECT_FALSE((copy(x) == was).all().item().to_bool());
}

// Members of many kinds around a parameter that is a plain Tensor.
struct DeepScale : nn::Module {
  explicit DeepScale(double by) : scale(parameter("scale", full({3}, by))) {}
  Tensor forward(const Tensor& x) {
    ++calls;
    return x * scale * factors[0] + *offset;
  }
  WEFT_ARGS(x)
  std::string label = "a label that is too long to be kept in place";
  Tensor scale;
  std::vector<double> factors = {2.0};
  std::optional<Tensor> offset = buffer("offset", ones({3}));
  int calls = 0;
};

struct DeepNet : nn::Module {
  nn::Linear first = child("first", nn::Linear(3, 3));
  nn::Sequential middle = child(
      "middle", nn::Sequential(DeepScale(2), nn::BatchNorm1d(3), nn::Sequential(DeepScale(3), nn::ReLU())));
  nn::ModuleList<DeepScale> scales = child("scales", nn::ModuleList<DeepScale>());
  DeepScale last = child("last", DeepScale(0.5));
  DeepNet() {
    scales.push_back(DeepScale(4));
    scales.push_back(DeepScale(5));
  }
  Tensor forward(const Tensor& x) {
    Tensor y = middle(first(x));
    for (DeepScale& scale : scales) y = scale(y);
    return last(y);
  }
  WEFT_ARGS(x)
};

TEST(DeepCopy, NestedModulesHaveTensorsOfTheirOwn) {
  DeepNet net;
  DeepNet copy = nn::deep_copy(net);
  expect_own_tensors(copy, net);
  EXPECT_TRUE(copy.last.scale.is_same(copy.find("last.scale").to_tensor()));
  EXPECT_TRUE(copy.last.offset->is_same(copy.find("last.offset").to_tensor()));
  EXPECT_TRUE(copy.scales[1].scale.is_same(copy.find("scales.1.scale").to_tensor()));
  EXPECT_TRUE(copy.first.weight.is_same(copy.find("first.weight").to_tensor()));
  EXPECT_TRUE(net.last.scale.is_same(net.find("last.scale").to_tensor()));
  EXPECT_EQ(copy.state()->class_name, net.state()->class_name);
  EXPECT_EQ(copy.last.state()->class_name, "DeepScale");
  EXPECT_NE(copy.last.state(), net.last.state());
  EXPECT_EQ(copy.last.state(), copy.state()->children.back().state);
  expect_trains_alone(copy, net, randn({4, 3}));
}

TEST(DeepCopy, AModuleWhoseClassIsNotKnownIsCopied) {
  DeepNet net;
  const nn::Module& model = net;
  nn::Module copy = nn::deep_copy(model);
  expect_own_tensors(copy, net);
  auto call = [](const nn::Module& module) {
    return callable_in(module.find("middle"))->call(ValueList{ones({2, 3})}).to_tensor().detach();
  };
  expect_equal(call(copy), call(net));
  EXPECT_EQ(net.find("middle.1.num_batches_tracked").to_tensor().item().to_int(), 1);
  EXPECT_EQ(copy.find("middle.1.num_batches_tracked").to_tensor().item().to_int(), 1);
}

TEST(DeepCopy, OtherMembersAreCopiedAsCppCopiesThem) {
  DeepScale scale(2);
  scale.calls = 7;
  scale.factors = {3.0};
  DeepScale copy = nn::deep_copy(scale);
  EXPECT_EQ(copy.calls, 7);
  EXPECT_EQ(copy.label, scale.label);
  copy.factors[0] = 100;
  expect_equal(scale(ones({3})), full({3}, 7.0));
  expect_equal(copy(ones({3})), full({3}, 201.0));
}

TEST(DeepCopy, ChildrenThatAreCalledByNameAreTheCopys) {
  DeepNet net;
  DeepNet copy = nn::deep_copy(net);
  auto call_last = [](const DeepNet& model) {
    return callable_in(model.find("last"))->call(ValueList{ones({3})}).to_tensor();
  };
  {
    NoGrad no_grad;
    copy.last.scale.fill_(10);
  }
  expect_equal(call_last(net), full({3}, 2.0));
  expect_equal(call_last(copy), full({3}, 21.0));
}

TEST(DeepCopy, SwitchesBuffersAndHooksAreTheCopysOwn) {
  nn::Sequential net(nn::BatchNorm1d(3), nn::Dropout(0.5));
  nn::Sequential copy = nn::deep_copy(net);
  copy.eval();
  EXPECT_TRUE(net.is_training());
  EXPECT_FALSE(copy.is_training());
  const Tensor x = randn({4, 3});
  expect_equal(copy(x), copy(x));  // no dropout
  net(x);
  expect_equal(copy.find("0.running_mean").to_tensor(), zeros({3}));
  EXPECT_EQ(net.find("0.num_batches_tracked").to_tensor().item().to_int(), 1);
  EXPECT_EQ(copy.find("0.num_batches_tracked").to_tensor().item().to_int(), 0);
}

struct DeepTied : nn::Module {
  nn::Linear in = child("in", nn::Linear(3, 3, {.bias = false}));
  Tensor out = parameter("out", in.weight);                     // the same tensor
  Tensor row = buffer("row", in.weight.detach().select(0, 1));  // its memory
  Tensor forward(const Tensor& x) { return linear(in(x), out); }
  WEFT_ARGS(x)
};

TEST(DeepCopy, TiedWeightsStayTied) {
  DeepTied net;
  DeepTied copy = nn::deep_copy(net);
  EXPECT_TRUE(copy.out.is_same(copy.in.weight));
  EXPECT_FALSE(copy.out.is_same(net.out));
  EXPECT_EQ(copy.named_parameters().size(), 1u);
  {
    NoGrad no_grad;
    copy.out.fill_(4);
  }
  expect_equal(copy.row, full({3}, 4.0));
  expect_equal(copy(ones({3})), full({3}, 144.0));
  EXPECT_FALSE((net.row == 4).any().item().to_bool());
}

struct DeepTwice : nn::Module {
  nn::Linear a = child("a", nn::Linear(2, 2));
  nn::Linear b = child("b", a);
  Tensor forward(const Tensor& x) { return b(a(x)); }
  WEFT_ARGS(x)
};

TEST(DeepCopy, OneModuleUnderTwoNamesStaysOne) {
  DeepTwice net;
  DeepTwice copy = nn::deep_copy(net);
  EXPECT_EQ(copy.a.state(), copy.b.state());
  EXPECT_NE(copy.a.state(), net.a.state());
  EXPECT_TRUE(copy.a.weight.is_same(copy.b.weight));
  expect_trains_alone(copy, net, randn({3, 2}));
}

struct DeepHidden : nn::Module {
  nn::Linear fc{2, 2};
  Tensor forward(const Tensor& x) { return fc(x); }
  WEFT_ARGS(x)
};

TEST(DeepCopy, ModulesThatAreNotRegisteredAreCopied) {
  DeepHidden net;
  DeepHidden copy = nn::deep_copy(net);
  EXPECT_NE(copy.fc.state(), net.fc.state());
}

TEST(DeepCopy, HooksComeAlong) {
  nn::Linear fc(2, 2);
  int calls = 0;
  const uint64_t id = fc.register_forward_hook([&calls, fc](const std::vector<Tensor>&, Tensor& output) {
    ++calls;
    output = output * 0 + fc.weight.numel();
  });
  nn::Linear copy = nn::deep_copy(fc);
  expect_equal(copy(ones({2})).detach(), full({2}, 4.0));
  EXPECT_EQ(calls, 1);
  copy.remove_hook(id);
  copy(ones({2}));
  EXPECT_EQ(calls, 1);
  fc(ones({2}));
  EXPECT_EQ(calls, 2);
  fc.remove_hook(id);  // it keeps the module that keeps it
}

TEST(DeepCopy, GradientsStayBehind) {
  nn::Linear fc(2, 2);
  fc(ones({2})).sum().backward();
  nn::Linear copy = nn::deep_copy(fc);
  EXPECT_TRUE(fc.weight.grad().defined());
  EXPECT_FALSE(copy.weight.grad().defined());
  EXPECT_TRUE(copy.weight.requires_grad());
}

struct DeepScattered : nn::Module {
  std::vector<Tensor> weights;
  nn::Linear fc = child("fc", nn::Linear(2, 2));
  DeepScattered() { weights.push_back(parameter("w0", ones({2}))); }
  Tensor forward(const Tensor& x) { return fc(x) * weights[0]; }
  WEFT_ARGS(x)
};

TEST(DeepCopy, ATensorThatCannotBeFoundIsNamed) {
  DeepScattered net;
  EXPECT_ERROR(nn::deep_copy(net), "deep_copy: an object of ");
  EXPECT_ERROR(nn::deep_copy(net), "keeps its tensor 'w0' where it cannot be found");
  struct Outer : nn::Module {
    DeepScattered part = child("part", DeepScattered());
  } outer;
  EXPECT_ERROR(nn::deep_copy(outer), "an object of DeepScattered keeps its tensor 'w0'");
  // Nothing is left behind, and copies are handles again.
  DeepScattered handle = net;
  EXPECT_EQ(handle.state(), net.state());
}

TEST(DeepCopy, CopiesOutsideOfItAreHandles) {
  DeepNet net;
  DeepNet handle = net;
  EXPECT_EQ(handle.state(), net.state());
  EXPECT_TRUE(handle.scales[0].scale.is_same(net.scales[0].scale));
}

TEST(DeepCopy, OfAResidualNetworkTrainsAlone) {
  models::ResNet net = models::resnet18();
  models::ResNet copy = nn::deep_copy(net);
  expect_own_tensors(copy, net);
  NoGrad no_grad;
  net.eval();
  copy.eval();
  const Tensor x = randn({1, 3, 32, 32});
  const Tensor was = net(x);
  expect_equal(copy(x), was);
  for (const Tensor& parameter : copy.parameters()) parameter.add_(0.1);
  expect_equal(net(x), was);
  EXPECT_FALSE((copy(x) == was).all().item().to_bool());
}

// --- graph modules ---------------------------------------------------------------------------------------

TEST(DeepCopy, GraphModulesCopyTheCppModulesThatTheyCall) {
  DeepNet net;
  GraphModule traced =
      symbolic_trace(net, {.is_leaf_module = [](const nn::ModuleState& module, std::string_view) {
                       return module.class_name == "DeepScale" || module.class_name == "Linear";
                     }});
  bool calls_modules = false;
  for (const Node& node : traced.graph()) calls_modules |= node.kind() == NodeKind::kCallModule;
  ASSERT_TRUE(calls_modules);
  GraphModule copy = traced.deep_copy();
  expect_own_tensors(copy, traced);
  EXPECT_NE(&copy.graph(), &traced.graph());
  EXPECT_EQ(copy.code(), traced.code());
  const Tensor x = randn({4, 3});
  expect_trains_alone(copy, traced, x);
  copy.graph().find("last")->replace_all_uses_with(*copy.graph().find("first"));
  EXPECT_NE(copy.code(), traced.code());
}

struct DeepAround : nn::Module {
  explicit DeepAround(const GraphModule& graph) : inner(child("inner", graph)) {}
  GraphModule inner;
  Tensor forward(const Tensor& x) { return inner(x) * 2; }
  WEFT_ARGS(x)
};

TEST(DeepCopy, GraphModulesInsideOfCppModulesAreCopied) {
  nn::Linear fc(3, 3);
  DeepAround net(symbolic_trace(fc));
  DeepAround copy = nn::deep_copy(net);
  EXPECT_NE(&copy.inner.graph(), &net.inner.graph());
  EXPECT_EQ(&copy.inner.graph(), &graph_module_in(copy.find("inner"))->graph());
  EXPECT_TRUE(copy.inner.owns_attributes());
  expect_trains_alone(copy, net, randn({2, 3}));
}

TEST(DeepCopy, WhatGraphsOfAModelShareStaysShared) {
  nn::Linear fc(3, 3);
  GraphModule part = symbolic_trace(fc);
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& weight = graph.get_attr("weight");
  Node& y = graph.call_module("part", {value_of(x)});
  graph.output(value_of(graph.call_function("aten::mul.Tensor", {value_of(y), value_of(weight)})));
  GraphModule whole({{"weight", fc.weight}, {"part", Ref<ValueObject>(part.callable())}}, std::move(graph));
  GraphModule copy = whole.deep_copy();
  EXPECT_TRUE(copy.find("weight").to_tensor().is_same(copy.find("part.weight").to_tensor()));
  EXPECT_FALSE(copy.find("weight").to_tensor().is_same(fc.weight));
}

TEST(DeepCopy, TracedModulesAreCopied) {
  nn::Linear fc(3, 3);
  TracedModule traced = trace(fc, randn({2, 3}));
  TracedModule copy = nn::deep_copy(traced);
  EXPECT_FALSE(copy.find("weight").to_tensor().is_same(fc.weight));
  const Tensor x = randn({2, 3});
  const Tensor was = traced(x).detach();
  expect_equal(copy(x).detach(), was);
  copy.set_attribute("bias", full({3}, 100.0).set_requires_grad());
  expect_equal(traced(x).detach(), was);
  EXPECT_FALSE((copy(x) == was).any().item().to_bool());
}

TEST(DeepCopy, FunctionsThatAreNoModulesAreRefused) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(value_of(graph.call_module("f", {value_of(x)})));
  const Tensor kept = ones({2});
  auto f = make_closure([kept](Args args) { return Value(args[0].to_tensor() * kept); });
  GraphModule module({{"f", Ref<ValueObject>(f)}}, std::move(graph));
  EXPECT_ERROR(module.deep_copy(), "deep_copy: 'f' is a function that is no module");
}

}  // namespace
}  // namespace weft
