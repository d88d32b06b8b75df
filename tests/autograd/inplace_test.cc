// In-place calls on tensors that share memory: gradients, second gradients, and what is refused.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/gradcheck.h"
#include "weft/func/func.h"

namespace weft {
namespace {

using testing::expect_equal;

void expect_close(const Tensor& got, const Tensor& wanted) {
  EXPECT_TRUE(testing::close(got, wanted, 1e-12, 1e-12));
}

Tensor counted(SymIntSpan sizes) { return arange(6).to(kFloat64).view(sizes); }

// The gradient of f at 0, 1, ... 5 as a matrix of 2 rows.
template <typename F>
Tensor gradient(F f) {
  Tensor x = counted({2, 3}).set_requires_grad();
  f(x).backward();
  return x.grad();
}

// --- views in their own place ----------------------------------------------------------------------------

TEST(InplaceViews, OfAViewLeaveTheBaseAsItIs) {
  const Tensor twice = counted({2, 3}) * 2;
  expect_equal(gradient([](const Tensor& a) {
                 Tensor c = a * 1, v = c.view({2, 3});
                 v.t_();
                 return (c * c).sum();
               }),
               twice);
  expect_equal(gradient([](const Tensor& a) {
                 Tensor c = a * 1, v = c.view({2, 3});
                 v.unsqueeze_(0);
                 return (c * c).sum();
               }),
               twice);
}

TEST(InplaceViews, CanBeUsedAndWrittenTo) {
  expect_equal(gradient([](const Tensor& a) {
                 Tensor c = a * 1, v = c.view({2, 3});
                 v.t_();
                 return (v * counted({3, 2})).sum();
               }),
               counted({3, 2}).t());
  expect_equal(gradient([](const Tensor& a) {
                 Tensor c = a * 1, v = c.narrow(0, 0, 1);
                 v.t_();
                 v.mul_(2);
                 return (c * c).sum();
               }),
               from_data<double>({0, 8, 16, 6, 8, 10}, {2, 3}));
  expect_equal(gradient([](const Tensor& a) {
                 Tensor v = (a * 2).squeeze();
                 v.t_();
                 v.mul_(3);
                 return v.sum();
               }),
               full({2, 3}, 6, kFloat64));
}

TEST(InplaceViews, OfABaseLeaveItsViewsAsTheyAre) {
  auto in_flat_order = [](const Tensor& weights) { return (weights * 1).view({2, 3}); };
  expect_equal(gradient([](const Tensor& a) {
                 Tensor c = a * 1, v = c.view({6});
                 c.t_();
                 return (v * counted({6})).sum();
               }),
               in_flat_order(counted({6})));
  expect_equal(gradient([](const Tensor& a) {
                 Tensor c = a * 1, v = c.view({6});
                 c.t_();
                 v.mul_(counted({6}));
                 return c.sum();
               }),
               in_flat_order(counted({6})));
  expect_equal(gradient([](const Tensor& x) {
                 Tensor y = x * 2, v = y.slice(1, 0, 2);
                 y.t_();
                 v.mul_(3);
                 return y.sum();
               }),
               from_data<double>({6, 6, 2, 6, 6, 2}, {2, 3}));
  // Without a gradient before the write, too.
  Tensor w = counted({6}).set_requires_grad(), c = ones({2, 3}, kFloat64), v = c.view({6});
  c.t_();
  v.mul_(w);
  (c * counted({3, 2})).sum().backward();
  expect_equal(w.grad(), counted({3, 2}).t().reshape({6}));
}

TEST(InplaceViews, GiveTheSameUnderTransforms) {
  auto f = [](const Tensor& a) {
    Tensor c = a * 1, v = c.view({2, 3});
    v.t_();
    return (c * c).sum();
  };
  expect_equal(func::grad(f)(counted({2, 3})), counted({2, 3}) * 2);
  auto g = [](const Tensor& a) {
    Tensor c = a * 1, v = c.narrow(0, 0, 1);
    v.t_();
    v.mul_(a.narrow(0, 0, 1).t());
    return c;
  };
  Tensor x = counted({2, 3}) + 1, t = counted({2, 3}) * 0.5 + 1;
  auto [value, tangent] = func::jvp(g, {x}, {t});
  expect_close(value[0], g(x));
  Tensor expected = t.clone();
  expected.narrow(0, 0, 1).copy_(x.narrow(0, 0, 1) * t.narrow(0, 0, 1) * 2);
  expect_close(tangent[0], expected);
}

// --- second derivatives ----------------------------------------------------------------------------------

TEST(InplaceCalls, HaveSecondDerivatives) {
  auto second = [](auto f) {
    Tensor x = from_data<double>({1, 2, 3}).set_requires_grad();
    Tensor y = f(x);
    Tensor g = autograd::grad({y.sum()}, {x}, {}, {.create_graph = true})[0];
    g.sum().backward();
    return x.grad();
  };
  expect_close(second([](const Tensor& x) { return x.clone().mul_(x); }), full({3}, 2, kFloat64));
  expect_close(second([](const Tensor& x) { return x.clone().div_(x * x); }),
               from_data<double>({2, 0.25, 2.0 / 27}));
  expect_close(second([](const Tensor& x) { return x.clone().pow_(3); }), from_data<double>({6, 12, 18}));
  expect_close(second([](const Tensor& x) { return x.clone().sin_(); }), -from_data<double>({1, 2, 3}).sin());
  auto logs = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0].clone().log_()}; };
  autograd::gradgradcheck(logs, {from_data<double>({1, 2, 3}).set_requires_grad()});
}

