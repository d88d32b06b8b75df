// Derivatives and batches of map, scan and while_loop: run, captured, by finite differences, and by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/gradcheck.h"
#include "weft/capture/make_graph.h"
#include "weft/core/value_walk.h"
#include "weft/func/control_flow.h"
#include "weft/func/functionalize.h"

namespace weft {
namespace {

using func::Tensors;
using testing::close;
using testing::expect_equal;
using ::testing::HasSubstr;
using ::testing::Not;

Tensor normal(SymIntSpan sizes) { return randn(sizes, kFloat64); }

void expect_close(const Tensors& a, const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(close(a[i], b[i], 1e-9, 1e-9)) << i;
}

int nodes_of(const GraphModule& module, const std::string& target) {
  int count = 0;
  for (const Node& node : module.graph()) count += node.target().to_string() == target;
  return count;
}
constexpr const char* kScanTarget = "torch.ops.higher_order.scan";
constexpr const char* kWhileTarget = "torch.ops.higher_order.while_loop";
constexpr const char* kStackedTarget = "torch.ops.higher_order.while_loop_stack_output";

// A value of one element that depends on both results of a scan, whose body closes over `w`.
Tensor scan_loss(const Tensor& init, const Tensor& xs, const Tensor& w) {
  auto step = make_callable([w](const Tensor& carry, const Tensor& x) {
    Tensor next = (carry * w + x).sin();
    Tensor y = next * x.cos();
    return std::tuple(next, y);
  });
  auto [last, ys] = from_value<std::tuple<Tensor, Tensor>>(func::scan(step, init, xs));
  return (last * 3).sum() + (ys * ys).sum();
}

// The same in plain C++.
Tensor loop_loss(const Tensor& init, const Tensor& xs, const Tensor& w) {
  Tensor carry = init, loss = zeros({}, kFloat64);
  for (int64_t i = 0; i < xs.size(0); ++i) {
    Tensor x = xs.select(0, i);
    carry = (carry * w + x).sin();
    loss = loss + (carry * x.cos()).square().sum();
  }
  return loss + (carry * 3).sum();
}

// --- scan ------------------------------------------------------------------------------------------------

TEST(ScanGradient, IsAScanInReverse) {
  Tensors inputs{normal({3}), normal({4, 3}), normal({3})};
  auto gradient = func::grad(scan_loss, {0, 1, 2});
  Tensors expected = func::grad(loop_loss, {0, 1, 2})(inputs);
  expect_close(gradient(inputs), expected);
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic}) {
    GraphModule g = make_graph(gradient, {.mode = mode})(inputs[0], inputs[1], inputs[2]);
    EXPECT_EQ(nodes_of(g, kScanTarget), 2);
    EXPECT_THAT(g.code(), HasSubstr("torch.ops.aten.flip.default("));
    expect_close(tensors_in(g.call({inputs[0], inputs[1], inputs[2]})), expected);
    Tensors others{normal({3}), normal({4, 3}), normal({3})};
    expect_close(tensors_in(g.call({others[0], others[1], others[2]})),
                 func::grad(loop_loss, {0, 1, 2})(others));
  }
}

TEST(ScanGradient, HoldsForOtherLengthsWhenCapturedWithSymbolicSizes) {
  auto gradient = func::grad(scan_loss, {0, 1, 2});
  GraphModule g =
      make_graph(gradient, {.mode = CaptureMode::kSymbolic})(normal({3}), normal({4, 3}), normal({3}));
  Tensors longer{normal({5}), normal({7, 5}), normal({5})};
  expect_close(tensors_in(g.call({longer[0], longer[1], longer[2]})),
               func::grad(loop_loss, {0, 1, 2})(longer));
}

TEST(ScanGradient, AgreesWithFiniteDifferences) {
  // A captured gradient, checked against differences of the values of the plain loop.
  Tensor init = normal({2}), xs = normal({3, 2}), w = normal({2});
  GraphModule g = make_graph(func::grad(scan_loss, {1}))(init, xs, w);
  Tensor gradient = g(init, xs, w), numeric = zeros_like(xs);
  constexpr double kStep = 1e-6;
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 2; ++j) {
      auto moved = [&](double by) {
        Tensor other = xs.clone();
        other.select(0, i).select(0, j).add_(by);
        return loop_loss(init, other, w);
      };
      numeric.select(0, i).select(0, j).copy_((moved(kStep) - moved(-kStep)) / (2 * kStep));
    }
  EXPECT_TRUE(close(gradient, numeric, 1e-6, 1e-6));
}

