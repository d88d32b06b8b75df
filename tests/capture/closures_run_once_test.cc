// The functions of control flow run once, whatever is around them, and their graphs do what they do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/function.h"
#include "weft/capture/make_graph.h"
#include "weft/capture/trace.h"
#include "weft/core/from_data.h"
#include "weft/dispatch/recorder.h"
#include "weft/func/control_flow.h"
#include "weft/func/functionalize.h"
#include "weft/graph/text.h"
#include "weft/ops/autocast.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using testing::expect_equal;
using ::testing::HasSubstr;

constexpr CaptureMode kEveryMode[] = {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic};

// --- counting --------------------------------------------------------------------------------------------

// How often each function of a nest ran, by depth.
using Counts = std::vector<int>;

Tensor nested_cond(const Tensor& x, int depth, Counts& counts) {
  if (depth == 0) return x.sin();
  auto deeper = [&, depth](const Tensor& t) {
    ++counts[static_cast<size_t>(depth - 1)];
    return nested_cond(t * 2, depth - 1, counts);
  };
  return func::cond(x.sum() > 0, deeper, [](const Tensor& t) { return t.cos(); }, x);
}
Tensor nested_map(const Tensor& x, int depth, Counts& counts) {
  if (depth == 0) return x.sin();
  auto row = [&, depth](const Tensor& t) {
    ++counts[static_cast<size_t>(depth - 1)];
    return nested_map(t.unsqueeze(0) * 2, depth - 1, counts).squeeze(0);
  };
  return func::map(row, x);
}
Tensor nested_scan(const Tensor& x, int depth, Counts& counts) {
  if (depth == 0) return x.sin();
  auto step = make_callable([&, depth](const Tensor& carry, const Tensor& t) {
    ++counts[static_cast<size_t>(depth - 1)];
    Tensor next = carry + nested_scan(t.unsqueeze(0), depth - 1, counts).squeeze(0);
    return std::tuple(next, next * 2);
  });
  return func::scan(step, Value(zeros_like(x.select(0, 0))), Value(x)).elements()[1].to_tensor();
}
Tensor nested_while(const Tensor& x, int depth, Counts& counts) {
  if (depth == 0) return x.sin();
  auto more = make_callable([](const Tensor& i, const Tensor&) { return i < 3; });
  auto round = make_callable([&, depth](const Tensor& i, const Tensor& t) {
    ++counts[static_cast<size_t>(depth - 1)];
    return std::tuple(i + 1, nested_while(t + 1, depth - 1, counts));
  });
  return func::while_loop(more, round, {zeros({}, kInt64), x}).elements()[1].to_tensor();
}

using Nest = Tensor (*)(const Tensor&, int, Counts&);
constexpr Nest kNests[] = {nested_cond, nested_map, nested_scan, nested_while};

TEST(ClosuresRunOnce, InEveryModeAndDepth) {
  for (Nest nest : kNests)
    for (CaptureMode mode : kEveryMode)
      for (int depth = 1; depth <= 4; ++depth) {
        Counts counts(static_cast<size_t>(depth));
        auto f = [&](const Tensor& x) { return nest(x, depth, counts); };
        GraphModule g = make_graph(f, {.mode = mode})(ones({2, 3}));
        EXPECT_EQ(counts, Counts(static_cast<size_t>(depth), 1)) << "depth " << depth;
        for (const Tensor& x : {randn({2, 3}), -ones({2, 3})}) expect_equal(g(x), f(x));
      }
}

TEST(ClosuresRunOnce, UnderGradAndVmap) {
  for (Nest nest : kNests)
    for (int depth = 1; depth <= 4; ++depth) {
      Counts counts(static_cast<size_t>(depth));
      auto loss = [&](const Tensor& x) { return nest(x, depth, counts).sum(); };
      const Tensor x = ones({2, 3}, kFloat64);
      func::grad(loss)(x);
      EXPECT_EQ(counts, Counts(static_cast<size_t>(depth), 1)) << "grad, depth " << depth;
      std::fill(counts.begin(), counts.end(), 0);
      GraphModule g = make_graph(func::grad(loss))(x);
      EXPECT_EQ(counts, Counts(static_cast<size_t>(depth), 1)) << "captured grad, depth " << depth;
      const Tensor other = randn({2, 3}, kFloat64).abs();
      EXPECT_TRUE(testing::close(g(other), func::grad(loss)(other), 1e-9, 1e-9));
      std::fill(counts.begin(), counts.end(), 0);
      func::vmap(loss)(ones({4, 2, 3}, kFloat64));
      EXPECT_EQ(counts, Counts(static_cast<size_t>(depth), 1)) << "vmap, depth " << depth;
      std::fill(counts.begin(), counts.end(), 0);
      func::vmap(func::grad(loss))(ones({4, 2, 3}, kFloat64));
      EXPECT_EQ(counts, Counts(static_cast<size_t>(depth), 1)) << "vmap of grad, depth " << depth;
      std::fill(counts.begin(), counts.end(), 0);
      make_graph(func::functionalize(loss))(x);
      EXPECT_EQ(counts, Counts(static_cast<size_t>(depth), 1)) << "functionalize, depth " << depth;
    }
}

