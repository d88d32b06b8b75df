#include "weft/autograd/autograd.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/expect_error.h"
#include "support/sanitizers.h"
#include "support/tensors.h"
#include "weft/autograd/anomaly.h"
#include "weft/autograd/gradcheck.h"
#include "weft/base/allocator.h"

namespace weft {
namespace {

using testing::close;
using testing::ramp;
using testing::values;
using testing::vec;

TEST(Backward, AddsUpInTheLeaf) {
  Tensor x = vec({1, 2, 3}).set_requires_grad();
  (x * x).sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2, 4, 6}));
  (x * 3).sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{5, 7, 9}));
}

TEST(Backward, SumsOverBroadcastDims) {
  Tensor x = ramp({3, 1}).set_requires_grad(), y = ramp({4}).set_requires_grad();
  (x * y).sum().backward();
  EXPECT_TRUE(close(x.grad(), y.detach().sum().expand({3, 1})));
  EXPECT_TRUE(close(y.grad(), x.detach().sum().expand({4})));
}

// A gradient that is still to be summed over broadcast dims meets one that is not.
TEST(Backward, MixedUsesOfALeafAddUpRight) {
  Tensor x = vec({1, 2, 3}).set_requires_grad();
  (x.unsqueeze(1) * x + x).sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{15, 15, 15}));
}

TEST(Backward, NeedsAScalarOrAGradient) {
  Tensor x = vec({1, 2}).set_requires_grad();
  EXPECT_ERROR((x * 2).backward(), "grad can be implicitly created only for scalar outputs");
  EXPECT_ERROR((x * 2).backward(vec({1, 2, 3})), "Mismatch in shape");
  EXPECT_ERROR(vec({1}).backward(), "does not require grad");
}

TEST(Backward, TwiceNeedsRetainGraph) {
  Tensor x = vec({2}).set_requires_grad();
  Tensor y = (x * x).sum();
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{8}));
  EXPECT_ERROR(y.backward(), "Trying to backward through the graph a second time");
}

TEST(Grad, LeavesGradAlone) {
  Tensor x = vec({3}).set_requires_grad(), unused = vec({1}).set_requires_grad();
  Tensor y = (x * x * x).sum();
  std::vector<Tensor> g = autograd::grad({y}, {x}, {}, {.create_graph = true});
  EXPECT_EQ(values(g[0]), (std::vector<double>{27}));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_EQ(values(autograd::grad({g[0].sum()}, {x})[0]), (std::vector<double>{18}));
  EXPECT_ERROR(autograd::grad({(x * 2).sum()}, {unused}), "appears to not have been used in the graph");
  EXPECT_FALSE(autograd::grad({(x * 2).sum()}, {unused}, {}, {.allow_unused = true})[0].defined());
  EXPECT_EQ(values(autograd::grad({(x * 2).sum()}, {unused}, {}, {.materialize_grads = true})[0]),
            (std::vector<double>{0}));
}

