// Control flow over functions: eager, captured, differentiated, batched, functionalised.
#include "weft/func/control_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/make_graph.h"
#include "weft/func/functionalize.h"
#include "weft/graph/text.h"

namespace weft {
namespace {

using testing::expect_equal;
using ::testing::HasSubstr;

Tensor choose(const Tensor& x) {
  return func::cond(
      x.sum() > 0, [](const Tensor& t) { return t.cos(); }, [](const Tensor& t) { return t.sin() * 2; }, x);
}

TEST(Cond, IsPlainControlFlowOutsideOfCaptures) {
  expect_equal(choose(ones({3})), ones({3}).cos());
  expect_equal(choose(-ones({3})), (-ones({3})).sin() * 2);
  Tensor x = ones({3}).set_requires_grad();
  choose(x).sum().backward();
  expect_equal(x.grad(), -ones({3}).sin());
  EXPECT_ERROR(func::cond(
                   ones({2}) > 0, [](const Tensor& t) { return t; }, [](const Tensor& t) { return t; }, x),
               "the condition must be a tensor of one element, but is b8[2]");
}

TEST(Cond, IsOneNodeWithTwoGraphs) {
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic}) {
    GraphModule g = make_graph(choose, {.mode = mode})(ones({3}));
    EXPECT_THAT(
        g.code(),
        HasSubstr("conditional = torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0, [arg0_1])"));
    EXPECT_THAT(graph_module_in(g.find("true_graph_0"))->code(),
                HasSubstr("torch.ops.aten.cos.default(arg0_1)"));
    expect_equal(g(ones({5})), ones({5}).cos());
    expect_equal(g(-ones({5})), (-ones({5})).sin() * 2);
  }
}

TEST(Cond, ClosuresBecomeOperands) {
  auto f = [](const Tensor& x, const Tensor& y) {
    Tensor z = y * 2;
    return func::cond(
        x.sum() > 0, [z](const Tensor& t) { return t * z; }, [](const Tensor& t) { return t.neg(); }, x);
  };
  GraphModule g = make_graph(f)(ones({3}), ones({3}));
  EXPECT_THAT(g.code(), HasSubstr("[arg0_1, mul]"));
  Tensor a = randn({3}).abs(), b = randn({3});
  expect_equal(g(a, b), f(a, b));
  expect_equal(g(-a, b), f(-a, b));
}

TEST(Cond, GradientIsACondOverPullbacks) {
  auto f = [](const Tensor& x) { return choose(x).sum(); };
  GraphModule g = make_graph(func::grad(f))(ones({3}));
  int conds = 0;
  for (const Node& node : g.graph()) conds += node.target().to_string() == "torch.ops.higher_order.cond";
  EXPECT_GE(conds, 1);
  Tensor x = randn({3}).abs();
  expect_equal(g(x), func::grad(f)(x));
  expect_equal(g(-x), func::grad(f)(-x));
}

TEST(Cond, Batches) {
  Tensor batch = randn({4, 3});
  auto own_condition = func::vmap([](const Tensor& x) { return choose(x); });
  for (int64_t i = 0; i < 4; ++i) expect_equal(own_condition(batch).select(0, i), choose(batch.select(0, i)));
  Tensor flag = ones({1}).sum() > 0;
  auto shared = [&](const Tensor& x) {
    return func::cond(
        flag, [](const Tensor& t) { return t.cos().sum(); }, [](const Tensor& t) { return t.sum(); }, x);
  };
  expect_equal(func::vmap(shared)(batch), batch.cos().sum({1}));
}

TEST(Cond, ConditionsOfExamplesMayBeNumbersAndHaveOneElement) {
  auto f = [](const Tensor& pred, const Tensor& x) {
    return func::cond(pred, [](const Tensor& t) { return t + 1; }, [](const Tensor& t) { return t * 10; }, x);
  };
  Tensor x = testing::ramp({3});
  Tensor expected = stack({x.select(0, 0) + 1, x.select(0, 1) * 10, x.select(0, 2) + 1});
  Tensor flags = from_data<int64_t>({2, 0, 1});
  expect_equal(func::vmap(f)(flags, x), expected);
  expect_equal(func::vmap(f)(flags.unsqueeze(1) != 0, x), expected);
}