TEST(ClosuresRunOnce, InATraceAsCppControlFlow) {
  Counts counts(2);
  auto f = [&](const Tensor& x) { return nested_cond(x, 2, counts); };
  trace(f, ones({2, 3}), {.check_trace = false});
  EXPECT_EQ(counts, Counts(2, 1));
}

// --- what a function does --------------------------------------------------------------------------------

Tensor branch(const Tensor& x, std::function<Tensor(const Tensor&)> f) {
  return func::cond(x.sum() > 0, f, [](const Tensor& t) { return t * 0; }, x);
}

void expect_captured(const std::function<Tensor(const Tensor&)>& f,
                     std::initializer_list<CaptureMode> modes) {
  for (CaptureMode mode : modes) {
    GraphModule g = make_graph(f, {.mode = mode})(ones({3, 2}));
    for (const Tensor& x : {ones({3, 2}), randn({3, 2}).abs(), -ones({3, 2})}) expect_equal(g(x), f(x));
  }
}

TEST(CapturedFunctions, KeepSwitchesOfTheGradMode) {
  const Tensor x = ones({3}, kFloat64);
  auto f = [](const Tensor& t) {
    return branch(t,
                  [](const Tensor& u) {
                    Tensor fixed;
                    {
                      NoGrad off;
                      fixed = u * 3;
                    }
                    return u * fixed;
                  })
        .sum();
  };
  // d(u * 3u)/du = 3u where the factor is a constant.
  expect_equal(func::grad(f)(x), x * 3);
  expect_equal(make_graph(func::grad(f))(x)(x * 2), x * 6);
}

TEST(CapturedFunctions, KeepCastsOfAutocastRegions) {
  auto f = [](const Tensor& x) {
    return branch(x, [](const Tensor& t) {
      Autocast cast;
      return t.mm(t.t()).mm(t).to(kFloat32);
    });
  };
  const Tensor x = randn({3, 2}).abs();
  for (CaptureMode mode : kEveryMode) expect_equal(make_graph(f, {.mode = mode})(ones({3, 2}))(x), f(x));
  expect_equal(func::vmap(f)(x.unsqueeze(0)).squeeze(0), f(x));
}

TEST(CapturedFunctions, BeginEachRunWithTheirLiterals) {
  auto f = [](const Tensor& x) {
    return branch(x, [](const Tensor& t) {
      Tensor counter = from_data<float>({1, 2});
      counter.add_(t.sum());
      return t * counter;
    });
  };
  expect_captured(f, {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic});
}

struct Tripled : autograd::Function<Tripled> {
  static Tensor forward(autograd::FunctionContext&, const Tensor& x) { return x * 2; }
  static std::vector<Tensor> backward(autograd::FunctionContext&, const std::vector<Tensor>& grads) {
    return {grads[0] * 30};
  }
};

TEST(CapturedFunctions, KeepTheDerivativesOfCustomFunctions) {
  auto loss = [](const Tensor& x) {
    return branch(x, [](const Tensor& t) { return Tripled::apply(t); }).sum();
  };
  const Tensor x = ones({3}, kFloat64);
  expect_equal(func::grad(loss)(x), full({3}, 30, kFloat64));
  expect_equal(make_graph(func::grad(loss))(x)(x), full({3}, 30, kFloat64));
}

TEST(CapturedFunctions, MayReadDataInBranchesThatAreNotTaken) {
  // Row 7 exists only where the branch is taken.
  auto f = [](const Tensor& x) {
    return func::cond(
        x.sum() > 100,
        [](const Tensor& t) { return t.index_select(0, t.sum().to(kInt64).reshape({1})).sum(); },
        [](const Tensor& t) { return t.sum(); }, x);
  };
  GraphModule g = make_graph(f)(full({4}, 7.0));
  expect_equal(g(ones({4})), f(ones({4})));
}

// --- numbers ---------------------------------------------------------------------------------------------