TEST(Leaf, RefusesInPlaceWrites) {
  Tensor x = vec({1, 2}).set_requires_grad();
  EXPECT_ERROR(x.add_(1), "a leaf Variable that requires grad is being used in an in-place operation.");
  EXPECT_ERROR(x.view({2, 1}).add_(1),
               "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  NoGrad no_grad;
  x.add_(1);
  EXPECT_EQ(values(x), (std::vector<double>{2, 3}));
}

TEST(Saved, AWriteToASavedTensorIsFound) {
  Tensor x = vec({1, 2}).set_requires_grad();
  Tensor y = x * 1, z = y * y;
  y.add_(1);
  EXPECT_ERROR(z.sum().backward(), "modified by an inplace operation");
  Tensor w = exp(x);
  w.mul_(2);
  EXPECT_ERROR(w.sum().backward(), "is at version 1; expected version 0 instead");
}

// A factor is kept for the gradient of the other alone: what a frozen weight is multiplied with can go.
TEST(Saved, OnlyWhatTheWantedGradientsRead) {
  Tensor matrix = ramp({3, 3}), batch = ramp({1, 3, 3});
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor&, const Tensor&)> f;
    Tensor left, right;
    bool keeps_right_for_itself = false;  // as a divisor does
  };
  const Case cases[] = {{"mul", [](auto& a, auto& b) { return a * b; }, matrix, matrix},
                        {"div", [](auto& a, auto& b) { return a / b; }, matrix, matrix, true},
                        {"mm", [](auto& a, auto& b) { return mm(a, b); }, matrix, matrix},
                        {"addmm", [&](auto& a, auto& b) { return addmm(matrix, a, b); }, matrix, matrix},
                        {"bmm", [](auto& a, auto& b) { return bmm(a, b); }, batch, batch},
                        {"baddbmm", [&](auto& a, auto& b) { return baddbmm(batch, a, b); }, batch, batch},
                        {"addmv", [&](auto& a, auto& b) { return addmv(matrix.select(0, 0), a, b); }, matrix,
                         matrix.select(0, 0)},
                        {"linear", [](auto& a, auto& b) { return linear(a, b); }, matrix, matrix}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    // Both gradients, to compare with.
    Tensor both[] = {c.left.clone().set_requires_grad(), c.right.clone().set_requires_grad()};
    const std::vector<Tensor> expected = autograd::grad({c.f(both[0], both[1]).sum()}, {both[0], both[1]});
    for (size_t wanted : {0, 1}) {
      Tensor leaf = (wanted == 0 ? c.left : c.right).clone().set_requires_grad();
      Tensor operands[] = {c.left.clone(), c.right.clone()};
      operands[wanted] = leaf * 1;
      const Tensor result = c.f(operands[0], operands[1]);
      for (size_t i : {0, 1}) {
        const size_t before = allocator_stats().bytes_in_use;
        operands[i] = Tensor();
        const bool keeps_it = i != wanted || (i == 1 && c.keeps_right_for_itself);
        EXPECT_EQ(allocator_stats().bytes_in_use == before, keeps_it) << i << " of " << wanted;
      }
      const Tensor got = autograd::grad({result.sum()}, {leaf})[0];
      EXPECT_EQ(values(got), values(expected[wanted]));
    }
  }
}

// The value that a write replaces is kept for the gradient of the other factor alone.
TEST(Saved, AWriteCopiesOnlyWhatAGradientReads) {
  for (bool wants_other : {false, true}) {
    Tensor x = ramp({1024}).set_requires_grad(), y = x * 1,
           other = ramp({1024}).set_requires_grad(wants_other);
    const size_t before = allocator_stats().bytes_in_use;
    y.mul_(other);
    EXPECT_EQ(allocator_stats().bytes_in_use > before, wants_other);
  }
}

// Of a matmul, as in PyTorch: the gradient has the operand's layout.
TEST(Gradients, OfTransposedOperandsAreTransposed) {
  using Strides = std::vector<int64_t>;
  auto strides = [](const Tensor& t) { return Strides(t.plain_strides().begin(), t.plain_strides().end()); };
  Tensor x = ramp({4, 3}).set_requires_grad(), weight = ramp({5, 3}).set_requires_grad(),
         bias = ramp({5}).set_requires_grad();
  std::vector<Tensor> grads = autograd::grad({linear(x, weight, bias).sum()}, {x, weight});
  EXPECT_EQ(strides(grads[0]), (Strides{3, 1}));
  EXPECT_EQ(strides(grads[1]), (Strides{3, 1}));
  Tensor left = ramp({3, 4}).set_requires_grad();
  grads = autograd::grad({mm(left.t(), weight.t()).sum()}, {left, weight});
  EXPECT_EQ(strides(grads[0]), (Strides{4, 1}));
  EXPECT_EQ(strides(grads[1]), (Strides{3, 1}));
  grads = autograd::grad({mm(x, left).sum()}, {x, left});
  EXPECT_EQ(strides(grads[0]), (Strides{3, 1}));
  EXPECT_EQ(strides(grads[1]), (Strides{4, 1}));
}

