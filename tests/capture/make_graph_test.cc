// make_graph: what a capture sees, under transforms and with fake and symbolic tensors.
#include "weft/capture/make_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/core/from_data.h"
#include "weft/dispatch/layers.h"
#include "weft/func/control_flow.h"
#include "weft/func/functionalize.h"
#include "weft/graph/parse.h"
#include "weft/graph/text.h"
#include "weft/nn/layers.h"
#include "weft/sym/text.h"

namespace weft {
namespace {

using testing::expect_equal;
using ::testing::HasSubstr;

TEST(MakeGraph, WritesWhatOperatorsDid) {
  GraphModule g = make_graph(
      [](const Tensor& x, const Tensor& y) {
        Tensor sum = x + 2;
        return sum * y.sin();
      },
      {.arg_names = "x, y"})(randn({3}), randn({3}));
  EXPECT_EQ(g.code(), R"(


def forward(self, x_1, y_1):
    add = torch.ops.aten.add.Tensor(x_1, 2);  x_1 = None
    sin = torch.ops.aten.sin.default(y_1);  y_1 = None
    mul = torch.ops.aten.mul.Tensor(add, sin);  add = sin = None
    return mul
    )");
  Tensor a = randn({3}), b = randn({3});
  expect_equal(g(a, b), (a + 2) * b.sin());
}

TEST(MakeGraph, HoldsTheBackwardOperators) {
  auto f = [](const Tensor& x) { return x.sin().sum(); };
  Tensor x = randn({3});
  GraphModule g = make_graph(func::grad(f))(x);
  EXPECT_THAT(g.code(), HasSubstr("torch.ops.aten.cos.default(arg0_1)"));
  Tensor other = randn({3});
  expect_equal(g(other), func::grad(f)(other));
}

TEST(MakeGraph, TakesTreesAndGivesThem) {
  auto f = [](const std::vector<Tensor>& xs, const std::map<std::string, Tensor>& m) {
    return std::map<std::string, std::vector<Tensor>>{{"r", {xs[0] + m.at("b"), xs[1]}}};
  };
  std::vector<Tensor> xs{randn({2}), randn({2})};
  std::map<std::string, Tensor> m{{"a", randn({2})}, {"b", randn({2})}};
  GraphModule g = make_graph(f, {.arg_names = "xs, m"})(xs, m);
  EXPECT_EQ(g.graph().placeholders().size(), 4u);
  EXPECT_EQ(g.code(), R"(


def forward(self, xs, m):
    xs_1, xs_2, m_1, m_2, = fx_pytree.tree_flatten_spec([xs, m], self._in_spec)
    add = torch.ops.aten.add.Tensor(xs_1, m_2);  xs_1 = m_2 = None
    return pytree.tree_unflatten([add, xs_2], self._out_spec)
    )");
  EXPECT_EQ(readable(g), R"(class GraphModule(torch.nn.Module):
    def forward(self, xs, m):
        xs_1: "f32[2]"; xs_2: "f32[2]"; m_1: "f32[2]"; m_2: "f32[2]"; 

        xs_1, xs_2, m_1, m_2, = fx_pytree.tree_flatten_spec([xs, m], self._in_spec)
        # No stacktrace found for following nodes
        add: "f32[2]" = torch.ops.aten.add.Tensor(xs_1, m_2);  xs_1 = m_2 = None
        return pytree.tree_unflatten([add, xs_2], self._out_spec)
)");
  const CallSpec& spec = *g.call_spec();
  GraphModule read = parse_module(g.code(), spec.arguments, spec.result);
  expect_equal(from_value<std::map<std::string, std::vector<Tensor>>>(read.call({to_value(xs), to_value(m)}))
                   .at("r")[0],
               xs[0] + m.at("b"));
  Value result = g.call({to_value(xs), to_value(m)});
  auto typed = from_value<std::map<std::string, std::vector<Tensor>>>(result);
  expect_equal(typed.at("r")[0], xs[0] + m.at("b"));
  EXPECT_TRUE(typed.at("r")[1].is_same(xs[1]));
  EXPECT_ERROR(g.call({to_value(xs), to_value(xs)}), "expected");
}

TEST(MakeGraph, StridesAndOffsetsThatSizesDoNotTellAreReadOffTheInput) {
  auto f = [](const Tensor& x) { return x.as_strided({x.size(0)}, {x.stride(0)}, x.storage_offset()) * 2; };
  auto part_of = [](int64_t rows, int64_t columns) {
    return arange(rows * columns, kFloat32).view({rows, columns}).narrow(0, 1, rows - 2).narrow(1, 0, 3);
  };
  GraphModule g = make_graph(f, {.mode = CaptureMode::kSymbolic, .arg_names = "x"})(part_of(6, 8));
  EXPECT_THAT(g.code(), HasSubstr("torch.ops.aten.as_strided.default(x_1, [sym_size_int], [sym_stride_int], "
                                  "sym_storage_offset_default)"));
  expect_equal(g(part_of(9, 11)), f(part_of(9, 11)));
}

TEST(MakeGraph, SymbolsKnowTheLeafOfTheArgumentThatTheyComeFrom) {
  Ref<ShapeEnv> env = ShapeEnv::create();
  auto f = [](const std::vector<Tensor>& xs) { return xs[0].size(0) > 3 ? xs[0] : xs[1]; };
  make_graph(f, {.mode = CaptureMode::kSymbolic, .arg_names = "xs", .shape_env = env})(
      std::vector<Tensor>{randn({4, 2}), randn({5, 2})});
  EXPECT_EQ(env->find_symbol("s0")->sources[0].guard_text(), "L['xs'][0].size()[0]");
  EXPECT_EQ(env->find_symbol("s2")->sources[0].guard_text(), "L['xs'][1].size()[0]");
  EXPECT_EQ(sym::source_text(env->guards()[0].condition), "L['xs'][0].size()[0] > 3");
}

TEST(MakeGraph, InputsThatShareMemoryDoSoInEveryMode) {
  auto f = [](const Tensor& x, const Tensor& y) {
    x.add_(1);
    return y * 2;
  };
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic}) {
    Tensor x = randn({2, 3});
    GraphModule g = make_graph(f, {.mode = mode})(x, x.view({-1}));
    Tensor a = randn({2, 3}), b = a.clone();
    expect_equal(g(a, a.view({-1})), f(b, b.view({-1})));
    expect_equal(g(a, a), f(b, b));
  }
}