TEST(CapturedFunctions, NumbersThatAreCarriedAreSymbols) {
  auto f = [](const Tensor& x) {
    auto more = make_callable([](const SymInt& i, const Tensor& t) { return i < t.size(0); });
    auto round = make_callable([](const SymInt& i, const Tensor& t) { return std::tuple(i + 2, t + i); });
    ValueList end = func::while_loop(more, round, {Value(1), x}).elements();
    return end[1].to_tensor() * Scalar(end[0].to_sym_int());
  };
  GraphModule g = make_graph(f, {.mode = CaptureMode::kSymbolic})(ones({4}));
  for (int64_t size : {2, 4, 7}) expect_equal(g(ones({size})), f(ones({size})));
  EXPECT_THAT(graph_module_in(g.find("while_loop_body_graph_0"))->code(), HasSubstr("arg0_1 + 2"));
  // A number of the run is a symbol also where sizes are numbers.
  GraphModule fixed = make_graph(f, {.mode = CaptureMode::kFake})(ones({4}));
  expect_equal(fixed(full({4}, 3.)), f(full({4}, 3.)));
  EXPECT_ERROR(make_graph(f)(ones({4})), "while_loop gives a number that may depend on the data of this run");
}

TEST(CapturedFunctions, ComplexNumbersThatAreCarriedAreRefused) {
  auto f = [](const Tensor& x) {
    auto more = [](Args args) { return Value(args[1].to_tensor().sum() < 9); };
    auto round = [](Args args) { return Value::tuple({args[0], Value(args[1].to_tensor() + 1)}); };
    return func::while_loop(more, round, {Value(Complex<double>(1, 2)), x}).elements()[1].to_tensor();
  };
  EXPECT_ERROR(make_graph(f, {.mode = CaptureMode::kSymbolic})(ones({4})),
               "a complex value that depends on data is not supported");
}

TEST(CapturedFunctions, NumbersThatBranchesChooseAreSymbols) {
  auto f = [](const Tensor& x) {
    auto two = [](Args) { return Value(2); };
    auto three = [](Args) { return Value(3); };
    return x * Scalar(func::cond(x.sum() > 0, two, three, {}).to_sym_int());
  };
  GraphModule g = make_graph(f, {.mode = CaptureMode::kSymbolic})(ones({4}));
  expect_equal(g(ones({4})), ones({4}) * 2);
  expect_equal(g(-ones({4})), ones({4}) * -3);
}

TEST(CapturedFunctions, SymbolsThatTheyCloseOverAreOperands) {
  auto f = [](const Tensor& x, const Tensor& y) {
    const SymInt rows = y.size(0);
    auto scaled = [rows](const Tensor& t) { return t * Scalar(rows) + Scalar(rows * 2); };
    return func::cond(x.sum() > 0, scaled, [](const Tensor& t) { return t.clone(); }, x);
  };
  GraphModule g = make_graph(f, {.mode = CaptureMode::kSymbolic})(ones({4}), ones({5}));
  EXPECT_THAT(g.code(), HasSubstr("true_graph_0, false_graph_0, [arg0_1, sym_size_int"));
  expect_equal(g(ones({3}), ones({9})), f(ones({3}), ones({9})));
}

// --- what is left behind ---------------------------------------------------------------------------------

TEST(CapturedFunctions, LeaveConditionsOnInputsAndNoSymbols) {
  Ref<ShapeEnv> env = ShapeEnv::create();
  auto f = [](const Tensor& x) {
    return branch(x, [](const Tensor& t) {
      Tensor result = t.size(0) > 2 ? t * 2 : t * 3;
      return func::cond(
          t.sum() > 5, [](const Tensor& u) { return u * Scalar(u.sum().item()); },
          [](const Tensor& u) { return u * 2; }, result);
    });
  };
  GraphModule g = make_graph(f, {.mode = CaptureMode::kSymbolic, .shape_env = env})(ones({4, 3}));
  bool has_condition = false;
  for (const sym::Guard& guard : env->guards()) has_condition |= guard.condition->to_string() == "s0 > 2";
  EXPECT_TRUE(has_condition);
  // One for the number that the innermost branch reads, which is a node of its graph.
  int unbacked = 0;
  for (const sym::Symbol& symbol : env->symbols()) unbacked += symbol.backing == sym::Backing::kUnbacked;
  EXPECT_EQ(unbacked, 1);
  expect_equal(g(ones({5, 3})), f(ones({5, 3})));
}

