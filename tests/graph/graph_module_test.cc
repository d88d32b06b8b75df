// Graph modules: what they own, how they run, and the two ways to run a graph node by node.
#include "weft/graph/graph_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/support/nodes.h"
#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/func/func.h"
#include "weft/graph/interpreter.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using testing::expect_equal;

using testing::op;
using testing::v;

struct Net : nn::Module {
  nn::Linear fc1 = child("fc1", nn::Linear(4, 3));
  nn::Linear fc2 = child("fc2", nn::Linear(3, 2));
  Tensor scale = parameter("scale", ones({2}));
  Tensor unused = buffer("unused", ones({7}));
  Tensor forward(const Tensor& x) { return fc2(relu(fc1(x))) * scale; }
  WEFT_ARGS(x)
};

// fc1 as a call of the module, fc2 by its tensors.
Graph net_graph() {
  Graph g;
  Node& x = g.placeholder("x");
  Node& hidden = g.call_module("fc1", {v(x)});
  Node& relu = g.call(op("aten::relu"), {v(hidden)});
  Node& weight = g.get_attr("fc2.weight");
  Node& bias = g.get_attr("fc2.bias");
  Node& linear = g.call(op("aten::linear"), {v(relu), v(weight), v(bias)});
  Node& scale = g.get_attr("scale");
  Node& mul = g.call(op("aten::mul.Tensor"), {v(linear), v(scale)});
  g.output(v(mul));
  return g;
}

std::vector<std::string> names_of(const nn::NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& entry : tensors) names.push_back(entry.first);
  return names;
}