// --- what is refused, and what is not --------------------------------------------------------------------

TEST(InplaceCalls, OnOneOfSeveralViewsMadeWithoutGradientsAreRefused) {
  Tensor x = ones({2}).set_requires_grad(), y = x * 1;
  const char* words =
      "A view was created in no_grad mode and is being modified inplace with grad mode enabled";
  for (const Tensor& base : {y, x}) {
    std::vector<Tensor> parts, rows;
    {
      NoGrad no_grad;
      parts = base.split(1);
      rows = base.unbind();
    }
    EXPECT_ERROR(parts[0].mul_(2), words);
    EXPECT_ERROR(rows[1].mul_(2), words);
    NoGrad no_grad;
    EXPECT_NO_THROW(parts[0].mul_(1));
  }
  expect_equal(y.detach(), ones({2}));
}

TEST(InplaceCalls, OnAViewMadeWithoutGradientsAreRefused) {
  Tensor x = ones({3}).set_requires_grad(), y = x * 2;
  Tensor v = [&] {
    NoGrad no_grad;
    return y.view({-1});
  }();
  EXPECT_TRUE(v.requires_grad());
  EXPECT_TRUE(v.is_leaf());
  EXPECT_ERROR(v.mul_(5),
               "A view was created in no_grad mode and is being modified inplace with grad mode enabled");
  expect_equal(y.detach(), full({3}, 2.0));
  EXPECT_ERROR(v.view({3}).mul_(5), "A view was created in no_grad mode");
  {
    NoGrad no_grad;
    v.mul_(5);
  }
  expect_equal(y.detach(), full({3}, 10.0));
  // A view that was there before its base required a gradient.
  Tensor base = ones({3}), early = base.view({3});
  base.set_requires_grad();
  EXPECT_TRUE(early.requires_grad());
  EXPECT_ERROR(early.mul_(2),
               "a view of a leaf Variable that requires grad is being used in an in-place operation");
}

TEST(Backward, RunsTwiceWhereNothingWasSaved) {
  Tensor x = ones({2, 2}).set_requires_grad(), y = (x + 1).view({4}).neg();
  y.sum().backward();
  y.sum().backward();
  expect_equal(x.grad(), full({2, 2}, -2.0));
  Tensor z = x * x;
  z.sum().backward();
  EXPECT_ERROR(z.sum().backward(), "Trying to backward through the graph a second time");
}

TEST(RetainGrad, AddsUpAndFollowsTheValue) {
  Tensor x = ones({2}).set_requires_grad(), y = x + 1;
  autograd::retain_grad(y);
  (y * 3).sum().backward({}, true);
  (y * 3).sum().backward({}, true);
  expect_equal(y.grad(), full({2}, 6.0));
  Tensor z = x + 1;
  autograd::retain_grad(z);
  z.mul_(5);
  z.sum().backward();
  expect_equal(z.grad(), ones({2}));
}