TEST(ScanGradient, OfCountersAndOfResultsThatNobodyUses) {
  auto step = make_callable([](const std::tuple<Tensor, Tensor>& carry, const Tensor& x) {
    auto [i, sum] = carry;
    Tensor next = sum + x * (i + 1);
    return std::tuple(std::tuple(i + 1, next), std::tuple(next.exp(), i * 2));
  });
  auto loss = [&](const Tensor& start, const Tensor& xs) {
    Value result = func::scan(step, Value::tuple({zeros(SymIntSpan(), kInt64), start}), xs);
    return result.elements()[0].elements()[1].to_tensor().square().sum();
  };
  Tensor start = normal({2}), xs = normal({3, 2});
  Tensor total = start + xs.select(0, 0) + xs.select(0, 1) * 2 + xs.select(0, 2) * 3;
  Tensors expected{total * 2, stack({total * 2, total * 4, total * 6})};
  auto gradient = func::grad(loss, {0, 1});
  expect_close(gradient(Tensors{start, xs}), expected);
  expect_close(tensors_in(make_graph(gradient)(start, xs).call({start, xs})), expected);
}

TEST(ScanGradient, SecondDerivatives) {
  auto once = [](const auto& loss, const Tensor& init, const Tensor& w) {
    return [&](const Tensor& xs) {
      auto inner = [&](const Tensor& own) { return loss(init, own, w); };
      return func::grad(inner)(xs).square().sum();
    };
  };
  Tensor init = normal({2}), xs = normal({3, 2}), w = normal({2});
  Tensor expected = func::grad(once(loop_loss, init, w))(xs);
  EXPECT_TRUE(close(func::grad(once(scan_loss, init, w))(xs), expected, 1e-9, 1e-9));
  EXPECT_TRUE(close(make_graph(func::grad(once(scan_loss, init, w)))(xs)(xs), expected, 1e-9, 1e-9));
}

TEST(ScanGradient, ForwardMode) {
  Tensors inputs{normal({3}), normal({4, 3}), normal({3})},
      tangents{normal({3}), normal({4, 3}), normal({3})};
  auto [value, tangent] = func::jvp(scan_loss, inputs, tangents);
  auto [expected_value, expected] = func::jvp(loop_loss, inputs, tangents);
  expect_close(value, expected_value);
  expect_close(tangent, expected);
}

TEST(ScanGradient, UnderTheTape) {
  Tensors inputs{normal({3}), normal({4, 3}), normal({3})};
  Tensors expected = func::grad(loop_loss, {0, 1, 2})(inputs);
  for (Tensor& input : inputs) input.set_requires_grad();
  scan_loss(inputs[0], inputs[1], inputs[2]).backward();
  expect_close({inputs[0].grad(), inputs[1].grad(), inputs[2].grad()}, expected);
}

TEST(ScanGradient, CarriesMustBeTensors) {
  auto step =
      make_callable([](const SymInt& carry, const Tensor& x) { return std::tuple(carry + 1, x * 2); });
  auto loss = [&](const Tensor& xs) {
    return func::scan(step, Value(0), xs).elements()[1].to_tensor().sum();
  };
  EXPECT_ERROR(func::grad(loss)(normal({3})), "scan: what it carries must be tensors to be differentiated");
}

// --- while_loop ------------------------------------------------------------------------------------------

// Doubles and shifts until the sum is large: the trip count depends on x.
Tensor while_loss(const Tensor& x, const Tensor& w) {
  auto more = make_callable([](const Tensor&, const Tensor& y) { return y.abs().sum() < 50; });
  auto body = make_callable(
      [w](const Tensor& i, const Tensor& y) { return std::tuple(i + 1, y * w + y.cos() * i.to(kFloat64)); });
  auto [i, y] =
      from_value<std::tuple<Tensor, Tensor>>(func::while_loop(more, body, {zeros(SymIntSpan(), kInt64), x}));
  return (y * y).sum();
}
Tensor plain_while_loss(const Tensor& x, const Tensor& w) {
  Tensor y = x;
  for (int64_t i = 0; (y.abs().sum() < 50).item().to_bool(); ++i) y = y * w + y.cos() * i;
  return (y * y).sum();
}

