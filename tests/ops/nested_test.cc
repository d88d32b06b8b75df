// Nested tensors: what they are made of, what operators do with them, and their gradients.
#include "weft/ops/nested.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/gradcheck.h"
#include "weft/ops/close.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using testing::expect_equal;
using testing::ramp;
using testing::vec;

Tensor two_parts() { return nested_tensor({ramp({2, 4}), ramp({3, 4}, 2, 5)}); }

TEST(Nested, HoldsItsComponents) {
  Tensor a = ramp({2, 4}), b = ramp({4, 3}).t().contiguous().select(0, 1).reshape({1, 4});
  Tensor whole = nested_tensor({a, b});
  EXPECT_TRUE(is_nested(whole));
  EXPECT_FALSE(is_nested(a));
  EXPECT_EQ(whole.dtype(), kFloat64);
  EXPECT_EQ(whole.dim(), 3);
  EXPECT_EQ(whole.size(0), 2);
  EXPECT_EQ(whole.size(1), -1);
  EXPECT_EQ(whole.size(2), 4);
  EXPECT_EQ(whole.numel(), 12);
  EXPECT_EQ(nested_sizes(whole), (std::vector<std::vector<int64_t>>{{2, 4}, {1, 4}}));
  std::vector<Tensor> parts = whole.unbind();
  ASSERT_EQ(parts.size(), 2u);
  expect_equal(parts[0], a);
  expect_equal(parts[1], b);
}

TEST(Nested, OfNothingOfNumbersAndOfSeveralTypes) {
  Tensor nothing = nested_tensor({});
  EXPECT_EQ(nothing.size(0), 0);
  EXPECT_TRUE(nothing.unbind().empty());
  Tensor numbers = nested_tensor({full({}, 2.0), full({}, 3.0)}) * 2;
  expect_equal(numbers.unbind()[1], full({}, 6.0));
  Tensor types = nested_tensor({ones({2}, kFloat32), full({3}, 0.5, kFloat64)});
  EXPECT_EQ(types.dtype(), kFloat32);
  expect_equal(types.unbind()[1], full({3}, 0.5));
}

TEST(Nested, OperatorsGoByElement) {
  Tensor x = two_parts(), y = two_parts() + 1;
  for (size_t i = 0; i < 2; ++i) {
    Tensor a = x.unbind()[i], b = y.unbind()[i];
    expect_equal(x.cos().unbind()[i], a.cos());
    expect_equal((x * y - 3).unbind()[i], a * b - 3);
    expect_equal((2 / y).unbind()[i], 2 / b);
    expect_equal((2 - y).unbind()[i], 2 - b);
    expect_equal(where(x > 0.5, x, y).unbind()[i], where(a > 0.5, a, b));
    expect_equal((x * full({}, 2.0)).unbind()[i], a * 2);
    expect_equal(x.to(kFloat32).unbind()[i], a.to(kFloat32));
    expect_equal(zeros_like(x).unbind()[i], zeros_like(a));
  }
}

TEST(Nested, WritesGoBothWays) {
  Tensor x = two_parts(), copy = x.clone();
  std::vector<Tensor> parts = x.unbind();
  uint32_t before = x.version();
  parts[1].fill_(7);
  EXPECT_GT(x.version(), before);
  expect_equal(x.unbind()[1], full({3, 4}, 7.0, kFloat64));
  x.mul_(2);
  expect_equal(parts[1], full({3, 4}, 14.0, kFloat64));
  x.copy_(copy);
  expect_equal(parts[0], copy.unbind()[0]);
}

TEST(Nested, IsPrintedByComponents) {
  EXPECT_EQ(nested_tensor({vec({1, 2}).reshape({2, 1}), vec({3}).reshape({1, 1})}).to(kFloat32).to_string(),
            "nested_tensor([\n"
            "  tensor([[1.],\n"
            "          [2.]]),\n"
            "  tensor([[3.]])\n"
            "])");
  EXPECT_EQ(nested_tensor({}).to_string(), "nested_tensor([\n\n])");
}