TEST(Hooks, MayNotChangeTheSizeOfAGradient) {
  Tensor x = ones({1}).set_requires_grad(), y = x * 2;
  autograd::register_hook(y, [](const Tensor&) { return ones({5}); });
  EXPECT_ERROR(y.sum().backward(), "has changed the size of value: it was given f32[1] and gave f32[5]");
}

TEST(RequiresGrad, MayBeAskedForAgain) {
  Tensor x = ones({1}).set_requires_grad(), y = x * 2;
  y.set_requires_grad();
  EXPECT_FALSE(y.is_leaf());
  EXPECT_ERROR(y.set_requires_grad(false), "you can only change requires_grad flags of leaf variables");
}

TEST(UndefinedTensors, HaveNothingToTell) {
  Tensor none, x = ones({2}).set_requires_grad();
  for (auto ask : {+[](const Tensor& t) { t.sizes(); }, +[](const Tensor& t) { t.size(0); },
                   +[](const Tensor& t) { t.dim(); }, +[](const Tensor& t) { t.dtype(); },
                   +[](const Tensor& t) { t.numel(); }, +[](const Tensor& t) { t.is_contiguous(); },
                   +[](const Tensor& t) { t.grad(); }, +[](const Tensor& t) { t.device(); },
                   +[](const Tensor& t) { t.is_view(); }, +[](const Tensor& t) { t.raw_data(); },
                   +[](const Tensor& t) { t.storage(); }, +[](const Tensor& t) { t.version(); }})
    EXPECT_ERROR(ask(none), "the tensor is undefined");
  EXPECT_ERROR(x.grad().sizes(), "A gradient is so before backward() reaches its tensor");
  EXPECT_ERROR(cat({none, ones({2})}), "undefined");
  EXPECT_ERROR(stack({ones({2}), none}), "undefined");
}

TEST(Print, ShowsWhereAGradientGoes) {
  Tensor x = ones({2}).set_requires_grad();
  EXPECT_EQ(x.to_string(), "tensor([1., 1.], requires_grad=True)");
  EXPECT_EQ((x * 2).to_string(), "tensor([2., 2.], grad_fn=<MulBackward0>)");
  EXPECT_EQ((x * 2).detach().to_string(), "tensor([2., 2.])");
}

TEST(DetachInPlace, IsNoWrite) {
  Tensor x = ones({2}).set_requires_grad(), y = x * 2;
  const uint32_t before = y.version();
  y.detach_();
  EXPECT_EQ(y.version(), before);
  EXPECT_FALSE(y.requires_grad());
}

// What such operators save is their own result, a part of the base by then.
TEST(InPlaceOnAView, HasASecondDerivative) {
  auto twice = [](auto write, auto plain) {
    Tensor x = full({3}, 0.7, kFloat64).set_requires_grad();
    auto second = [&](auto f) {
      Tensor first = autograd::grad({f(x)}, {x}, {}, {.create_graph = true})[0];
      return autograd::grad({(first * first).sum()}, {x})[0];
    };
    auto with_write = [&](const Tensor& t) {
      Tensor base = t * 2;
      write(base.slice(0, 0, 2));
      return (base * base).sum();
    };
    auto without = [&](const Tensor& t) {
      Tensor base = t * 2;
      Tensor whole = cat({plain(base.slice(0, 0, 2)), base.slice(0, 2, 3)});
      return (whole * whole).sum();
    };
    EXPECT_TRUE(testing::close(second(with_write), second(without)));
  };
  twice([](const Tensor& t) { t.sigmoid_(); }, [](const Tensor& t) { return t.sigmoid(); });
  twice([](const Tensor& t) { t.tanh_(); }, [](const Tensor& t) { return t.tanh(); });
  twice([](const Tensor& t) { t.exp_(); }, [](const Tensor& t) { return t.exp(); });
  twice([](const Tensor& t) { t.sqrt_(); }, [](const Tensor& t) { return t.sqrt(); });
  twice([](const Tensor& t) { t.relu_(); }, [](const Tensor& t) { return t.relu(); });
}

}  // namespace
}  // namespace weft
