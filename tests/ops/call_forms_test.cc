// How C++ programs write calls: one number for a list, flags that are no numbers, operators, brackets.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <sstream>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/var.h"
#include "weft/nn/functional.h"
#include "weft/ops/conversions.h"

namespace weft {
namespace {

using testing::close;
using testing::expect_equal;
using testing::ramp;
using testing::values;

TEST(OneNumber, IsADimAndNeverAFlag) {
  const Tensor x = ramp({3, 4});
  const Tensor mean_of_rows = x.sum({1}, true) / 4;
  const Tensor variance = ((x - mean_of_rows) * (x - mean_of_rows)).sum({1}) / 3;
  for (const Tensor& got :
       {x.var(1), x.var({1}), var(x, 1), var(x, {1}), x.var(-1), std::get<0>(var_mean(x, 1))})
    EXPECT_TRUE(close(got, variance));
  for (const Tensor& got : {x.std(1), x.std({1}), std(x, 1)}) EXPECT_TRUE(close(got, variance.sqrt()));
  EXPECT_EQ(x.var(true).dim(), 0);
  EXPECT_EQ(x.var().dim(), 0);
  EXPECT_TRUE(close(x.var(false), x.var() * 11 / 12));
}

TEST(OneNumber, StandsForAList) {
  const Tensor x = ramp({2, 3, 4, 4});
  expect_equal(x.sum(0), x.sum({0}));
  expect_equal(x.mean(-1, true), x.mean({-1}, true));
  expect_equal(x.view(-1), x.view({96}));
  expect_equal(max_pool2d(x, 2), max_pool2d(x, {2, 2}));
  expect_equal(max_pool2d(x, 3, 1, 1), max_pool2d(x, {3, 3}, {1, 1}, {1, 1}));
  expect_equal(x.sum(x.size(0) - 1), x.sum({1}));
  EXPECT_EQ(zeros(3).size(0), 3);
  // Where an overload takes a number, that is what it means.
  EXPECT_EQ(split(x, 1, 0).size(), 2u);
}

template <typename T>
concept TakesNumberForFlag = requires(T x) { x.sum({0}, 1); };
static_assert(!TakesNumberForFlag<Tensor>);

TEST(Operators, OfIntegersAndTruthValues) {
  const Tensor a = from_data<int64_t>({7, -7, 12, 5}), b = from_data<int64_t>({3, 3, 10, -2});
  EXPECT_EQ(values(a % b), (std::vector<double>{1, 2, 2, -1}));
  EXPECT_EQ(values(a % 4), (std::vector<double>{3, 1, 0, 1}));
  EXPECT_EQ(values(a & b), (std::vector<double>{3, 1, 8, 4}));
  EXPECT_EQ(values(a | b), (std::vector<double>{7, -5, 14, -1}));
  EXPECT_EQ(values(a ^ b), (std::vector<double>{4, -6, 6, -5}));
  EXPECT_EQ(values(a | 8), (std::vector<double>{15, -7, 12, 13}));
  EXPECT_EQ(values(a << 1), (std::vector<double>{14, -14, 24, 10}));
  EXPECT_EQ(values(a >> 1), (std::vector<double>{3, -4, 6, 2}));
  EXPECT_EQ(values(~a), (std::vector<double>{-8, 6, -13, -6}));
  const Tensor t = from_data<bool>({true, true, false}), u = from_data<bool>({true, false, false});
  EXPECT_EQ(values(t & u), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(values(t | u), (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(values(t ^ u), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(values(~t), (std::vector<double>{0, 0, 1}));
  EXPECT_USER_ERROR(ones({2}) | ones({2}), "\"bitwise_or_cpu\" not implemented for 'float32'");
}

// Var's operators stay out of calls without a Var.
TEST(Operators, OfOthersAreTheirOwn) {
  std::atomic<int> a = 1, b = 2;
  EXPECT_EQ(a + b, 3);
}

TEST(Brackets, SelectAlongTheFirstDim) {
  const Tensor x = ramp({3, 2});
  expect_equal(x[1], x.select(0, 1));
  expect_equal(x[-1], x.select(0, 2));
  EXPECT_EQ(x[1].storage(), x.storage());
  expect_equal(x[x.size(0) - 1], x.select(0, 2));
  expect_equal(x[from_data<int64_t>({2, 0})], x.index_select(0, from_data<int64_t>({2, 0})));
  expect_equal(x[from_data<bool>({true, false, true})], x[from_data<int64_t>({0, 2})]);
  EXPECT_USER_ERROR(x[3], "index 3 out of range");
  EXPECT_USER_ERROR(Tensor()[0], "an undefined tensor has no parts");
  EXPECT_USER_ERROR(x[Tensor()], "an undefined tensor is no index");
}

TEST(Methods, OfGradientsAndNumbers) {
  Tensor x = full({2}, 3.0).requires_grad_();
  EXPECT_TRUE(x.requires_grad());
  autograd::HookHandle handle = x.register_hook([](const Tensor& gradient) { return gradient * 10; });
  (x * x).sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{60, 60}));
  handle.remove();
  EXPECT_EQ(x.sum().item<double>(), 6);
  EXPECT_EQ(x.sum().item<int64_t>(), 6);
  NoGradGuard guard;
  EXPECT_FALSE((x * 2).requires_grad());
}

TEST(Tensors, AreWrittenToStreams) {
  const Tensor x = from_data<int64_t>({1, 2});
  std::ostringstream out;
  out << x;
  EXPECT_EQ(out.str(), x.to_string());
  EXPECT_EQ(fmt::format("{}", x), x.to_string());
}

TEST(Losses, NameTheirReduction) {
  const Tensor x = ramp({3, 4}), labels = from_data<int64_t>({0, 3, 1});
  EXPECT_EQ(mse_loss(x, x * 2, Reduction::kNone).dim(), 2);
  EXPECT_TRUE(close(mse_loss(x, x * 2, Reduction::kSum), (x * x).sum()));
  const Tensor each = nn::functional::cross_entropy(x, labels, {.reduction = Reduction::kNone});
  EXPECT_TRUE(close(nn::functional::cross_entropy(x, labels), each.mean()));
  EXPECT_TRUE(close(nn::functional::nll_loss(x.log_softmax(1), labels), each.mean()));
}

}  // namespace
}  // namespace weft