// What PyTorch writes for the same predicates.
TEST(MakeGraph, ComparesSizesAsTheProgramDid) {
  auto captured = [](std::function<SymBool(const SymInt&, const SymInt&)> predicate) {
    auto f = [&](const Tensor& x) {
      auto plus = [](const Tensor& t) { return t + 1; };
      auto minus = [](const Tensor& t) { return t - 1; };
      return func::cond(predicate(x.size(0), x.size(1)), plus, minus, x);
    };
    return make_graph(f, {.mode = CaptureMode::kSymbolic})(randn({6, 3})).code();
  };
  using Size = const SymInt&;
  EXPECT_THAT(captured([](Size a, Size) { return a > 4; }), HasSubstr("    gt = sym_size_int > 4"));
  EXPECT_THAT(captured([](Size a, Size) { return a < 4; }), HasSubstr("    lt = sym_size_int < 4"));
  EXPECT_THAT(captured([](Size a, Size) { return a >= 4; }), HasSubstr("    ge = sym_size_int >= 4"));
  EXPECT_THAT(captured([](Size a, Size) { return a <= 4; }), HasSubstr("    le = sym_size_int <= 4"));
  EXPECT_THAT(captured([](Size a, Size) { return a == 4; }), HasSubstr("    eq = sym_size_int == 4"));
  EXPECT_THAT(captured([](Size a, Size) { return a != 4; }), HasSubstr("    ne = sym_size_int != 4"));
  EXPECT_THAT(captured([](Size a, Size) { return 4 < a; }), HasSubstr("    gt = sym_size_int > 4"));
  EXPECT_THAT(captured([](Size a, Size b) { return a < b; }),
              HasSubstr("    lt = sym_size_int < sym_size_int_1"));
  EXPECT_THAT(captured([](Size a, Size b) { return a + 1 < b * 2; }), HasSubstr("    lt = add < mul"));
}