TEST(WhileGradient, CountsRoundsAndGoesBack) {
  Tensor w = from_data(std::vector<double>{2, 3});
  auto gradient = func::grad(while_loss, {0, 1}), plain = func::grad(plain_while_loss, {0, 1});
  std::vector<Tensor> starts;
  for (double start : {1., 0.01, 30., 100.}) starts.push_back(full({2}, start, kFloat64));  // 100: no round
  for (const Tensor& start : starts) expect_close(gradient(Tensors{start, w}), plain(Tensors{start, w}));
  // One capture holds for any trip count.
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic}) {
    GraphModule g = make_graph(gradient, {.mode = mode})(starts[0], w);
    EXPECT_EQ(nodes_of(g, kStackedTarget), 1);
    EXPECT_EQ(nodes_of(g, kWhileTarget), 1);
    for (const Tensor& start : starts) expect_close(tensors_in(g.call({start, w})), plain(Tensors{start, w}));
  }
}

TEST(WhileGradient, SecondDerivativesAndForwardMode) {
  Tensor x = full({2}, 1.5, kFloat64), w = from_data(std::vector<double>{2, 3});
  auto squared = [](const auto& loss, const Tensor& own) {
    return [&loss, own](const Tensor& at) {
      return func::grad([&](const Tensor& y) { return loss(y, own); })(at).square().sum();
    };
  };
  Tensor expected = func::grad(squared(plain_while_loss, w))(x);
  EXPECT_TRUE(close(func::grad(squared(while_loss, w))(x), expected, 1e-9, 1e-9));
  auto [value, tangent] = func::jvp(while_loss, {x, w}, {w, x});
  auto [plain_value, plain_tangent] = func::jvp(plain_while_loss, {x, w}, {w, x});
  expect_close(value, plain_value);
  expect_close(tangent, plain_tangent);
}

TEST(WhileGradient, CarriesMustBeTensors) {
  auto more = make_callable([](const SymInt& i, const Tensor&) { return i < 3; });
  auto body = make_callable([](const SymInt& i, const Tensor& x) { return std::tuple(i + 1, x * 2); });
  auto loss = [&](const Tensor& x) {
    return func::while_loop(more, body, {Value(0), x}).elements()[1].to_tensor().sum();
  };
  EXPECT_ERROR(func::grad(loss)(normal({3})),
               "while_loop: what it carries must be tensors to be differentiated");
}

// --- vmap ------------------------------------------------------------------------------------------------

// f of each example, stacked.
template <typename F>
Tensor by_hand(const F& f, const Tensor& batch, int64_t dim = 0) {
  Tensors rows;
  for (int64_t i = 0; i < batch.size(dim); ++i) rows.push_back(f(batch.select(dim, i)));
  return stack(rows);
}

// Run and captured; `dim` is the one that examples lie along.
template <typename F>
void expect_batched(const F& f, const Tensor& batch, int64_t dim = 0) {
  Tensor expected = by_hand(f, batch, dim);
  auto batched = func::vmap(f, {.in_dims = {dim}});
  EXPECT_TRUE(close(batched(batch), expected, 1e-9, 1e-9));
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake})
    EXPECT_TRUE(close(make_graph(batched, {.mode = mode, .allow_real_inputs = true})(batch)(batch), expected,
                      1e-9, 1e-9));
}

TEST(MapBatches, XsAndArguments) {
  Tensor shared = normal({3}), xs = normal({5, 3});
  auto over_batched = [&](const Tensor& x) {
    return func::map([](const Tensor& t, const Tensor& y) { return t.sin() * y; }, x, shared);
  };
  expect_batched(over_batched, normal({4, 5, 3}));
  expect_batched(over_batched, normal({5, 3, 4}), 2);
  // The same slices for all, an argument of one's own, and one that is closed over.
  expect_batched(
      [&](const Tensor& y) {
        return func::map([](const Tensor& t, const Tensor& own) { return t.sin() * own; }, xs, y);
      },
      normal({4, 3}));
  expect_batched([&](const Tensor& y) { return func::map([&](const Tensor& t) { return t.sin() * y; }, xs); },
                 normal({4, 3}));
  GraphModule g = make_graph(func::vmap(over_batched))(normal({4, 5, 3}));
  EXPECT_EQ(nodes_of(g, "torch.ops.higher_order.map_impl"), 1);
}

TEST(ScanBatches, CarriesXsAndClosures) {
  Tensor init = normal({3}), xs = normal({5, 3}), w = normal({3});
  expect_batched([&](const Tensor& x) { return scan_loss(init, x, w); }, normal({4, 5, 3}));
  expect_batched([&](const Tensor& x) { return scan_loss(init, x, w); }, normal({5, 4, 3}), 1);
  expect_batched([&](const Tensor& x) { return scan_loss(x, xs, w); }, normal({4, 3}));
  // Only what is closed over differs: the carry does so after the first step.
  expect_batched([&](const Tensor& x) { return scan_loss(init, xs, x); }, normal({4, 3}));
  GraphModule g =
      make_graph(func::vmap([&](const Tensor& x) { return scan_loss(init, xs, x); }))(normal({4, 3}));
  EXPECT_EQ(nodes_of(g, kScanTarget), 1);
}