TEST(Nested, RefusesWhatItDoesNotDo) {
  Tensor x = two_parts();
  EXPECT_ERROR(x.sum(), "nested tensors do not support it; take them apart with unbind");
  EXPECT_ERROR(x.flatten(), "nested tensors do not support it");
  EXPECT_ERROR(matmul(x, ones({4, 2}, kFloat64)), "nested tensors do not support it");
  EXPECT_ERROR(x + ones({4}, kFloat64), "but got f64[4] beside a nested tensor of [[2, 4], [3, 4]]");
  EXPECT_ERROR(
      x + nested_tensor({ramp({1, 4}), ramp({4, 4})}),
      "nested tensors are not broadcast: expected components of the same sizes, but got [[2, 4], [3, 4]] "
      "and [[1, 4], [4, 4]]");
  EXPECT_ERROR(x.unbind(1), "NestedTensor can only be unbound along dimension 0 got dimension 1 instead.");
  EXPECT_ERROR(nested_tensor({ones({2}), ones({2, 2})}),
               "Found dimension 2 for Tensor at index 1 and dimension 1 for Tensor at index 0.");
  EXPECT_ERROR(nested_tensor({x}), "a component is a nested tensor itself");
  EXPECT_ERROR(nested_sizes(ones({2})), "expected a nested tensor, but got f32[2]");
  EXPECT_ERROR(nested_from_lengths(ones({4, 2}), ones({2})), "the lengths must be a list of integers");
  EXPECT_ERROR(nested_from_lengths(ones({4, 2}), from_data<int64_t>({1, 2})), "sum exactly to 4");
}

TEST(Nested, IsComparedByComponents) {
  Tensor x = two_parts(), same = two_parts();
  EXPECT_EQ(find_mismatch(x, same), std::nullopt);
  same.unbind()[1].select(0, 0).add_(1);
  EXPECT_THAT(find_mismatch(x, same).value(),
              ::testing::HasSubstr("Component 1 of the nested tensors: Tensor-likes"));
  EXPECT_EQ(find_mismatch(x, ones({2, 3, 4}, kFloat64)).value(),
            "Nested tensor mismatch: actual is nested, expected is not nested");
  EXPECT_EQ(find_mismatch(x, nested_tensor({ramp({2, 4})})).value(),
            "Nested tensor mismatch: actual has 2 components, expected has 1");
}

// --- gradients -------------------------------------------------------------------------------------------

TEST(Nested, GradientsPassThroughConstructionAndUnbind) {
  Tensor values = ramp({5, 4}).set_requires_grad();
  Tensor nested = nested_from_lengths(values, from_data<int64_t>({2, 3}));
  EXPECT_TRUE(nested.requires_grad());
  std::vector<Tensor> parts = nested.cos().unbind();
  Tensor grad = autograd::grad({parts[0].sum() + (parts[1] * parts[1]).sum()}, {values})[0];
  Tensor first = -values.detach().sin(), second = -2 * values.detach().cos() * values.detach().sin();
  expect_equal(grad, cat({first.slice(0, 0, 2), second.slice(0, 2, 5)}));
}

// A component that nobody used has a gradient of zeros, of its own sizes.
TEST(Nested, GradientsOfSomeComponents) {
  Tensor a = ramp({2, 4}).set_requires_grad(), b = ramp({3, 4}).set_requires_grad();
  std::vector<Tensor> parts = (nested_tensor({a, b}) * 3).unbind();
  std::vector<Tensor> grads = autograd::grad({parts[1].sum()}, {a, b});
  expect_equal(grads[0], zeros({2, 4}, kFloat64));
  expect_equal(grads[1], full({3, 4}, 3.0, kFloat64));
}

TEST(Nested, GradientsOfLeavesAndSecondOrder) {
  Tensor leaf = two_parts().set_requires_grad();
  for (int i = 0; i < 2; ++i) (leaf * leaf).unbind()[0].sum().backward();
  EXPECT_TRUE(is_nested(leaf.grad()));
  expect_equal(leaf.grad().unbind()[0], leaf.detach().unbind()[0] * 4);
  expect_equal(leaf.grad().unbind()[1], zeros({3, 4}, kFloat64));

  auto f = [](const std::vector<Tensor>& in) {
    Tensor nested = nested_tensor({in[0], in[1]});
    std::vector<Tensor> parts = (nested.sin() * nested).unbind();
    return std::vector<Tensor>{parts[0].sum() * parts[1].sum()};
  };
  std::vector<Tensor> inputs = {ramp({2, 1}).set_requires_grad(), ramp({1, 2}).set_requires_grad()};
  autograd::gradcheck(f, inputs);
  autograd::gradgradcheck(f, inputs);
}

TEST(Nested, WritesThatAutogradCannotFollowAreErrors) {
  Tensor a = ramp({2}).set_requires_grad();
  std::vector<Tensor> parts = nested_tensor({a, a}).unbind();
  EXPECT_ERROR(parts[0].mul_(2), "multiple views");
  Tensor nested = nested_tensor({a, a});
  Tensor result = nested.sin().unbind()[0].sum();
  {
    NoGrad no_grad;
    nested.unbind()[1].fill_(0);
  }
  EXPECT_ERROR(autograd::grad({result}, {a}), "modified by an inplace operation");
}

}  // namespace
}  // namespace weft