TEST(MakeGraph, WritesUnderVmapAreOneOperator) {
  auto operators = [](auto f, auto... args) {
    std::vector<std::string> names;
    const GraphModule g = make_graph(func::functionalize(f))(args...);
    for (const Node& node : g.graph())
      if (node.target().op()) names.push_back(node.target().op()->schema().name);
    return names;
  };
  const Tensor x = randn({3, 2});
  EXPECT_THAT(operators(func::vmap([](const Tensor& a) { return a.clone().add_(1); }), x),
              ::testing::ElementsAre("clone", "add"));
  auto sum = [](const Tensor& a, const Tensor& b) { return a.clone().add_(b); };
  EXPECT_THAT(operators(func::vmap(sum, {.in_dims = {0, func::kNoDim}}), x, randn({2})),
              ::testing::ElementsAre("clone", "add"));
  EXPECT_THAT(operators(func::vmap(sum, {.in_dims = {0, 1}}), x, randn({2, 3})),
              ::testing::ElementsAre("clone", "permute", "add"));
}

TEST(MakeGraph, LiftsConstants) {
  Tensor c = randn({3});
  Tensor p = randn({3}).set_requires_grad();
  GraphModule g = make_graph([&](const Tensor& x) { return x * c + p; })(randn({3}));
  EXPECT_THAT(g.code(), HasSubstr("_tensor_constant0 = self._tensor_constant0"));
  EXPECT_THAT(g.code(), HasSubstr("_param_constant0 = self._param_constant0"));
  EXPECT_TRUE(g.find("_tensor_constant0").to_tensor().is_same(c));
  EXPECT_TRUE(g.find("_param_constant0").to_tensor().is_same(p));
  EXPECT_EQ(g.named_parameters().size(), 1u);
}

TEST(MakeGraph, KeepsInPlaceWritesAndTheirOrder) {
  auto f = [](const Tensor& x) {
    Tensor y = x.clone();
    y.select(0, 0).add_(1);
    return y * 2;
  };
  GraphModule g = make_graph(f)(randn({2, 2}));
  Tensor x = randn({2, 2});
  expect_equal(g(x), f(x));
  EXPECT_THAT(g.code(), HasSubstr("torch.ops.aten.add_.Tensor(select, 1)"));
  GraphModule functional = make_graph(func::functionalize(f))(randn({2, 2}));
  expect_equal(functional(x), f(x));
  EXPECT_THAT(functional.code(), ::testing::Not(HasSubstr("add_")));
}

TEST(MakeGraph, SameTensorTwiceIsTwoInputs) {
  Tensor x = randn({3});
  GraphModule g = make_graph([](const Tensor& a, const Tensor& b) { return a - b; })(x, x);
  expect_equal(g(full({3}, 5), ones({3})), full({3}, 4.0));
}

TEST(MakeGraph, SeveralResultsAreItems) {
  GraphModule g = make_graph([](const Tensor& x) {
    auto [values, indices] = x.max(1, false);
    return values;
  })(randn({2, 3}));
  EXPECT_THAT(g.code(), HasSubstr("getitem = max_1[0]"));
  EXPECT_THAT(g.code(), ::testing::Not(HasSubstr("getitem_1")));
}

struct TrainedNet : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(4, 3));
  nn::BatchNorm2d bn = child("bn", nn::BatchNorm2d(2));
  Tensor forward(const Tensor& x) { return relu(fc(x)); }
  WEFT_ARGS(x)
};

TEST(MakeGraph, NamesWhatAModuleOwns) {
  TrainedNet net;
  GraphModule g = make_graph(net)(randn({2, 4}));
  EXPECT_THAT(g.code(), HasSubstr("def forward(self, x_1):"));
  EXPECT_THAT(g.code(), HasSubstr("self.fc.weight"));
  EXPECT_EQ(g.state_dict().size(), 2u);
  Tensor x = randn({7, 4});
  expect_equal(g(x), net(x));
}