TEST(InPlace, OnABaseReachesItsViews) {
  Tensor x = vec({1, 2, 3}).set_requires_grad();
  Tensor base = zeros({3}, kFloat64), view = base.slice(0, 1, 3);
  base.add_(x);  // the view was made before the base had a history
  EXPECT_TRUE(view.requires_grad());
  (view * view).sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 4, 6}));
}

TEST(InPlace, OnAViewReachesTheBase) {
  Tensor x = vec({5}).set_requires_grad();
  Tensor base = vec({1, 2, 3}).clone();
  base.select(0, 1).mul_(x.select(0, 0));
  EXPECT_EQ(values(base), (std::vector<double>{1, 10, 3}));
  (base * vec({1, 10, 100})).sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{20}));
}

TEST(InPlace, ChainOfViewsAndWritesMatchesTheFunctionalProgram) {
  Tensor x = ramp({2, 3}).set_requires_grad(), y = ramp({2, 3}).set_requires_grad();
  Tensor a = x * 1;
  Tensor v = a.transpose(0, 1).select(0, 1);
  v.mul_(2);
  a.add_(1);
  (a * a * v.sum()).sum().backward();
  Tensor scale = from_data(std::vector<double>{1, 2, 1, 1, 2, 1}, {2, 3});
  Tensor b = y * scale + 1;
  (b * b * b.select(1, 1).sum()).sum().backward();
  EXPECT_TRUE(close(x.grad(), y.grad()));
}

TEST(InPlace, MultiOutputAndNoGradViewsAreRefused) {
  Tensor x = ramp({4}).set_requires_grad(), y = x * 1;
  Tensor part = y.split(2)[0];
  EXPECT_ERROR(part.add_(1), "This view is the output of a function that returns multiple views");
  Tensor hidden;
  {
    NoGrad no_grad;
    hidden = y.select(0, 0);
  }
  EXPECT_ERROR(hidden.add_(x.select(0, 1)), "A view was created in no_grad mode");
}

TEST(Detach, SharesMemoryAndNoHistory) {
  Tensor x = vec({1, 2}).set_requires_grad(), d = x.detach();
  EXPECT_FALSE(d.requires_grad());
  EXPECT_EQ(d.storage(), x.storage());
  EXPECT_TRUE((x * 2).detach().is_leaf());
}

TEST(Hooks, SeeAndReplaceGradients) {
  Tensor x = vec({1, 2}).set_requires_grad(), y = x * 2;
  std::vector<double> seen;
  auto handle = autograd::register_hook(y, [&](const Tensor& g) {
    seen = values(g);
    return g * 10;
  });
  y.sum().backward();
  EXPECT_EQ(seen, (std::vector<double>{1, 1}));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{20, 20}));
  handle.remove();
  x.set_grad({});
  (x * 2).sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2, 2}));
}

TEST(Hooks, RetainGradKeepsAnInnerGradient) {
  Tensor x = vec({3}).set_requires_grad(), y = x * x;
  autograd::retain_grad(y);
  (y * 5).sum().backward();
  EXPECT_EQ(values(y.grad()), (std::vector<double>{5}));
}

TEST(Anomaly, StopsAtTheFirstNan) {
  Tensor x = vec({0}).set_requires_grad();
  DetectAnomaly detect;
  auto run = [&] { (sqrt(x) * 0).sum().backward(); };
  const std::string line = fmt::format("autograd_test.cc:{} in", __LINE__ - 1);
  EXPECT_ERROR(run(), "returned nan values in its 0th output. The forward call was made \n  at ");
  EXPECT_ERROR(run(), line);
}

TEST(Hooks, MayRemoveThemselves) {
  Tensor x = vec({1, 2}).set_requires_grad();
  int calls = 0;
  autograd::HookHandle handle;
  handle = autograd::register_hook(x, [&](const Tensor& grad) {
    ++calls;
    handle.remove();
    return grad * 3;
  });
  autograd::register_hook(x, [](const Tensor& grad) { return grad * 3; });
  x.sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{9, 9}));
  x.sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{12, 12}));
  EXPECT_EQ(calls, 1);
}

