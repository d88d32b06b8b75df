// The gradient of a pure function, captured, is pure: sums of gradients are not accumulated in place.
#include <gtest/gtest.h>

#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/make_graph.h"
#include "weft/func/func.h"
#include "weft/passes/verify.h"

namespace weft {
namespace {

using testing::expect_equal;
using PureFunction = Tensor (*)(const Tensor&);

constexpr PureFunction kPureFunctions[] = {
    [](const Tensor& x) { return (x * x + x.sin() * x).sum(); },
    [](const Tensor& x) { return (x.select(0, 0) * x.select(0, 1) + x.select(0, 0)).sum(); },
    [](const Tensor& x) { return (x.slice(0, 0, 2) * x.slice(0, 1, 3) * x.t().select(1, 2)).sum(); },
    [](const Tensor& x) { return (x.view({-1}) * x.t().reshape({-1}) * x.view({-1})).sum(); },
    [](const Tensor& x) { return (matmul(x, x.t()) + matmul(x.t(), x)).exp().sum(); },
};

TEST(CapturedGradients, OfPureFunctionsWriteNothing) {
  const Tensor x = arange(9, kFloat64).view({3, 3}) / 10, other = x * 0.5 - 0.1;
  for (PureFunction f : kPureFunctions)
    for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic}) {
      auto gradient = func::grad(f);
      GraphModule by_transform = make_graph(gradient, {.mode = mode})(x);
      verify(by_transform, Stage::kFunctional);
      expect_equal(by_transform(other), gradient(other));
      auto taped = [f](const Tensor& t) {
        Tensor leaf = t.detach().set_requires_grad();
        return autograd::grad({f(leaf)}, {leaf})[0];
      };
      GraphModule by_tape = make_graph(taped, {.mode = mode})(x);
      verify(by_tape, Stage::kFunctional);
      expect_equal(by_tape(other), gradient(other));
      auto into_leaf = [f](const Tensor& t) {
        Tensor leaf = t.detach().set_requires_grad();
        f(leaf).backward();
        f(leaf * 2).backward();
        return leaf.grad();
      };
      GraphModule by_leaf = make_graph(into_leaf, {.mode = mode})(x);
      verify(by_leaf, Stage::kFunctional);
      expect_equal(by_leaf(other), into_leaf(other));
    }
}

}  // namespace
}  // namespace weft
