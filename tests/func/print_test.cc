// Tensors of transforms as text. The expected texts are PyTorch's.
#include <gtest/gtest.h>

#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/func/functionalize.h"

namespace weft {
namespace {

Tensor square() { return arange(4, kFloat32).reshape({2, 2}); }

// The text of what `f` makes of its argument inside of the transform.
using Transform = func::Transformed (*)(func::Fn);
std::string text_within(Transform transform, Tensor (*f)(const Tensor&), const Tensor& x) {
  std::string text;
  transform([&](const func::Tensors& args) {
    text = f(args[0]).to_string();
    return func::Tensors{args[0].sum()};
  })(x);
  return text;
}
Tensor itself(const Tensor& x) { return x; }
func::Transformed gradient(func::Fn f) { return func::grad(std::move(f)); }
func::Transformed batch(func::Fn f) { return func::vmap(std::move(f)); }
func::Transformed functional(func::Fn f) { return func::functionalize(std::move(f)); }

TEST(PrintInTransforms, ShowsTheLevelAndTheValue) {
  const std::string grad_text =
      "GradTrackingTensor(lvl=1, value=\n"
      "    tensor([[0., 1.],\n"
      "            [2., 3.]])\n"
      ")";
  EXPECT_EQ(text_within(gradient, itself, square()), grad_text);
  std::string text;
  func::jvp([&](const Tensor& x) { return text = x.to_string(), x.sum(); }, {square()}, {square()});
  EXPECT_EQ(text, grad_text);
  func::vmap([&](const Tensor& x) { return text = x.to_string(), x.sum(); }, {.in_dims = {1}})(square());
  EXPECT_EQ(text,
            "BatchedTensor(lvl=1, bdim=1, value=\n"
            "    tensor([[0., 1.],\n"
            "            [2., 3.]])\n"
            ")");
  EXPECT_EQ(text_within(
                batch, [](const Tensor& x) { return x.sum(); }, square()),
            "BatchedTensor(lvl=1, bdim=0, value=\n"
            "    tensor([1., 5.])\n"
            ")");
  // Lines between matrices stay empty.
  EXPECT_EQ(text_within(batch, itself, arange(4).reshape({2, 2, 1})),
            "BatchedTensor(lvl=1, bdim=0, value=\n"
            "    tensor([[[0],\n"
            "             [1]],\n"
            "\n"
            "            [[2],\n"
            "             [3]]])\n"
            ")");
  // What is the same for the whole batch is as it is outside.
  EXPECT_EQ(text_within(batch, [](const Tensor&) { return ones({2}); }, square()), "tensor([1., 1.])");
}

TEST(PrintInTransforms, ValuesMayBeOfLevelsThemselves) {
  EXPECT_EQ(text_within([](func::Fn f) { return batch(gradient(std::move(f)).fn()); }, itself, square()),
            "GradTrackingTensor(lvl=2, value=\n"
            "    BatchedTensor(lvl=1, bdim=0, value=\n"
            "        tensor([[0., 1.],\n"
            "                [2., 3.]])\n"
            "    )\n"
            ")");
  EXPECT_EQ(text_within([](func::Fn f) { return batch(functional(std::move(f)).fn()); }, itself, square()),
            "FunctionalTensor(lvl=2, value=\\\n"
            "BatchedTensor(lvl=1, bdim=0, value=\n"
            "    tensor([[0., 1.],\n"
            "            [2., 3.]])\n"
            "))");
  EXPECT_EQ(text_within([](func::Fn f) { return functional(batch(std::move(f)).fn()); }, itself, square()),
            "BatchedTensor(lvl=2, bdim=0, value=\n"
            "    FunctionalTensor(lvl=1, value=\\\n"
            "    tensor([[0., 1.],\n"
            "            [2., 3.]]))\n"
            ")");
}

TEST(PrintInTransforms, TheHistoryIsThatOfTheValue) {
  Tensor x = ones({2}).set_requires_grad();
  EXPECT_EQ(text_within(gradient, itself, x),
            "GradTrackingTensor(lvl=1, value=\n"
            "    tensor([1., 1.], requires_grad=True)\n"
            ")");
  auto twice = [](const Tensor& t) { return t * 2; };
  EXPECT_EQ(text_within(gradient, twice, x),
            "GradTrackingTensor(lvl=1, value=\n"
            "    tensor([2., 2.], grad_fn=<MulBackward0>)\n"
            ")");
  EXPECT_EQ(text_within(batch, twice, x),
            "BatchedTensor(lvl=1, bdim=0, value=\n"
            "    tensor([2., 2.], grad_fn=<MulBackward0>)\n"
            ")");
}

// A view of what was written to since has its history renewed by a call below the level that prints it (by
// its own operator, where PyTorch says AsStridedBackward0).
TEST(PrintInTransforms, ViewsOfWrittenTensorsHaveAHistory) {
  std::string text;
  auto f = [&](const Tensor& x) {
    Tensor y = x * 1, view = y.unsqueeze(0);
    y.mul_(x);
    text = view.to_string();
    return view.sum();
  };
  func::jvp(f, {ones({2}).set_requires_grad()}, {ones({2})});
  EXPECT_EQ(text,
            "GradTrackingTensor(lvl=1, value=\n"
            "    tensor([[1., 1.]], grad_fn=<UnsqueezeBackward0>)\n"
            ")");
}

TEST(PrintInTransforms, TensorsOfEndedLevelsKeepTheirValues) {
  Tensor kept;
  auto keep = [&](const Tensor& x) { return kept = x, x.sum(); };
  func::grad(keep)(ones({2}));
  EXPECT_EQ(kept.to_string(), "GradTrackingTensor(lvl=-2, value=\n    tensor([1., 1.])\n)");
  func::vmap(keep)(ones({2}));
  EXPECT_EQ(kept.to_string(), "BatchedTensor(lvl=1, bdim=0, value=\n    tensor([1., 1.])\n)");
}

TEST(PrintInTransforms, FunctionalTensorsShowWhatTheyAreNow) {
  Tensor x = func::to_functional(square(), func::FunctionalPosition::kLower), view = x.view({-1});
  x.mul_(2);
  EXPECT_EQ(view.to_string(), "_to_functional_tensor(tensor([0., 2., 4., 6.]))");
  x = func::to_functional(square(), func::FunctionalPosition::kLower).set_requires_grad();
  EXPECT_EQ((x * 2).to_string(),
            "_to_functional_tensor(tensor([[0., 2.],\n"
            "        [4., 6.]]), grad_fn=<MulBackward0>)");
}

}  // namespace
}  // namespace weft