TEST(Cond, BranchesAreFunctionalised) {
  auto f = [](const Tensor& x) {
    return func::cond(
        x.sum() > 0,
        [](const Tensor& t) {
          Tensor y = t.sin();
          y.add_(5);
          return y;
        },
        [](const Tensor& t) { return t.clone(); }, x);
  };
  GraphModule g = make_graph(func::functionalize(f))(ones({3}));
  std::string inner = graph_module_in(g.find("true_graph_0"))->code();
  EXPECT_THAT(inner, HasSubstr("torch.ops.aten.add.Tensor(sin, 5)"));
  EXPECT_THAT(inner, ::testing::Not(HasSubstr("add_.")));
  expect_equal(g(ones({3})), f(ones({3})));
  auto writes = [](const Tensor& x) {
    return func::cond(
        x.sum() > 0, [](const Tensor& t) { return t.add_(5); }, [](const Tensor& t) { return t.clone(); }, x);
  };
  EXPECT_ERROR(make_graph(func::functionalize(writes))(ones({3})),
               "one of its functions writes to its input");
}

TEST(Cond, BranchesMustAgree) {
  auto f = [](const Tensor& x) {
    return func::cond(
        x.sum() > 0, [](const Tensor& t) { return t; }, [](const Tensor& t) { return t.sum(); }, x);
  };
  auto g = [](const Tensor& x) {
    return func::cond(
        x.sum() > 0, [](const Tensor& t) { return t * 1; }, [](const Tensor& t) { return t.to(kFloat64); },
        x);
  };
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic}) {
    EXPECT_ERROR(make_graph(f, {.mode = mode})(ones({3})), "they must be of one type");
    EXPECT_ERROR(make_graph(g, {.mode = mode})(ones({3})), "and f64[");
  }
  EXPECT_ERROR(make_graph(f)(ones({3})),
               "cond: result 0 is f32[3] in one function and f32[] in the other; they must be of one type");
  EXPECT_ERROR(func::grad([&](const Tensor& x) { return f(x).sum(); })(ones({3})), "must be of one type");
  expect_equal(f(ones({3})), ones({3}));  // plain C++ control flow
}

TEST(ControlFlow, WhatIsCarriedKeepsItsType) {
  auto tensor = [](const Value& value) { return value.to_tensor(); };
  auto scan_of = [&](auto step) {
    return [=](const Tensor& x) {
      auto body = [=](Args args) {
        return Value::tuple({Value(step(tensor(args[0]), tensor(args[1]))), args[1]});
      };
      return tensor(func::scan(body, Value(x.select(0, 0)), Value(x)).elements()[0]);
    };
  };
  auto while_of = [&](auto condition, auto step) {
    return [=](const Tensor& x) {
      return tensor(func::while_loop([=](Args args) { return Value(condition(tensor(args[0]))); },
                                     [=](Args args) { return Value::tuple({Value(step(tensor(args[0])))}); },
                                     {Value(x)})
                        .elements()[0]);
    };
  };
  auto longer = [](const Tensor& a, const Tensor& b) { return cat({a, b}, 0); };
  auto wider = [](const Tensor& a, const Tensor&) { return a.to(kFloat64); };
  auto small = [](const Tensor& t) { return t.sum() < 10; };
  auto doubled = [](const Tensor& t) { return cat({t, t}, 0); };
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake}) {
    const MakeGraphOptions options{.mode = mode};
    EXPECT_ERROR(make_graph(scan_of(longer), options)(ones({2, 3})),
                 "scan: what is carried at 0 is f32[3] before a round and f32[6] after it");
    EXPECT_ERROR(make_graph(scan_of(wider), options)(ones({2, 3})), "f32[3] before a round and f64[3]");
    EXPECT_ERROR(make_graph(while_of(small, doubled), options)(ones({3})),
                 "while_loop: what is carried at 0 is f32[3] before a round and f32[6] after it");
    EXPECT_ERROR(
        make_graph(while_of([](const Tensor& t) { return t < 10; }, [](const Tensor& t) { return t + 1; }),
                   options)(ones({3})),
        "the condition must give a bool or a tensor of one element, but gives b8[3]");
  }
}