TEST(MakeGraph, FakeTensorsNeedNoDataAndTouchNothing) {
  TrainedNet net;
  GraphModule g = make_graph(net, {.mode = CaptureMode::kFake})(randn({2, 4}));
  Tensor x = randn({7, 4});
  expect_equal(g(x), net(x));
  Tensor c = randn({4});
  EXPECT_ERROR(make_graph([&](const Tensor& t) { return t + c; }, {.mode = CaptureMode::kFake})(x),
               "is a real tensor among fake ones: it is no input of the captured function");
  GraphModule allowed = make_graph([&](const Tensor& t) { return t + c; },
                                   {.mode = CaptureMode::kFake, .allow_real_inputs = true})(x);
  expect_equal(allowed(x), x + c);
}

TEST(MakeGraph, PreDispatchKeepsCompositesAndGradMode) {
  TrainedNet net;
  auto f = [&](const Tensor& x) {
    Tensor y = net(x);
    NoGrad no_grad;
    return y + 1;
  };
  GraphModule g = make_graph(f, {.pre_dispatch = true})(randn({2, 4}));
  EXPECT_THAT(g.code(), HasSubstr("torch.ops.aten.linear.default(arg0_1"));
  EXPECT_THAT(g.code(), HasSubstr("_set_grad_enabled = torch._C._set_grad_enabled(False)"));
  EXPECT_THAT(g.code(), HasSubstr("_set_grad_enabled_1 = torch._C._set_grad_enabled(True)"));
  Tensor x = randn({3, 4});
  EXPECT_FALSE(g(x).requires_grad());
  expect_equal(g(x), f(x));
}

TEST(MakeGraph, NotesWhereCallsWereMade) {
  auto f = [](const Tensor& x) {
    return x.sin();  // this line
  };
  GraphModule with = make_graph(f, {.record_stack_traces = true})(randn({3})),
              without = make_graph(f)(randn({3}));
  EXPECT_THAT(with.graph().find("sin")->source(), HasSubstr("make_graph_test.cc"));
  EXPECT_EQ(without.graph().find("sin")->source(), "");
  EXPECT_THAT(readable(with.graph()), HasSubstr("make_graph_test.cc"));
}

TEST(MakeGraph, SizesOfAnInputAreThoseThatItCameWith) {
  const MakeGraphOptions symbolic{.mode = CaptureMode::kSymbolic};
  auto swapped = [](const Tensor& x) {
    x.transpose_(0, 1);
    return x.narrow(0, 0, x.size(0) - 1);
  };
  GraphModule g = make_graph(swapped, symbolic)(randn({2, 3, 5}));
  EXPECT_EQ(g.graph().find("sym_size_int")->next()->name(), "transpose_");
  for (int64_t n : {2, 4}) {
    Tensor eager = randn({n, 3, 5}), captured = eager.clone();
    expect_equal(g(captured), swapped(eager));
    EXPECT_EQ(captured.plain_sizes()[0], 3);
  }
  auto twice = [](const Tensor& x) {
    x.unsqueeze_(0);
    x.transpose_(0, 2);
    return ones({x.size(0), x.size(1)});
  };
  expect_equal(make_graph(twice, symbolic)(randn({3, 4}))(randn({5, 6})), ones({6, 5}));
  // Where nothing changes, sizes are read when they are first needed, under PyTorch's names.
  auto late = [](const Tensor& x) { return x.sin().view({x.size(1), x.size(0)}); };
  GraphModule later = make_graph(late, symbolic)(randn({2, 3}));
  EXPECT_EQ(later.graph().find("sym_size_int")->previous()->name(), "sin");
  EXPECT_NE(later.graph().find("sym_size_int_1"), nullptr);
}

TEST(MakeGraph, FailuresLeaveNothingBehind) {
  auto bad = [](const Tensor& x) -> Tensor {
    x.sin();
    throw std::runtime_error("in the middle");
  };
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic})
    EXPECT_THROW(make_graph(bad, {.mode = mode})(randn({3})), std::runtime_error);
  EXPECT_EQ(layer_state().active, 0u);
  GraphModule g = make_graph([](const Tensor& x) { return x.cos(); })(randn({3}));
  EXPECT_EQ(g.graph().size(), 3u);
}

}  // namespace
}  // namespace weft