TEST(GraphModule, OwnsWhatItsGraphNamesAndSharesIt) {
  Net net;
  GraphModule module(net, net_graph());
  EXPECT_THAT(names_of(module.state_dict()),
              ElementsAre("scale", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"));
  EXPECT_TRUE(module.find("fc2.weight").to_tensor().is_same(net.fc2.weight));
  Tensor x = randn({5, 4});
  expect_equal(module(x), net(x));
  {
    NoGrad no_grad;
    net.scale.mul_(2);
  }
  expect_equal(module(x), net(x));
  EXPECT_ERROR(module.find("unused"), "there is no 'unused'");
  EXPECT_ERROR(module.find("fc3.weight"), "there is no 'fc3' in 'GraphModule'");
  Graph bad;
  bad.output(v(bad.get_attr("fc9.weight")));
  EXPECT_ERROR(GraphModule(net, std::move(bad)), "there is no 'fc9' in");
  for (const char* path : {"", ".", "a..b", ".a", "a."})
    EXPECT_ERROR(module.set_attribute(path, ones({2})), "has an empty one");
  EXPECT_ERROR(module.set_attribute("fc1.weight.more", ones({2})),
               "leads through 'weight', which is no module");
}

TEST(GraphModule, RefusesAttributesThatLackWhatItsGraphNames) {
  auto graph_of = [] {
    Graph graph;
    graph.output(value_of(graph.get_attr("w")));
    return graph;
  };
  EXPECT_USER_ERROR(GraphModule({{"v", ones({2})}}, graph_of()),
                    "the graph names 'w' (node 'w'), which is not among the attributes that it is given");
  EXPECT_EQ(GraphModule({{"w", ones({2})}}, graph_of()).graph().size(), 2u);
}

TEST(GraphModule, TrainsLikeTheModuleItCameFrom) {
  Net net;
  GraphModule module(net, net_graph());
  Tensor x = randn({5, 4});
  module(x).sum().backward();
  Tensor captured = net.fc1.weight.grad().clone();
  net.zero_grad();
  net(x).sum().backward();
  expect_equal(captured, net.fc1.weight.grad());
}

TEST(GraphModule, RunsWhatItsGraphHasBecome) {
  Graph g;
  Node& x = g.placeholder("x");
  Node& y = g.call(op("aten::add.Tensor"), {v(x), 1});
  g.output(v(y));
  GraphModule module(std::move(g));
  expect_equal(module(ones({2})), full({2}, 2.0));
  Node* sum = module.graph().find("add");
  sum->set_arg(1, 5);
  expect_equal(module(ones({2})), full({2}, 6.0));
  sum->set_target(op("aten::mul.Tensor"));
  expect_equal(module(ones({2})), full({2}, 5.0));
  GraphModule copy = module.deep_copy();
  module.graph().find("add")->set_arg(1, 7);
  expect_equal(copy(ones({2})), full({2}, 5.0));
}

// A call has numbered the nodes by then: what is left has the numbers that it had.
TEST(GraphModule, RunsAfterNodesWereErased) {
  Graph graph;
  Node* last = &graph.placeholder("x");
  std::vector<Node*> dead;
  for (int i = 0; i < 100; ++i) dead.push_back(&graph.call_function("aten::neg", {value_of(*last)}));
  for (int i = 0; i < 100; ++i) last = &graph.call_function("aten::neg", {value_of(*last)});
  graph.output(value_of(*last));
  GraphModule module(std::move(graph));
  expect_equal(module(ones({3})), ones({3}));
  for (Node* node : dead) module.graph().erase(*node);
  for (int i = 0; i < 3; ++i) expect_equal(module(full({3}, 2.0)), full({3}, 2.0));
}

TEST(GraphModule, NumbersForTensorsPromoteWeakly) {
  Graph g;
  Node& x = g.placeholder("x");
  Node& k = g.placeholder("k");
  Node& a = g.call(op("aten::mul.Tensor"), {v(x), v(k)});
  Node& b = g.call(op("aten::add.Tensor"), {v(a), 2.5}, {{"alpha", 2}});
  g.output(Value::tuple({v(b)}));
  GraphModule module(std::move(g));
  Value result = module.call({full({2}, 3), 2});
  Tensor out = result.elements()[0].to_tensor();
  EXPECT_EQ(out.dtype(), kFloat32);
  expect_equal(out, full({2}, 11.0));
  expect_equal(module.call({full({2}, 3), ones({2})}).elements()[0].to_tensor(), full({2}, 8.0));
}

TEST(GraphModule, TakesDefaultsNamesAndRefusesTheRest) {
  Graph g;
  Node& x = g.placeholder("x");
  Node& k = g.placeholder("k", Value(2));
  g.output(v(g.call(python_function("operator.mul"), {v(x), v(k)})));
  GraphModule module(std::move(g));
  EXPECT_EQ(module.call({3}).to_int(), 6);
  EXPECT_EQ(module.call({3, 5}).to_int(), 15);
  EXPECT_EQ(module.call(ValueList{}, {{"k", 5}, {"x", 4}}).to_int(), 20);
  EXPECT_ERROR(module.call(ValueList{}), "takes 2 inputs but 0 were given");
  EXPECT_ERROR(module.call({1, 2, 3}), "takes 2 inputs but 3 were given");
  EXPECT_ERROR(module.call({1}, {{"z", 5}}),
               "'z' is not in forward() method's arguments,\nvalid arguments name are [x,k]");
}

TEST(GraphModule, ErrorsNameTheNode) {
  Graph g;
  Node& x = g.placeholder("x");
  g.output(v(g.call(op("aten::mm"), {v(x), v(x)})));
  GraphModule module(std::move(g));
  EXPECT_ERROR(module(ones({2, 3})), "while running %mm : [num_users=1] = call_function");
  // The frame of the failed run is gone, and the next one works.
  expect_equal(module(ones({2, 2})), full({2, 2}, 2.0));
}

TEST(GraphModule, LetsGoOfValuesAfterTheirLastUse) {
  Graph g;
  Node& x = g.placeholder("x");
  Node* last = &x;
  for (int i = 0; i < 8; ++i) last = &g.call(op("aten::mul.Tensor"), {v(*last), v(*last)});
  Node& both = g.call(op("aten::cat"), {Value::list({v(*last), v(*last)})});
  g.output(v(both));
  GraphModule module(std::move(g));
  Tensor in = ones({3});
  Tensor out = module(in);
  expect_equal(out, ones({6}));
  EXPECT_EQ(in.impl()->use_count(), 1u);  // nothing of the run is kept
  EXPECT_EQ(out.impl()->use_count(), 1u);
}

TEST(GraphModule, MethodsFindTheirOverload) {
  Graph g;
  Node& x = g.placeholder("x");
  Node& y = g.call_method("add", {v(x), 3});
  Node& z = g.call_method("sum", {v(y), Value::list({0})}, {{"keepdim", true}});
  g.output(v(z));
  GraphModule module(std::move(g));
  expect_equal(module(ones({4})), full({1}, 16.0));
  Graph bad;
  Node& in = bad.placeholder("x");
  bad.output(v(bad.call_method("relu", {v(in), 3})));
  EXPECT_ERROR(GraphModule(std::move(bad))(ones({2})), "no overload of aten::relu takes these arguments");
}

TEST(GraphModule, NestedGraphsAreFunctions) {
  Graph inner;
  Node& a = inner.placeholder("a");
  inner.output(v(inner.call(op("aten::neg"), {v(a)})));
  GraphModule child(std::move(inner));
  Graph g;
  Node& x = g.placeholder("x");
  g.output(v(g.call_module("sub", {v(x)})));
  GraphModule module(GraphModule::Attributes{{"sub", Ref<ValueObject>(child.callable())}}, std::move(g));
  expect_equal(module(ones({2})), full({2}, -1.0));
  ASSERT_TRUE(graph_module_in(module.find("sub")));
  EXPECT_EQ(graph_module_in(module.find("sub"))->graph().size(), 3u);
  GraphModule copy = module.deep_copy();
  graph_module_in(module.find("sub"))->graph().find("neg")->set_target(op("aten::abs"));
  expect_equal(module(ones({2})), ones({2}));
  expect_equal(copy(ones({2})), full({2}, -1.0));
}

TEST(GraphModule, RunsUnderTransforms) {
  Net net;
  GraphModule module(net, net_graph());
  auto loss = [&](const Tensor& x) { return module(x).sum(); };
  Tensor x = randn({5, 4});
  expect_equal(func::grad(loss)(x), func::grad([&](const Tensor& t) { return net(t).sum(); })(x));
  expect_equal(func::vmap(func::grad(loss))(x),
               func::vmap(func::grad([&](const Tensor& t) { return net(t).sum(); }))(x));
}

// --- node by node ----------------------------------------------------------------------------------------

struct ReluToNeg : Interpreter {
  using Interpreter::Interpreter;
  Value call_function(const Target& target, Args args, const Kwargs& kwargs) override {
    if (target == Target(op("aten::relu"))) return neg(args[0].to_tensor());
    return Interpreter::call_function(target, args, kwargs);
  }
};

TEST(Interpreter, RunsAndCanBeOverridden) {
  Net net;
  GraphModule module(net, net_graph());
  Tensor x = randn({5, 4});
  expect_equal(Interpreter(module).run({x}).to_tensor(), net(x));
  expect_equal(ReluToNeg(module).run({x}).to_tensor(), net.fc2(neg(net.fc1(x))) * net.scale);
  EXPECT_ERROR(Interpreter(module).run(ValueList{}), "there is no input for placeholder 'x'");
}

struct ReluToSigmoid : Transformer {
  using Transformer::Transformer;
  Value call_function(const Target& target, Args args, const Kwargs& kwargs) override {
    if (target == Target(op("aten::relu")))
      return Transformer::call_function(op("aten::sigmoid"), args, kwargs);
    return Transformer::call_function(target, args, kwargs);
  }
};

TEST(Transformer, MakesAnotherGraph) {
  Net net;
  GraphModule module(net, net_graph());
  GraphModule changed = ReluToSigmoid(module).transform();
  Tensor x = randn({5, 4});
  expect_equal(changed(x), net.fc2(sigmoid(net.fc1(x))) * net.scale);
  expect_equal(module(x), net(x));
  EXPECT_THAT(changed.code(), ::testing::HasSubstr("sigmoid = torch.ops.aten.sigmoid.default(fc1)"));
}

}  // namespace
}  // namespace weft
