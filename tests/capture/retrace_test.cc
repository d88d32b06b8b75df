// symbolic_trace of what is a graph already: calls are recorded again as what they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/dispatch/layers.h"
#include "weft/graph/parse.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using testing::expect_equal;
using ::testing::HasSubstr;
using ::testing::Not;

struct RetracedNet : nn::Module {
  nn::Sequential body = child("body", nn::Sequential(nn::Linear(4, 3), nn::ReLU()));
  nn::Linear fc = child("fcOut", nn::Linear(3, 2));
  Tensor scale = parameter("W", ones({2}));
  Tensor forward(const Tensor& x) { return fc(body(x)) * scale; }
  WEFT_ARGS(inX)
};

TEST(Retrace, LayersStayCalls) {
  RetracedNet net;
  GraphModule first = symbolic_trace(net), again = symbolic_trace(first);
  EXPECT_EQ(first.code(), R"(


def forward(self, inX):
    in_x = inX
    body_0 = getattr(self.body, "0")(in_x);  in_x = None
    body_1 = getattr(self.body, "1")(body_0);  body_0 = None
    fc_out = self.fcOut(body_1);  body_1 = None
    w = self.W
    mul = torch.ops.aten.mul.Tensor(fc_out, w);  fc_out = w = None
    return mul
    )");
  EXPECT_EQ(again.code(), first.code());
  Tensor x = randn({5, 4});
  expect_equal(again(x), net(x));
  EXPECT_TRUE(again.find("W").to_tensor().is_same(net.scale));
  EXPECT_EQ(symbolic_trace(again).code(), first.code());
  EXPECT_EQ(again.graph().find("fc_out")->meta().modules.size(),
            first.graph().find("fc_out")->meta().modules.size());
}

TEST(Retrace, LeafRuleOpensLayers) {
  RetracedNet net;
  auto no_leaf = [](const nn::ModuleState&, std::string_view) { return false; };
  GraphModule flat = symbolic_trace(symbolic_trace(net), {.is_leaf_module = no_leaf});
  for (const Node& node : flat.graph()) EXPECT_NE(node.kind(), NodeKind::kCallModule);
  EXPECT_THAT(flat.code(), HasSubstr("torch.ops.aten.linear.default(in_x, body_0_weight, body_0_bias)"));
  Tensor x = randn({5, 4});
  expect_equal(flat(x), net(x));
}

TEST(Retrace, FunctionsAndMethodsStayWhatTheyAre) {
  const char* code = R"(


def forward(self, x, n = 2):
    mul = x * n;  n = None
    relu_ = mul.relu_();  mul = None
    split = relu_.split(2, dim = 1);  relu_ = None
    getitem = split[0]
    getitem_1 = split[1];  split = None
    size = x.size(0);  x = None
    add = size + 1;  size = None
    cat = torch.ops.aten.cat.default([getitem, getitem_1], 1);  getitem = getitem_1 = None
    max_1 = torch.ops.aten.max.dim(cat, 0);  cat = None
    getitem_2 = max_1[0];  max_1 = None
    _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None
    return {'result': getitem_2, 'count': [add]}
    )";
  GraphModule module(parse_code(code));
  ASSERT_EQ(module.code(), code);
  GraphModule again = symbolic_trace(module);
  EXPECT_EQ(again.code(), code);
  EXPECT_TRUE(layer_state().grad_mode);
  Value result = again.call({arange(8).view({2, 4})});
  expect_equal(result.to_dict().at("result").to_tensor(), from_data<int64_t>({8, 10, 12, 14}));
  EXPECT_EQ(result.to_dict().at("count").elements()[0].to_int(), 3);
  EXPECT_TRUE(layer_state().grad_mode);
}