TEST(Map, GoesOverTheFirstDim) {
  auto f = [](const Tensor& xs, const Tensor& y) {
    return func::map([](const Tensor& x, const Tensor& own) { return x.cos() + own; }, xs, y);
  };
  Tensor xs = randn({3, 2}), y = randn({2});
  expect_equal(f(xs, y), xs.cos() + y);
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake}) {
    GraphModule g = make_graph(f, {.mode = mode})(xs, y);
    EXPECT_THAT(g.code(),
                HasSubstr("map_impl = torch.ops.higher_order.map_impl(body_graph_0, [arg0_1], [arg1_1])"));
    expect_equal(g(xs, y), xs.cos() + y);
  }
  auto loss = [&](const Tensor& a, const Tensor& b) { return f(a, b).sin().sum(); };
  GraphModule g = make_graph(func::grad(loss, {0, 1}))(xs, y);
  Value captured = g.call({xs, y});
  func::Tensors eager = func::grad(loss, {0, 1})(func::Tensors{xs, y});
  EXPECT_TRUE(testing::close(captured.elements()[0].to_tensor(), eager[0], 1e-6, 1e-6));
  EXPECT_TRUE(testing::close(captured.elements()[1].to_tensor(), eager[1], 1e-6, 1e-6));
  EXPECT_ERROR(f(empty({0, 2}), y), "the first dim of the tensors is empty");
}

TEST(Map, OverNoRowsGivesNoRowsOnceItIsCaptured) {
  const Tensor constant = ones({3, 1}, kFloat64);
  auto f = [&](const Tensor& xs, const Tensor& y) {
    return func::map([&](const Tensor& x, const Tensor& own) { return (x + own).to(kFloat64) * constant; },
                     xs, y);
  };
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic}) {
    GraphModule g = make_graph(f, {.mode = mode, .allow_real_inputs = true})(ones({2, 4}), ones({4}));
    const Tensor nothing = g(zeros({0, 4}), ones({4}));
    EXPECT_EQ(describe(nothing).str(), "f64[0, 3, 4]");
    expect_equal(g(ones({5, 4}), ones({4})), f(ones({5, 4}), ones({4})));
  }
}

TEST(Scan, OverNoRowsGivesWhatItCarriesOnceItIsCaptured) {
  auto step = make_callable([](const Tensor& carry, const Tensor& x) {
    const Tensor next = carry + x;
    return std::tuple(next, next.sum());
  });
  auto f = [&](const Tensor& xs) {
    const Value both = func::scan(step, Value(ones({3})), Value(xs));
    return std::tuple(both.elements()[0].to_tensor(), both.elements()[1].to_tensor());
  };
  GraphModule g = make_graph(f)(ones({2, 3}));
  const Value results = g.call({zeros({0, 3})});
  expect_equal(results.elements().at(0).to_tensor(), ones({3}));
  EXPECT_EQ(describe(results.elements().at(1).to_tensor()).str(), "f32[0]");
}