TEST(Gradients, ThatAreSetFit) {
  Tensor x = vec({1, 2}).set_requires_grad();
  EXPECT_ERROR(x.set_grad(x), "can't assign Variable as its own grad");
  EXPECT_ERROR(x.set_grad(x.detach().to(Device("sim:0"))),
               "assigned grad is on sim:0 but the tensor is on cpu");
}

TEST(Engine, AChainOfAMillionRunsAndIsFreedWithoutDeepRecursion) {
  Tensor x = vec({1}).set_requires_grad();
  Tensor y = x;
  const int length = testing::kSanitized ? 100'000 : 1'000'000;
  for (int i = 0; i < length; ++i) y = y + 1;
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{1}));
}

TEST(Engine, ReleasesSavedTensorsAsItGoes) {
  Tensor x = ramp({64}).set_requires_grad();
  Tensor y = exp(x);
  uint32_t before = y.storage()->use_count();
  Tensor z = (y * y).sum();
  EXPECT_GT(y.storage()->use_count(), before);
  z.backward();
  EXPECT_LE(y.storage()->use_count(), before + 1);
}

TEST(Engine, ThreadsThatUseALeafForTheFirstTimeLoseNothing) {
  constexpr int kThreads = 4;
  for (int round = 0; round < 200; ++round) {
    Tensor x = vec({1}).set_requires_grad();
    std::atomic<int> waiting = kThreads;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        (x * 2).sum().backward();
      });
    for (auto& thread : threads) thread.join();
    ASSERT_EQ(values(x.grad()), (std::vector<double>{2 * kThreads})) << "round " << round;
  }
}

TEST(Engine, SeveralThreadsAddToOneLeaf) {
  Tensor x = vec({1, 1}).set_requires_grad();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) (x * 2).sum().backward();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{400, 400}));
}

TEST(Engine, GradientsOfComplexNumbersFollowPyTorch) {
  Tensor z = full({1}, Complex<double>(3, 4), kComplex128).set_requires_grad();
  abs(z).sum().backward();
  Complex<double> g = z.grad().item().to_complex();
  EXPECT_NEAR(g.re, 0.6, 1e-12);
  EXPECT_NEAR(g.im, 0.8, 1e-12);
}

TEST(NotImplemented, OutFormsDoNotDifferentiate) {
  Tensor x = vec({1}).set_requires_grad(), out = vec({0});
  EXPECT_ERROR(add_out(out, x, x),
               "functions with out=... arguments don't support automatic differentiation");
}

TEST(Gradcheck, AgreesAndFindsAWrongDerivative) {
  Tensor x = ramp({2, 3}).set_requires_grad();
  autograd::gradcheck(
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{exp(in[0]) * sin(in[0])}; }, {x});
  autograd::gradgradcheck(
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{exp(in[0]) * sin(in[0])}; }, {x});
  // detach hides half of the derivative.
  auto wrong = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * in[0].detach()}; };
  EXPECT_ERROR(autograd::gradcheck(wrong, {x}), "but finite differences give");
}

// The gradient of a base may have another layout than the base: expanded, or row-major where the base is
// not.
TEST(ViewsAndWrites, GradientsOfAnyLayoutGoThroughViews) {
  Tensor x = ramp({3, 2}).set_requires_grad();
  Tensor y = x.t() * 2;  // keeps the strides of x.t()
  y.t().view({6}).slice(0, 0, 2).mul_(5);
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{10, 10, 2, 2, 2, 2}));
  Tensor other = ramp({3, 2}).set_requires_grad(), z = other.t() * 2;
  z.t().view({6}).slice(0, 0, 2).mul_(5);
  z.backward(ones({2, 3}, kFloat64));
  EXPECT_EQ(values(other.grad()), values(x.grad()));
}

// The history of a view is made anew in the middle of the call that uses it.
TEST(Autograd, GradientsOfWrittenViewsReachChosenInputs) {
  Tensor x = vec({1, 2, 3}).set_requires_grad();
  Tensor y = x.clone(), part = y.slice(0, 0, 2);
  y.mul_(2);
  Tensor loss = (part * part).sum();
  EXPECT_TRUE(close(autograd::grad({loss}, {x})[0], vec({8, 16, 0})));
}

}  // namespace
}  // namespace weft