TEST(ScanBatches, WhatIsTheSameForAllStaysSo) {
  Tensor xs = normal({5, 3});
  auto f = [&](const Tensor& w) {
    auto step = make_callable([w](const std::tuple<Tensor, Tensor>& carry, const Tensor& x) {
      auto [i, sum] = carry;
      return std::tuple(std::tuple(i + 1, sum + x * w), i * 2);
    });
    return func::scan(step, Value::tuple({zeros(SymIntSpan(), kInt64), zeros_like(w)}), xs);
  };
  auto sum_of = [&](const Tensor& w) { return f(w).elements()[0].elements()[1].to_tensor(); };
  expect_batched(sum_of, normal({4, 3}));
  GraphModule g = make_graph(func::vmap(sum_of))(normal({4, 3}));
  // The counter is carried once, not once for each example.
  std::string body = graph_module_in(g.find("scan_combine_graph_0"))->code();
  EXPECT_THAT(body, HasSubstr("torch.ops.aten.add.Tensor(arg0_1, 1)"));
  expect_batched([&](const Tensor& w) { return f(w).elements()[1].to_tensor() + 0 * w.sum(); },
                 normal({4, 3}));
}

TEST(WhileBatches, ExamplesThatHaveEndedKeepWhatTheyHave) {
  auto rounds = [](const Tensor& x) {
    auto more = make_callable([](const Tensor&, const Tensor& y) { return y.sum() < 20; });
    auto body = make_callable([](const Tensor& i, const Tensor& y) { return std::tuple(i + 1, y * 2); });
    Value end = func::while_loop(more, body, {zeros(SymIntSpan(), kInt64), x});
    return end.elements()[1].to_tensor() * 100 + end.elements()[0].to_tensor();
  };
  Tensor batch = from_data(std::vector<double>{1, 2, 0.1, 0.2, 30, 1, 7, 8}).reshape({4, 2});
  expect_batched(rounds, batch);
  expect_batched(rounds, batch.t().contiguous(), 1);
  GraphModule g = make_graph(func::vmap(rounds))(batch);
  EXPECT_EQ(nodes_of(g, kWhileTarget), 1);
  EXPECT_THAT(graph_module_in(g.find("while_loop_cond_graph_0"))->code(),
              HasSubstr("torch.ops.aten.any.default("));
  EXPECT_THAT(graph_module_in(g.find("while_loop_body_graph_0"))->code(),
              HasSubstr("torch.ops.aten.where.self("));
  Tensor other = from_data(std::vector<double>{50, 1, 1, 1, 1, 0, 1e-3, 0}).reshape({4, 2});
  EXPECT_TRUE(close(g(other), by_hand(rounds, other), 1e-9, 1e-9));
}

TEST(WhileBatches, OneConditionForAllNeedsNoMask) {
  auto f = [](const Tensor& x) {
    auto more = make_callable([](const Tensor& i, const Tensor&) { return i < 3; });
    auto body = make_callable([](const Tensor& i, const Tensor& y) { return std::tuple(i + 1, y.sin()); });
    return func::while_loop(more, body, {zeros(SymIntSpan(), kInt64), x}).elements()[1].to_tensor();
  };
  Tensor batch = normal({4, 2});
  expect_batched(f, batch);
  GraphModule g = make_graph(func::vmap(f))(batch);
  EXPECT_THAT(graph_module_in(g.find("while_loop_body_graph_0"))->code(), Not(HasSubstr("where")));
}

TEST(Batches, OfGradients) {
  Tensor init = normal({3}), w = normal({3});
  expect_batched(
      [&](const Tensor& x) {
        return func::grad([&](const Tensor& own) { return scan_loss(init, own, w); })(x);
      },
      normal({4, 5, 3}));
  Tensor scale = from_data(std::vector<double>{2, 3});
  auto gradient = [&](const Tensor& x) {
    return func::grad([&](const Tensor& own) { return while_loss(own, scale); })(x);
  };
  Tensor starts = from_data(std::vector<double>{1, 2, 0.1, 0.2, 100, 1, 7, 8}).reshape({4, 2});
  Tensor expected = by_hand(gradient, starts);
  EXPECT_TRUE(close(func::vmap(gradient)(starts), expected, 1e-9, 1e-9));
  EXPECT_TRUE(close(make_graph(func::vmap(gradient))(starts)(starts), expected, 1e-9, 1e-9));
  // And gradients of batches.
  auto total = [&](const Tensor& all) {
    return func::vmap([&](const Tensor& x) { return while_loss(x, scale); })(all).sum();
  };
  EXPECT_TRUE(close(func::grad(total)(starts), expected, 1e-9, 1e-9));
}

