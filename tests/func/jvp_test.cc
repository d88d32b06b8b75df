// Tangents of complex convolutions, of views that read strides, and of empty batches. Numbers are PyTorch's.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/func/func.h"

namespace weft {
namespace {

using testing::values;

Tensor row(std::vector<Complex<double>> elements) {
  auto n = static_cast<int64_t>(elements.size());
  return from_data(elements).view({1, 1, n});
}

TEST(JvpConvolution, OfComplexNumbersIsTheSumOfTwoConvolutions) {
  Tensor x = row({{1, 2}, {0.5, -1}, {0, 2}}), w = row({{0.3, 0.1}, {-0.2, 1}});
  Tensor tx = row({{0, 0.1}, {1, 0}, {2, -1}}), tw = row({{0, 1}, {1, 1}});
  auto f = [](const Tensor& a, const Tensor& b) { return conv1d(a, b); };
  Tensor got = func::jvp(f, {x, w}, {tx, tw}).second[0];
  EXPECT_TRUE(testing::close(view_as_real(got), view_as_real(conv1d(tx, w) + conv1d(x, tw))));
}

TEST(JvpConvolution, TakesTheTangentOfTheBiasAlone) {
  Tensor x = testing::ramp({1, 2, 4}), w = testing::ramp({3, 2, 2}), b = testing::vec({1, 2, 3});
  auto f = [&](const Tensor& bias) { return conv1d(x, w, bias); };
  Tensor got = func::jvp(f, {b}, {testing::vec({5, 6, 7})}).second[0];
  EXPECT_EQ(values(got), (std::vector<double>{5, 5, 5, 6, 6, 6, 7, 7, 7}));
}

TEST(JvpEmbedding, LooksUpThePaddingRowLikeAnyOther) {
  Tensor table = testing::ramp({4, 2}), tangent = testing::ramp({4, 2}, 1, 2);
  Tensor rows = from_data(std::vector<int64_t>{0, 2, 3, 3});
  auto f = [&](const Tensor& weight) { return embedding(weight, rows, 3, /*scale_grad_by_freq=*/true); };
  Tensor got = func::jvp(f, {table}, {tangent}).second[0];
  EXPECT_TRUE(testing::close(got, index_select(tangent, 0, rows), 0, 0));
  // Its gradient is none.
  Tensor gradient = func::vjp(f, {table}).second({ones({4, 2}, kFloat64)})[0];
  EXPECT_EQ(values(gradient), (std::vector<double>{1, 1, 0, 0, 1, 1, 0, 0}));
}

TEST(JvpViews, AsStridedReadsTheTangentWhereThePrimalLies) {
  Tensor x = arange(6).to(kFloat32).view({2, 3}).t(), tangent = arange(6).to(kFloat32).view({3, 2});
  auto f = [](const Tensor& t) { return t.as_strided({3}, {1}); };
  auto [value, derivative] = func::jvp(f, {x}, {tangent});
  EXPECT_EQ(values(value[0]), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(values(derivative[0]), (std::vector<double>{0, 2, 4}));
}

TEST(JvpViews, AsStridedCountsItsOffsetInThePrimalsMemory) {
  Tensor x = arange(6).to(kFloat32).slice(0, 2, 5), tangent = from_data(std::vector<float>{7, 8, 9});
  auto f = [](const Tensor& t) { return t.as_strided({2}, {1}, 3); };
  auto [value, derivative] = func::jvp(f, {x}, {tangent});
  EXPECT_EQ(values(value[0]), (std::vector<double>{3, 4}));
  EXPECT_EQ(values(derivative[0]), (std::vector<double>{8, 9}));
}

TEST(JvpViews, AsStridedOfRepeatedElementsIsRefused) {
  Tensor x = arange(3).to(kFloat32).unsqueeze(0).expand({2, 3}), tangent = ones({2, 3});
  auto f = [](const Tensor& t) { return t.as_strided({3}, {1}); };
  EXPECT_ERROR(func::jvp(f, {x}, {tangent}),
               "more than one element of the written-to tensor refers to a single memory location");
}

TEST(JvpViews, AViewTakesATangentOfOtherStrides) {
  Tensor x = arange(6).to(kFloat32).view({2, 3}), tangent = arange(6).to(kFloat32).view({3, 2}).t();
  auto f = [](const Tensor& t) { return t.view({6}); };
  EXPECT_EQ(values(func::jvp(f, {x}, {tangent}).second[0]), (std::vector<double>{0, 2, 4, 1, 3, 5}));
}

TEST(JvpSilu, OfComplexNumbersIsHolomorphic) {
  Tensor z = from_data(std::vector<Complex<double>>{{1, 2}, {0.5, -1}}),
         t = from_data(std::vector<Complex<double>>{{0.3, 0.1}, {-0.2, 1}});
  auto f = [](const Tensor& x) { return silu(x); };
  Tensor differences = (silu(z + 1e-6 * t) - silu(z - 1e-6 * t)) / 2e-6;
  EXPECT_TRUE(
      testing::close(view_as_real(func::jvp(f, {z}, {t}).second[0]), view_as_real(differences), 1e-7, 1e-7));
}

TEST(VjpSilu, OfComplexNumbersIsRefused) {
  Tensor z = from_data(std::vector<Complex<double>>{{1, 2}, {0.5, -1}});
  auto pull = func::vjp([](const Tensor& x) { return silu(x); }, {z}).second;
  EXPECT_ERROR(pull({z}), "silu does not support automatic differentiation for outputs with complex dtype.");
}

TEST(EmptyBatches, OfLayerNormHaveDerivatives) {
  auto norm = [](const Tensor& x) { return layer_norm(x, {3}); };
  Tensor x = ones({0, 3});
  EXPECT_EQ(describe_sizes(func::jvp(norm, {x}, {x}).second[0].sizes()).str(), "[0, 3]");
  auto loss = [&](const Tensor& t) { return norm(t).sum(); };
  EXPECT_EQ(describe_sizes(func::hessian(loss)(x).sizes()).str(), "[0, 3, 0, 3]");
}

}  // namespace
}  // namespace weft