TEST(Retrace, GraphsInsideBecomeWhatTheyDo) {
  RetracedNet net;
  GraphModule inner = symbolic_trace(net);
  Graph graph =
      parse_code("def forward(self, x):\n    y = self.sub(inX = x)\n    z = y.neg()\n    return z\n");
  GraphModule outer(GraphModule::Attributes{{"sub", Value(Ref<ValueObject>(inner.callable()))}},
                    std::move(graph));
  GraphModule flat = symbolic_trace(outer);
  EXPECT_EQ(flat.code(), R"(


def forward(self, x):
    sub_body_0 = getattr(self.sub.body, "0")(x);  x = None
    sub_body_1 = getattr(self.sub.body, "1")(sub_body_0);  sub_body_0 = None
    sub_fc_out = self.sub.fcOut(sub_body_1);  sub_body_1 = None
    sub_w = self.sub.W
    mul = torch.ops.aten.mul.Tensor(sub_fc_out, sub_w);  sub_fc_out = sub_w = None
    neg = mul.neg();  mul = None
    return neg
    )");
  Tensor x = randn({5, 4});
  expect_equal(flat(x), -net(x));
  expect_equal(outer(x), -net(x));
  auto keep = [](const nn::ModuleState&, std::string_view path) { return path == "sub"; };
  GraphModule kept = symbolic_trace(outer, {.is_leaf_module = keep});
  EXPECT_THAT(kept.code(), HasSubstr("sub = self.sub(inX = x)"));
  expect_equal(kept(x), -net(x));
}

struct Branching : nn::Module {
  Tensor forward(const Tensor& x) { return x.size(0) < 30 ? x.relu() : x.sigmoid(); }
  WEFT_ARGS(x)
};
struct HasBranch : nn::Module {
  Branching inner = child("inner", Branching());
  Tensor forward(const Tensor& x) { return inner(x * 2); }
  WEFT_ARGS(x)
};

TEST(Retrace, MetaArgumentsAnswerWhatOpenedModulesAsk) {
  HasBranch net;
  auto leaf = [](const nn::ModuleState&, std::string_view) { return true; };
  GraphModule whole = symbolic_trace(net, {.is_leaf_module = leaf});
  EXPECT_THAT(whole.code(), HasSubstr("self.inner(mul)"));
  Tensor large = empty({40, 2}, kFloat32, std::nullopt, Device("meta"));
  GraphModule opened = symbolic_trace(whole, {.meta_args = Dict{{"x", large}}});
  EXPECT_THAT(opened.code(), HasSubstr("sigmoid"));
  EXPECT_THAT(opened.code(), Not(HasSubstr("inner")));
  GraphModule sized(parse_code("def forward(self, x):\n    n = x.size(0)\n    y = x * n\n    return y\n"));
  EXPECT_THAT(symbolic_trace(sized, {.meta_args = Dict{{"x", large}}}).code(), HasSubstr("mul = x * 40"));
}

TEST(Retrace, KeepsTreesOfArguments) {
  auto f = [](const std::map<std::string, Tensor>& d, const std::vector<Tensor>& list) {
    return std::tuple(d.at("a") + list[0], list[1]);
  };
  std::map<std::string, Tensor> d{{"a", ones({2})}};
  std::vector<Tensor> list{ones({2}), zeros({2})};
  GraphModule first = make_graph(f)(d, list), again = symbolic_trace(first);
  EXPECT_EQ(again.code(), first.code());
  ASSERT_TRUE(again.call_spec().has_value());
  Value result = again.call({to_value(d), to_value(list)});
  expect_equal(result.elements()[0].to_tensor(), full({2}, 2.0));
}

TEST(Retrace, FixesArguments) {
  GraphModule module(parse_code("def forward(self, x, n):\n    m = n + 1\n    y = x * m\n    return y\n"));
  GraphModule fixed = symbolic_trace(module, {.concrete_args = Dict{{"n", 2}}});
  EXPECT_THAT(fixed.code(), HasSubstr("mul = x * 3"));
  EXPECT_EQ(fixed.call({5, 2}).to_int(), 15);
  EXPECT_ERROR(fixed.call({5, 3}), "n has been specialized to have value 2 but got another value");
}

}  // namespace
}  // namespace weft
