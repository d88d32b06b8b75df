#include "weft/func/func.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"

namespace weft {
namespace {

using testing::close;
using testing::ramp;
using testing::values;
using testing::vec;

Tensor cubes(const Tensor& x) { return (x * x * x).sum(); }

TEST(FuncGrad, OfACube) {
  EXPECT_EQ(values(func::grad(cubes)(vec({1, 2, 3}))), (std::vector<double>{3, 12, 27}));
}

TEST(FuncGrad, NestsToThirdOrder) {
  auto f = [](const Tensor& x) { return x * x * x * x; };
  Tensor x = full({}, 2.0, kFloat64);
  EXPECT_DOUBLE_EQ(func::grad(f)(x).item().to_double(), 32);
  EXPECT_DOUBLE_EQ(func::grad(func::grad(f))(x).item().to_double(), 48);
  EXPECT_DOUBLE_EQ(func::grad(func::grad(func::grad(f)))(x).item().to_double(), 48);
}

TEST(FuncGrad, IsSeenByOuterAutograd) {
  Tensor x = full({}, 3.0, kFloat64).set_requires_grad();
  func::grad([](const Tensor& t) { return t * t * t; })(x).backward();
  EXPECT_DOUBLE_EQ(x.grad().item().to_double(), 18);
}

TEST(FuncGrad, ChoosesArguments) {
  auto f = [](const Tensor& x, const Tensor& y) { return (x * y).sum(); };
  Tensor x = vec({1, 2}), y = vec({3, 4});
  EXPECT_EQ(values(func::grad(f, {-1})(x, y)), values(x));
  EXPECT_EQ(values(func::jacrev(f, -2)(x, y)), values(y));
  EXPECT_ERROR(func::grad(f, {-3})(x, y), "Got argnum=-3, but only 2 positional inputs");
  EXPECT_ERROR(func::grad(f, {2})(x, y), "Got argnum=2, but only 2 positional inputs");
  EXPECT_ERROR(func::jacfwd(f, 2)(x, y), "jacfwd: Got argnum=2, but only 2 positional inputs");
  EXPECT_ERROR(func::grad(f, {0, 0})(x, y), "argnums elements must be unique");
  EXPECT_ERROR(func::grad(f, {0, -2})(x, y), "argnums elements must be unique");
  EXPECT_ERROR(func::grad(f, {})(x, y), "argnums must be non-empty");
}

TEST(Transforms, RefuseWhatHasNoDerivative) {
  const char* words = "only Tensors of floating point dtype can require gradients, but got i64[2]";
  auto f = [](const Tensor& x) { return x.sum(); };
  Tensor whole = ones({2}, kInt64);
  EXPECT_ERROR(func::grad(f)(whole), words);
  EXPECT_ERROR(func::vjp(f, {whole}), words);
  EXPECT_ERROR(func::jvp(f, {whole}, {whole}), words);
  EXPECT_ERROR(func::jacrev(f)(whole), words);
  EXPECT_ERROR(func::jacfwd(f)(whole), words);
  EXPECT_ERROR(func::jacrev([](const Tensor& x) { return x > 0; })(vec({1, 2})),
               "all outputs of f must be floating-point or complex Tensors, got b8[2]");
  EXPECT_ERROR(func::grad([](const Tensor& x) { return x.sum().to(kComplex128); })(vec({1, 2})),
               "grad can be implicitly created only for real scalar outputs but got c128[]");
}

TEST(Transforms, RefuseDerivativesOfOtherSizes) {
  auto f = [](const Tensor& x) { return x.sin(); };
  EXPECT_ERROR(func::jvp(f, {vec({1, 2})}, {vec({1})}), "input 0 is f64[2], but its tangent is f64[1]");
  auto [results, pull] = func::vjp(f, {vec({1, 2})});
  EXPECT_ERROR(pull({vec({1})}), "grad_output[0] has a shape of [1] and output[0] has a shape of [2]");
}

TEST(FuncGrad, WantsOneScalar) {
  EXPECT_ERROR(func::grad([](const Tensor& x) { return x * 2; })(vec({1, 2})), "return a scalar tensor");
}

TEST(FuncGrad, WritesInsideTheFunctionAreDifferentiated) {
  auto f = [](const Tensor& x) {
    Tensor y = x * 1;
    y.select(0, 0).mul_(3);
    return (y * y).sum();
  };
  EXPECT_EQ(values(func::grad(f)(vec({1, 2}))), (std::vector<double>{18, 4}));
}

TEST(FuncGrad, WritesToOutsideAreRefused) {
  Tensor outside = vec({0, 0});
  auto f = [&](const Tensor& x) {
    outside.add_(x);
    return outside.sum();
  };
  EXPECT_ERROR(func::grad(f)(vec({1, 2})), "writes in place to a tensor that was made outside");
}

TEST(FuncGrad, AViewOfATensorFromOutsideIsFromOutside) {
  Tensor outside = vec({1, 2});
  auto f = [&](const Tensor& x) {
    Tensor part = outside.select(0, 0);
    part.mul_(x.sum());
    return part.sum();
  };
  EXPECT_USER_ERROR(func::grad(f)(vec({1, 2})), "writes in place to a tensor that was made outside");
  EXPECT_USER_ERROR(func::jvp(f, {vec({1, 2})}, {vec({1, 1})}),
                    "writes in place to a tensor that was made outside");
  EXPECT_EQ(values(outside), (std::vector<double>{1, 2}));
}

TEST(FuncGrad, OtherArgumentsMayBeWrittenTo) {
  auto whole = [](const Tensor& x, const Tensor& y) { return y.mul_(x).sum(); };
  auto part = [](const Tensor& x, const Tensor& y) {
    y.select(0, 1).mul_(x.sum());
    return (y * y).sum();
  };
  Tensor y = vec({3, 4}), z = vec({3, 4});
  EXPECT_EQ(values(func::grad(whole)(vec({5, 6}), y)), (std::vector<double>{3, 4}));
  EXPECT_EQ(values(y), (std::vector<double>{15, 24}));
  // z becomes [3, 4 s] for the sum s of x, so the loss is 9 + 16 s^2.
  EXPECT_EQ(values(func::grad(part)(vec({1, 2}), z)), (std::vector<double>{96, 96}));
  EXPECT_EQ(values(z), (std::vector<double>{3, 12}));
  EXPECT_EQ(values(func::jacrev([](const Tensor& x, const Tensor& w) { return w.mul_(x).clone(); })(
                vec({5, 6}), vec({3, 4}))),
            (std::vector<double>{3, 0, 0, 4}));
}

TEST(FuncJvp, ArgumentsWithoutATangentMayBeWrittenTo) {
  auto f = [](const Tensor& x, const Tensor& y) {
    y.select(0, 1).mul_(x.sum());
    return y;
  };
  Tensor y = vec({3, 4});
  auto [result, tangent] = func::jvp(f, {vec({1, 2}), y}, {vec({1, 1}), Tensor()});
  EXPECT_EQ(values(result[0]), (std::vector<double>{3, 12}));
  EXPECT_EQ(values(tangent[0]), (std::vector<double>{0, 8}));
}

TEST(FuncGrad, ALiteralIsTheFunctionsOwn) {
  auto f = [](const Tensor& x) {
    Tensor literal = from_data<double>({2, 3});
    literal.mul_(x);
    return (literal * x).sum();
  };
  // 2 a^2 + 3 b^2
  EXPECT_EQ(values(func::grad(f)(vec({5, 7}))), (std::vector<double>{20, 42}));
  EXPECT_EQ(values(func::jvp(f, {vec({5, 7})}, {vec({1, 0})}).second[0]), (std::vector<double>{20}));
  EXPECT_EQ(values(func::hessian(f)(vec({5, 7}))), (std::vector<double>{4, 0, 0, 6}));
}

TEST(FuncVjp, PullsSeveralTimes) {
  auto [out, pull] = func::vjp([](const Tensor& x) { return sin(x); }, {vec({0, 1})});
  EXPECT_TRUE(close(pull({vec({1, 0})})[0], vec({1, 0})));
  EXPECT_TRUE(close(pull({vec({0, 1})})[0], vec({0, std::cos(1.0)})));
}

TEST(FuncVjp, KeepsTheTapeAndRecordsAsAsked) {
  auto f = [](const Tensor& x) { return (x * x * x).sum(); };
  const Tensor x = vec({1, 2}).set_requires_grad(), one = ones({}, kFloat64);
  auto [out, pull] = func::vjp(f, {x});
  EXPECT_TRUE(pull({one})[0].requires_grad());
  EXPECT_FALSE(pull({one}, true, false)[0].requires_grad());
  {
    NoGrad no_grad;
    EXPECT_FALSE(pull({one})[0].requires_grad());
    EXPECT_TRUE(pull({one}, true, true)[0].requires_grad());
  }
  const std::function<Value(Args)> over_values = pull.function();
  EXPECT_TRUE(close(over_values(ValueList{one, true, false}).to_tensor(), vec({3, 12})));
  EXPECT_ERROR(over_values(ValueList{one, 1}),
               "expected gradients, then up to two bools (retain_graph, create_graph)");
  EXPECT_TRUE(close(pull({one}, false)[0], vec({3, 12})));
  EXPECT_ERROR(pull({one}), "second time");
}

// <w, J v> from forward mode must be <J^T w, v> from reverse mode.
TEST(FuncJvp, IsTheTransposeOfTheVjp) {
  auto f = [](const Tensor& x) { return exp(x) * sin(x) / (x * x + 1) + tanh(x).sum(); };
  Tensor x = ramp({5}), v = ramp({5}, -2, 1), w = ramp({5}, 0, 3);
  Tensor forward = (func::jvp(f, {x}, {v}).second[0] * w).sum();
  Tensor reverse = (func::vjp(f, {x}).second({w})[0] * v).sum();
  EXPECT_TRUE(close(forward, reverse));
}

TEST(FuncJvp, FollowsViewsAndWrites) {
  auto f = [](const Tensor& x) {
    Tensor y = x * 2;
    y.view({4}).select(0, 3).add_(x.select(0, 0).sum());
    return y.transpose(0, 1);
  };
  Tensor x = ramp({2, 2}), v = ramp({2, 2}, 0, 1);
  Tensor expected = (v * 2).clone();
  expected.view({4}).select(0, 3).add_(v.select(0, 0).sum());
  EXPECT_TRUE(close(func::jvp(f, {x}, {v}).second[0], expected.transpose(0, 1)));
}

TEST(FuncVmap, MatchesALoop) {
  auto f = [](const Tensor& x, const Tensor& y) {
    return (x * y).sum() + mm(x.unsqueeze(0), y.unsqueeze(1)).sum() + softmax(x, 0);
  };
  Tensor x = ramp({4, 3}), y = ramp({3, 4});
  Tensor batched = func::vmap(f, {.in_dims = {0, 1}})(x, y);
  for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(close(batched.select(0, i), f(x.select(0, i), y.select(1, i))));
}

TEST(FuncVmap, OutDimsAndUnmappedArguments) {
  Tensor x = ramp({4, 3}), w = ramp({3});
  Tensor r = func::vmap([](const Tensor& a, const Tensor& b) { return a * b; },
                        {.in_dims = {0, func::kNoDim}, .out_dims = {1}})(x, w);
  EXPECT_TRUE(close(r, (x * w).transpose(0, 1)));
  Tensor constant = func::vmap([&](const Tensor&) { return w; })(x);
  EXPECT_TRUE(close(constant, w.expand({4, 3})));
}

TEST(FuncVmap, InPlaceOnTheBatch) {
  Tensor x = ramp({3, 2});
  Tensor r = func::vmap([](const Tensor& a) {
    Tensor b = a * 1;
    b.select(0, 0).add_(5);
    return b;
  })(x);
  EXPECT_TRUE(close(r.select(1, 0), x.select(1, 0) + 5));
  Tensor outside = zeros({2}, kFloat64);
  EXPECT_ERROR(func::vmap([&](const Tensor& a) { return outside.add_(a); })(x),
               "is not possible because there exists a Tensor");
}

TEST(FuncVmap, Randomness) {
  auto f = [](const Tensor& x) { return x + rand({2}, kFloat64); };
  Tensor x = zeros({3, 2}, kFloat64);
  EXPECT_ERROR(func::vmap(f)(x), "randomness error mode");
  Tensor same = func::vmap(f, {.randomness = func::Randomness::kSame})(x);
  EXPECT_TRUE(close(same.select(0, 0), same.select(0, 1)));
  Tensor different = func::vmap(f, {.randomness = func::Randomness::kDifferent})(x);
  EXPECT_FALSE(close(different.select(0, 0), different.select(0, 1)));
}

TEST(FuncVmap, SaysWhatIsWrong) {
  EXPECT_ERROR(func::vmap([](const Tensor& a, const Tensor& b) { return a + b; })(ramp({3}), ramp({4})),
               "same size in the mapped dimension");
  EXPECT_ERROR(func::vmap([](const Tensor& a) { return a; })(ramp({})), "of dimensionality 0");
  EXPECT_ERROR(func::vmap([](const Tensor& a) { return a * a.item(); })(ramp({3})), "vmap: ");
}

TEST(FuncVmap, PerSampleGradients) {
  Tensor w = ramp({3}), x = ramp({5, 3});
  auto loss = [](const Tensor& weights, const Tensor& sample) { return pow((weights * sample).sum(), 2); };
  Tensor g = func::vmap(func::grad(loss), {.in_dims = {func::kNoDim, 0}})(w, x);
  for (int64_t i = 0; i < 5; ++i) {
    Tensor xi = x.select(0, i);
    EXPECT_TRUE(close(g.select(0, i), 2 * (w * xi).sum() * xi));
  }
}

TEST(FuncJacobian, ForwardAndReverseAgree) {
  auto f = [](const Tensor& x) { return sin(x).unsqueeze(1) * x + exp(x).sum(); };
  Tensor x = ramp({3});
  Tensor reverse = func::jacrev(f)(x), forward = func::jacfwd(f)(x);
  EXPECT_EQ(describe_sizes(reverse.sizes()).str(), "[3, 3, 3]");
  EXPECT_TRUE(close(forward, reverse));
}

TEST(FuncJacobian, HessianOfACubic) {
  Tensor x = vec({1, 2, 3});
  Tensor h = func::hessian(cubes)(x), wanted = zeros({3, 3}, kFloat64);
  wanted.diagonal().copy_(6 * x);
  EXPECT_TRUE(close(h, wanted));
}

// Random programs under random nestings: whatever the order, derivatives of a product of transforms agree.
TEST(FuncNesting, VmapOfGradIsGradOfVmapSummed) {
  auto f = [](const Tensor& x) { return (exp(x) * tanh(x)).sum(); };
  Tensor x = ramp({4, 3});
  Tensor a = func::vmap(func::grad(f))(x);
  Tensor b = func::grad([&](const Tensor& t) { return func::vmap(f)(t).sum(); })(x);
  EXPECT_TRUE(close(a, b));
  Tensor c = func::vmap(func::vmap(func::grad([](const Tensor& t) { return exp(t) * tanh(t); })))(x);
  EXPECT_TRUE(close(a, c));
  auto forward = [&](const Tensor& t) { return func::jvp(func::grad(f), {t}, {ones_like(t)}).second[0]; };
  auto reverse = [&](const Tensor& t) {
    return func::grad([&](const Tensor& u) { return func::grad(f)(u).sum(); })(t);
  };
  EXPECT_TRUE(close(func::vmap(forward)(x), func::vmap(reverse)(x)));
}

TEST(FuncState, IsRestoredWhenAFunctionThrows) {
  EXPECT_ERROR(
      func::vmap(func::grad([](const Tensor& x) -> Tensor { fail("stop {}", x.dim()); }))(ramp({3, 2})),
      "stop 1");
  EXPECT_EQ(values(func::grad(cubes)(vec({1}))), (std::vector<double>{3}));
  EXPECT_FALSE((vec({1}) * 2).requires_grad());
}

}  // namespace
}  // namespace weft