TEST(CapturedFunctions, AFunctionThatThrowsLeavesNothing) {
  Ref<ShapeEnv> env = ShapeEnv::create();
  auto f = [](const Tensor& x) {
    return branch(x, [](const Tensor& t) -> Tensor {
      t.sum().item();
      fail("in the middle");
    });
  };
  EXPECT_ERROR(make_graph(f, {.mode = CaptureMode::kSymbolic, .shape_env = env})(ones({4, 3})),
               "in the middle");
  EXPECT_EQ(env->symbols().size(), 2u);
  EXPECT_EQ(FakeMode::current(), nullptr);
  EXPECT_EQ(layer_state().level_depth, 0);
  EXPECT_EQ(Recorder::current(Recorder::Position::kUpper), nullptr);
  expect_equal(ones({2}) + 1, full({2}, 2.0));
}

// --- results ---------------------------------------------------------------------------------------------

TEST(CapturedFunctions, AnOperandThatComesBackStaysItself) {
  auto f = [](const Tensor& x) {
    Tensor same =
        func::cond(x.sum() > 0, [](const Tensor& t) { return t; }, [](const Tensor& t) { return t * 2; }, x);
    return x * 10 + same;
  };
  for (CaptureMode mode : kEveryMode) {
    GraphModule g = make_graph(f, {.mode = mode})(ones({3}));
    EXPECT_THAT(g.code(), HasSubstr("torch.ops.aten.mul.Tensor(arg0_1, 10)"));
    expect_equal(g(-ones({3})), f(-ones({3})));
  }
  auto loop = [](const Tensor& x) {
    auto more = make_callable([](const Tensor& t) { return t.sum() < 0; });
    auto round = make_callable([](const Tensor& t) { return std::tuple(t + 1); });
    return x * 10 + func::while_loop(more, round, {x}).elements()[0].to_tensor();
  };
  for (CaptureMode mode : kEveryMode) {
    GraphModule g = make_graph(loop, {.mode = mode})(ones({3}));
    expect_equal(g(full({3}, -1.5)), loop(full({3}, -1.5)));
  }
}

// --- inputs and results that are one tensor --------------------------------------------------------------

Tensor loop_from_one_tensor(const Tensor& x) {
  auto more = make_callable([](const Tensor& i, const Tensor&, const Tensor&) { return i < 2; });
  auto round = make_callable(
      [x](const Tensor& i, const Tensor& a, const Tensor& b) { return std::tuple(i + 1, a + x, b * 2 - a); });
  const Value last = func::while_loop(more, round, {zeros({}, kInt64), x, x});
  return last.elements()[1].to_tensor() * 10 + last.elements()[2].to_tensor();
}
Tensor scan_from_what_it_closes_over(const Tensor& x) {
  const Tensor first = x.select(0, 0);
  auto step = make_callable([first](const Tensor& carry, const Tensor& t) {
    Tensor next = carry * first + t;
    return std::tuple(next, next - first);
  });
  return func::scan(step, Value(first), Value(x)).elements()[1].to_tensor();
}
Tensor cond_on_one_tensor(const Tensor& x) {
  auto yes = [x](const Tensor& a, const Tensor& b, const Tensor& view) { return a * 2 - b * x + view; };
  return func::cond(
      x.sum() > 0, yes, [](const Tensor& a, const Tensor&, const Tensor& view) { return a / view; }, x, x,
      x.view(x.sizes()));
}

TEST(CapturedFunctions, KeepInputsApartThatAreOneTensor) {
  for (auto f : {loop_from_one_tensor, scan_from_what_it_closes_over, cond_on_one_tensor}) {
    expect_captured(f, {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic});
    const Tensor x = testing::ramp({3, 2}, 0.5, 1.5), own = x.clone().set_requires_grad();
    auto loss = [&](const Tensor& t) { return f(t).sin().sum(); };
    loss(own).backward();
    EXPECT_TRUE(testing::close(func::grad(loss)(x), own.grad()));
    // The inputs are a tensor and its views, whose history is made while they are converted.
    EXPECT_TRUE(testing::close(make_graph(func::grad(loss))(ones({3, 2}, kFloat64))(x), own.grad()));
    EXPECT_TRUE(testing::close(func::vmap(f)(stack({x, x * 2})).select(0, 1), f(x * 2)));
  }
}

TEST(CapturedFunctions, KeepResultsApartThatAreOneTensorInABranch) {
  using Pair = std::tuple<Tensor, Tensor>;
  auto f = [](const Tensor& x) {
    auto [a, b] = func::cond(
        x.sum() > 0,
        [](const Tensor& t) {
          Tensor both = t * 2;
          return Pair(both, both);
        },
        [](const Tensor& t) { return Pair(t + 1, t - 1); }, x);
    return a * 3 + b;
  };
  expect_captured(f, {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic});
}