TEST(ControlFlow, GradientsOfWhatBranchesAndBodiesCloseOver) {
  auto branches = [](const Tensor& x, const Tensor& w) {
    return func::cond(
               x.sum() > 0, [w](const Tensor& t) { return t * w.exp(); },
               [](const Tensor& t) { return t.neg(); }, x)
        .sum();
  };
  auto bodies = [](const Tensor& x, const Tensor& w) {
    return func::map([w](const Tensor& row) { return row.sin() * w.exp(); }, x).sum();
  };
  Tensor x = normal({4, 3}).abs(), w = normal({3});
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic}) {
    GraphModule of_cond = make_graph(func::grad(branches, {0, 1}), {.mode = mode})(x, w);
    Tensor factor = w.exp().expand({4, 3});
    expect_close(tensors_in(of_cond.call({x, w})), {factor, (x * w.exp()).sum({0})});
    expect_close(tensors_in(of_cond.call({-x, w})), {-ones({4, 3}, kFloat64), zeros({3}, kFloat64)});
    GraphModule of_map = make_graph(func::grad(bodies, {0, 1}), {.mode = mode})(x, w);
    expect_close(tensors_in(of_map.call({x, w})), {x.cos() * w.exp(), (x.sin() * w.exp()).sum({0})});
  }
  // Levels around the operator, in either order.
  Tensor flag = ones({1}) > 0;
  auto one = [&](const Tensor& t) {
    return func::cond(
        flag, [w](const Tensor& u) { return u * w.exp(); }, [](const Tensor& u) { return u.neg(); }, t);
  };
  auto total = [&](const Tensor& all) { return func::vmap(one)(all).sum(); };
  Tensor factor = w.exp().expand({4, 3}).contiguous();
  EXPECT_TRUE(close(func::grad(total)(x), factor, 1e-9, 1e-9));
  EXPECT_TRUE(close(make_graph(func::grad(total))(x)(x), factor, 1e-9, 1e-9));
}

TEST(ControlFlow, GradientsAreFunctionalised) {
  auto f = [](const Tensor& x) {
    auto step = make_callable([](const Tensor& carry, const Tensor& own) {
      Tensor next = carry * own;
      next.add_(1);
      return std::tuple(next, next.sin());
    });
    auto [last, ys] = from_value<std::tuple<Tensor, Tensor>>(func::scan(step, x.select(0, 0), x));
    return last.sum() + ys.sum();
  };
  Tensor x = normal({3, 2});
  GraphModule g = make_graph(func::functionalize(func::grad(f)))(x);
  EXPECT_TRUE(close(g(x), func::grad(f)(x), 1e-9, 1e-9));
  for (const char* body : {"scan_combine_graph_0", "scan_combine_graph_1"})
    EXPECT_THAT(graph_module_in(g.find(body))->code(), Not(HasSubstr("add_.")));
  // The other way round.
  auto functional = func::functionalize(f);
  GraphModule other = make_graph(func::grad(functional))(x);
  EXPECT_TRUE(close(other(x), func::grad(f)(x), 1e-9, 1e-9));
  EXPECT_THAT(graph_module_in(other.find("scan_combine_graph_0"))->code(), Not(HasSubstr("add_.")));
  EXPECT_TRUE(close(func::vmap(func::grad(functional))(stack({x, x * 2})).select(0, 1), func::grad(f)(x * 2),
                    1e-9, 1e-9));
}

TEST(ControlFlowTransforms, GradientsOfFunctionsThatWriteAreRefusedByName) {
  auto f = [](const Tensor& x) {
    Tensor y = x * 2;
    auto writes = [](const Tensor& t) {
      t.mul_(3);
      return t * 1;
    };
    Tensor z = func::cond(x.sum() > 0, writes, [](const Tensor& t) { return t * 2; }, y);
    return z.sum();
  };
  EXPECT_ERROR(func::grad(f)(ones({3})), "one that writes to its operand has no gradient");
}

}  // namespace
}  // namespace weft