TEST(Scan, CarriesAndStacks) {
  auto step =
      make_callable([](const Tensor& carry, const Tensor& x) { return std::tuple(carry + x, carry * x); });
  auto f = [&](const Tensor& init, const Tensor& xs) {
    return from_value<std::tuple<Tensor, Tensor>>(func::scan(step, init, xs));
  };
  Tensor xs = from_data(std::vector<double>{1, 2, 3}), init = from_data(std::vector<double>{10}).select(0, 0);
  auto [last, ys] = f(init, xs);
  expect_equal(last, from_data(std::vector<double>{16}).select(0, 0));
  expect_equal(ys, from_data(std::vector<double>{10, 22, 39}));
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake}) {
    GraphModule g = make_graph(f, {.mode = mode})(init, xs);
    EXPECT_THAT(g.code(),
                HasSubstr("torch.ops.higher_order.scan(scan_combine_graph_0, [arg0_1], [arg1_1], [])"));
    expect_equal(g.call({init, xs}).elements()[1].to_tensor(), ys);
  }
}

TEST(WhileLoop, RunsUntilItsConditionFails) {
  auto more = make_callable([](const Tensor& i, const Tensor&) { return i < 4; });
  auto body = make_callable([](const Tensor& i, const Tensor& x) { return std::tuple(i + 1, x * 2); });
  auto f = [&](const Tensor& i, const Tensor& x) {
    return from_value<std::tuple<Tensor, Tensor>>(func::while_loop(more, body, {i, x}));
  };
  Tensor start = scalar_tensor(0, kInt64), x = ones({2});
  expect_equal(std::get<1>(f(start, x)), full({2}, 16.0));
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake}) {
    GraphModule g = make_graph(f, {.mode = mode})(start, x);
    expect_equal(g.call({scalar_tensor(2, kInt64), x}).elements()[1].to_tensor(), full({2}, 4.0));
  }
}

// --- texts -----------------------------------------------------------------------------------------------

TEST(ReadableModule, ClassesOfBranchesStandInTheirModule) {
  auto f = [](const Tensor& x, const Tensor& p) {
    auto on_true = [](const Tensor& t) {
      return func::map([](const Tensor& row) { return row.sin(); }, t) + 1;
    };
    return func::cond(p, on_true, [](const Tensor& t) { return t.cos(); }, x) + 1;
  };
  GraphModule g = make_graph(f)(randn({3, 2}), ones(SymIntSpan(), kBool));
  EXPECT_EQ(readable(g), R"(class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[3, 2]", arg1_1: "b8[]"):
        # No stacktrace found for following nodes
        true_graph_0 = self.true_graph_0
        false_graph_0 = self.false_graph_0
        conditional = torch.ops.higher_order.cond(arg1_1, true_graph_0, false_graph_0, [arg0_1]);  arg1_1 = true_graph_0 = false_graph_0 = arg0_1 = None
        getitem: "f32[3, 2]" = conditional[0];  conditional = None
        add: "f32[3, 2]" = torch.ops.aten.add.Tensor(getitem, 1);  getitem = None
        return add

    class true_graph_0(torch.nn.Module):
        def forward(self, arg0_1: "f32[3, 2]"):
            # No stacktrace found for following nodes
            select: "f32[2]" = torch.ops.aten.select.int(arg0_1, 0, 0);  select = None
            body_graph_0 = self.body_graph_0
            map_impl = torch.ops.higher_order.map_impl(body_graph_0, [arg0_1], []);  body_graph_0 = arg0_1 = None
            getitem: "f32[3, 2]" = map_impl[0];  map_impl = None
            add: "f32[3, 2]" = torch.ops.aten.add.Tensor(getitem, 1);  getitem = None
            return (add,)

        class body_graph_0(torch.nn.Module):
            def forward(self, arg0_1: "f32[2]"):
                # No stacktrace found for following nodes
                sin: "f32[2]" = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
                return (sin,)

    class false_graph_0(torch.nn.Module):
        def forward(self, arg0_1: "f32[3, 2]"):
            # No stacktrace found for following nodes
            cos: "f32[3, 2]" = torch.ops.aten.cos.default(arg0_1);  arg0_1 = None
            return (cos,)
)");
  std::string full = readable(g, {.strides = true, .devices = true});
  EXPECT_THAT(full, HasSubstr("            def forward(self, arg0_1: \"f32[2][1]cpu\"):\n"));
}

}  // namespace
}  // namespace weft