TEST(CapturedFunctions, HaveLoopsInsideOfLoopsUnderVmap) {
  const Tensor weight = full({}, 0.5, kFloat64).set_requires_grad();
  auto f = [&](const Tensor& x) {
    auto step = make_callable([&](const Tensor& carry, const Tensor& t) {
      auto more = make_callable([](const Tensor& i, const Tensor&) { return i < 3; });
      auto round = make_callable(
          [&](const Tensor& i, const Tensor& u) { return std::tuple(i + 1, (u * weight).sin()); });
      Tensor next = carry + func::while_loop(more, round, {zeros({}, kInt64), t}).elements()[1].to_tensor();
      return std::tuple(next, next * 2);
    });
    return func::scan(step, Value(zeros({2}, kFloat64)), Value(x)).elements()[1].to_tensor();
  };
  const Tensor x = testing::ramp({4, 3, 2});
  const Tensor batched = func::vmap(f)(x);
  for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(testing::close(batched.select(0, i), f(x.select(0, i))));
}

// --- transforms inside and around ------------------------------------------------------------------------

TEST(CapturedFunctions, MayDifferentiateThemselves) {
  // Backward uses values that it kept in the transform, which has ended by then.
  auto cubes = [](const Tensor& u) { return (u * u * u).sum(); };
  auto f = [&](const Tensor& x) {
    return branch(x, [&](const Tensor& t) { return func::grad(cubes)(t * 2); });
  };
  expect_captured(f, {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic});
  const Tensor x = testing::ramp({3}, 0.5, 1.5);
  expect_equal(func::functionalize(f)(x), f(x));
  expect_equal(func::vmap(f)(stack({x, -x})), stack({f(x), f(-x)}));
  // Of what they close over, too, which is a tensor of the transform around.
  auto closes_over = [&](const Tensor& t) {
    return branch(t, [&, t](const Tensor&) { return func::grad(cubes)(t); });
  };
  EXPECT_TRUE(testing::close(func::grad([&](const Tensor& t) { return closes_over(t).sum(); })(x), x * 6));
  expect_equal(func::vmap(closes_over)(stack({x, -x})), stack({closes_over(x), closes_over(-x)}));
  // d(3 (2x)^2)/dx = 24 x
  EXPECT_TRUE(testing::close(func::grad([&](const Tensor& t) { return f(t).sum(); })(x), x * 24));
}

TEST(CapturedFunctions, MayNotWriteToInputsWhereExamplesGoDifferentWays) {
  const Tensor x = stack({ones({2}), -ones({2})});
  auto one_way = [](const Tensor& t) {
    Tensor own = t.clone();
    branch(own, [](const Tensor& u) { return u.add_(1) * 2; });
    return own;
  };
  EXPECT_ERROR(func::vmap(one_way)(x), "examples go different ways, and a function writes to its input");
  auto rounds = [](const Tensor& t) {
    auto more = make_callable([](const Tensor& u) { return u.sum() < 3; });
    auto round = make_callable([](const Tensor& u) { return std::tuple(u.add_(1)); });
    return func::while_loop(more, round, {t.clone()}).elements()[0].to_tensor();
  };
  EXPECT_ERROR(func::vmap(rounds)(x), "examples go different ways, and a function writes to its input");
}

TEST(CapturedFunctions, MayGiveNoneUnderVmap) {
  auto twice = [](Args args) { return Value::tuple({args[0].to_tensor() * 2, Value()}); };
  auto thrice = [](Args args) { return Value::tuple({args[0].to_tensor() * 3, Value()}); };
  const Tensor x = stack({ones({2}), -ones({2})});
  auto own_ways = [&](const Tensor& t) {
    const Value results = func::cond(t.sum() > 0, twice, thrice, {t});
    EXPECT_TRUE(results.elements()[1].is_none());
    return results.elements()[0].to_tensor();
  };
  auto one_way = [&](const Tensor& t) {
    const Value results = func::cond(true, twice, thrice, {t});
    EXPECT_TRUE(results.elements()[1].is_none());
    return results.elements()[0].to_tensor();
  };
  expect_equal(func::vmap(own_ways)(x), stack({ones({2}) * 2, -ones({2}) * 3}));
  expect_equal(func::vmap(one_way)(x), x * 2);
}

}  // namespace
}  // namespace weft
