// What a captured program writes to, also where no schema says so, and what it only holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/capture/make_graph.h"
#include "weft/capture/optimized.h"
#include "weft/capture/trace.h"
#include "weft/func/func.h"
#include "weft/func/functionalize.h"
#include "weft/nn/module.h"
#include "weft/passes/verify.h"

namespace weft {
namespace {

using testing::close;
using testing::expect_equal;
using ::testing::HasSubstr;

constexpr CaptureMode kModes[] = {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic};

// --- values of the program -------------------------------------------------------------------------------

TEST(Literals, AreKeptAndCopiedByEachRun) {
  auto f = [](const Tensor& x) {
    Tensor c = from_data<float>({1, 2, 3});
    c.add_(1);
    return x + c;
  };
  for (CaptureMode mode : kModes) {
    GraphModule g = make_graph(f, {.mode = mode})(ones({3}));
    EXPECT_EQ(g.code(), R"(


def forward(self, arg0_1):
    _tensor_constant0 = self._tensor_constant0
    lift_fresh_copy = torch.ops.aten.lift_fresh_copy.default(_tensor_constant0);  _tensor_constant0 = None
    add_ = torch.ops.aten.add_.Tensor(lift_fresh_copy, 1);  lift_fresh_copy = None
    add = torch.ops.aten.add.Tensor(arg0_1, add_);  arg0_1 = add_ = None
    return add
    )");
    for (int call = 0; call < 2; ++call) expect_equal(g(zeros({3})), from_data<float>({2, 3, 4}));
  }
  GraphModule functional = make_graph(func::functionalize(f))(ones({3}));
  EXPECT_EQ(functional.code().find("add_."), std::string::npos) << functional.code();
}

TEST(Literals, OutsideOfTheProgramStayShared) {
  Tensor counter = from_data<float>({0});
  GraphModule g = make_graph([&](const Tensor& x) { return x + counter.add_(1); })(zeros({1}));
  const float before = counter.data<float>()[0];
  expect_equal(g(zeros({1})), full({1}, before + 1));
  expect_equal(counter, full({1}, before + 1));
}

// --- writes that no schema names -------------------------------------------------------------------------

Tensor unused_norm(const Tensor& x, const Tensor& mean, const Tensor& variance) {
  batch_norm(x, {}, {}, mean, variance, true, 0.5, 1e-5, false);
  return x * 1;
}

TEST(HiddenWrites, AreNoDeadCode) {
  const Tensor x = from_data<float>({0, 2, 4, 6}, {2, 2});
  for (bool pre_dispatch : {false, true}) {
    GraphModule g = make_graph(unused_norm, {.pre_dispatch = pre_dispatch})(x, zeros({2}), ones({2}));
    Tensor mean = zeros({2}), variance = ones({2});
    g(x, mean, variance);
    expect_equal(mean, from_data<float>({1, 2}));
    EXPECT_ERROR(verify(g.graph(), Stage::kFunctional), "writes in place, which a functional graph must not");
  }
  // Without statistics, or when it does not train, there is nothing to write.
  auto pure = [](const Tensor& t) {
    batch_norm(t, {}, {}, {}, {}, true, 0.5, 1e-5, false);
    return t * 1;
  };
  EXPECT_EQ(make_graph(pure)(x).code().find("batch_norm"), std::string::npos);
}

TEST(HiddenWrites, AreNotMerged) {
  auto f = [](const Tensor& x, const Tensor& m, const Tensor& v) {
    return batch_norm(x, {}, {}, m, v, true, 0.5, 1e-5, false) +
           batch_norm(x, {}, {}, m, v, true, 0.5, 1e-5, false);
  };
  const Tensor x = from_data<float>({0, 2, 4, 6}, {2, 2});
  auto traced = trace(f, Value::tuple({x, zeros({2}), ones({2})}), {.check_trace = false});
  Tensor mean = zeros({2}), variance = ones({2}), expected = zeros({2}), other = ones({2});
  f(x, expected, other);
  OptimizedExecution optimized(true);
  for (int call = 0; call < 3; ++call) {
    mean.zero_();
    variance.fill_(1);
    traced(x, mean, variance);
    expect_equal(mean, expected);
    expect_equal(variance, other);
  }
}

// --- sizes as numbers ------------------------------------------------------------------------------------

TEST(SymbolicNumbers, AddedToTensorsStaySymbols) {
  auto f = [](const Tensor& x) {
    Tensor y = (x + x.size(0)) - x.size(1);
    return y.view({x.size(0) * 2, -1});
  };
  GraphModule g = make_graph(f, {.mode = CaptureMode::kSymbolic})(randn({4, 6}));
  const Tensor x = randn({6, 8});
  expect_equal(g(x), f(x));
  auto unbacked = [](const Tensor& x) {
    Tensor n = x.nonzero();
    return n + n.size(0);
  };
  GraphModule h = make_graph(unbacked, {.mode = CaptureMode::kSymbolic})(from_data<float>({1, 0, 2}));
  expect_equal(h(from_data<float>({1, 3, 2})), unbacked(from_data<float>({1, 3, 2})));
}

// --- memory that is shared -------------------------------------------------------------------------------

TEST(SharedMemory, OutlivesAViewInItsOwnPlaceUnderVmap) {
  auto f = [](const Tensor& a) {
    Tensor x = a.clone(), y = x.narrow(0, 1, 2);
    x.unsqueeze_(0);
    y.copy_(y.cos());
    return x;
  };
  const Tensor x = arange(6).to(kFloat32).view({2, 3});
  const Tensor expected = func::vmap(f)(x);
  EXPECT_FALSE(close(expected, x.unsqueeze(1), 0, 0));
  expect_equal(func::functionalize(func::vmap(f).fn())(x), expected);
}

TEST(SharedMemory, OfExpandedCopiesIsWrittenOnce) {
  auto f = [](const Tensor& a) {
    Tensor x = a.clone();
    x.expand({2, 3}).narrow(0, 0, 1).add_(1);
    return x;
  };
  auto g = [](const Tensor& a) {
    Tensor x = a.clone();
    x.view({3, 1}).expand({3, 4}).select(1, 2).mul_(-2);
    x.expand({5, 2, 3}).select(0, 1).select(0, 0).narrow(0, 1, 1).fill_(7);
    return x;
  };
  const Tensor x = from_data<float>({-1, 0, 5});
  expect_equal(func::functionalize(f)(x), f(x));
  expect_equal(func::functionalize(g)(x), g(x));
  for (CaptureMode mode : kModes) {
    GraphModule graph = make_graph(func::functionalize(g), {.mode = mode})(x);
    expect_equal(graph(x), g(x));
  }
}

}  // namespace
}  // namespace weft
