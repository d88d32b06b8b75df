// out= forms that lack arguments of the functional form, and in-place forms that change more than values.
#include "ops/table_support.h"
#include "weft/autograd/autograd.h"
#include "weft/ops/fake.h"
#include "weft/ops/operators.h"

namespace weft::table {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> sizes_of(const Tensor& tensor) {
  return {tensor.plain_sizes().begin(), tensor.plain_sizes().end()};
}

TEST(FactoriesOut, TakeTypeAndDeviceFromTheTarget) {
  Tensor target = empty({0}, kInt32);
  ones_out(target, {2, 3});
  EXPECT_EQ(target.dtype(), kInt32);
  EXPECT_THAT(sizes_of(target), ElementsAre(2, 3));
  EXPECT_EQ(item(sum(target)).to_int(), 6);
}

TEST(FactoriesOut, AnswerForFakeTensorsToo) {
  FakeMode mode;
  Tensor target = mode.fake_of(allocate_contiguous({4}, kInt64));
  full_out(target, {2, 2}, 7);
  EXPECT_THAT(sizes_of(target), ElementsAre(2, 2));
  EXPECT_EQ(target.dtype(), kInt64);
}

template <typename F>
std::string message_of(F f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Out, OfOneElementInManyPlacesIsRefusedBeforeItIsResized) {
  Tensor memory = zeros({1}), spread = expand(memory, {3}), x = zeros({4});
  EXPECT_THAT(message_of([&] { index_select_out(spread, x, 0, zeros({2}, kInt64)); }),
              HasSubstr("more than one element of the written-to tensor"));
  EXPECT_THAT(sizes_of(spread), ElementsAre(3));
}

TEST(Out, OfATruthValueMayBeTheInputThatIsResized) {
  Tensor memory = zeros({6}, kBool);
  memory.select(0, 4).fill_(true);
  Tensor rows = memory.view({2, 3}), target = memory.narrow(0, 0, 1);
  EXPECT_TRUE(any_out(target, rows, 1).is_same(target));
  EXPECT_THAT(sizes_of(target), ElementsAre(2));
  EXPECT_FALSE(target.select(0, 0).item().to_bool());
  EXPECT_TRUE(target.select(0, 1).item().to_bool());
  Tensor all_true = ones({4}, kBool);
  all_out(all_true, all_true);
  EXPECT_THAT(sizes_of(all_true), ElementsAre());
  EXPECT_TRUE(all_true.item().to_bool());
}

TEST(Out, OfAnotherTypeIsRefusedWhereNothingIsConverted) {
  Tensor x = zeros({2, 2}), at = zeros({2, 2}, kInt64), target = zeros({2, 2}, kFloat64);
  EXPECT_THAT(message_of([&] { gather_out(target, x, 1, at); }),
              HasSubstr("Expected out tensor to have dtype"));
}

TEST(Out, MustHaveTheTypeOfTheResultWhereNothingIsConverted) {
  Tensor x = ones({2, 2}), wide = zeros({2, 2}, kFloat64), mask = ones({2, 2}, kBool);
  const char* words = "Expected out tensor to have dtype";
  EXPECT_THAT(message_of([&] { where_out(wide, mask, x, x); }), HasSubstr(words));
  EXPECT_THAT(message_of([&] { clone_out(wide, x); }), HasSubstr(words));
  EXPECT_THAT(message_of([&] { copy_out(wide, x, x); }), HasSubstr(words));
  EXPECT_THAT(message_of([&] { masked_fill_out(wide, x, mask, 1); }), HasSubstr(words));
  EXPECT_THAT(message_of([&] { add_out(wide, x, Scalar(1)); }), HasSubstr(words));
  EXPECT_THAT(message_of([&] { div_out(wide, x, Scalar(2)); }), HasSubstr(words));
  EXPECT_THAT(message_of([&] { linear_out(wide, x, x); }), HasSubstr(words));
  EXPECT_THAT(message_of([&] { softmax_out(wide, x, 0); }), HasSubstr(words));
  EXPECT_THAT(message_of([&] { neg_out(wide, x); }), HasSubstr(words));
  EXPECT_THAT(message_of([&] { abs_out(wide, x); }), HasSubstr("Found dtype"));
  // Tensors on both sides are promoted, and converted at the end.
  add_out(wide, x, x);
  EXPECT_EQ(item(sum(wide)).to_double(), 8);
}

TEST(Out, OfASumIsTheTypeItIsMadeIn) {
  Tensor x = full({3}, 1.5), integer = zeros({}, kInt64), wide = zeros({}, kFloat64),
         half = zeros({}, kFloat16);
  int64_t dims[] = {0};
  sum_out(integer, x, IntSpan(dims));
  EXPECT_EQ(item(integer).to_int(), 3);
  sum_out(wide, x, IntSpan(dims));
  EXPECT_EQ(item(wide).to_double(), 4.5);
  mean_out(half, x, IntSpan(dims));
  EXPECT_EQ(item(half).to_double(), 1.5);
  EXPECT_THAT(message_of([&] { mean_out(integer, x, IntSpan(dims)); }), HasSubstr("can't be cast"));
  EXPECT_THAT(message_of([&] { sum_out(wide, x, IntSpan(dims), false, kFloat32); }),
              HasSubstr("Expected out tensor to have dtype"));
  EXPECT_THAT(message_of([&] { sum_out(wide, x); }), HasSubstr("Expected out tensor to have dtype"));
  Tensor running = zeros({3}, kInt32), truth = zeros({3}, kBool);
  cumsum_out(running, x, 0);
  EXPECT_EQ(item(sum(running)).to_int(), 6);
  EXPECT_THAT(message_of([&] { cumsum_out(truth, x, 0); }), HasSubstr("not implemented for 'Bool'"));
  EXPECT_THAT(message_of([&] { cumsum_out(running, x, 0, kFloat32); }),
              HasSubstr("Expected out tensor to have dtype"));
}

TEST(Out, OfTruthIsBoolOrBytes) {
  Tensor bytes = ones({3}, kUInt8), truth = zeros({}, kBool), number = zeros({}), byte = zeros({}, kUInt8);
  any_out(truth, bytes);
  EXPECT_TRUE(item(truth).to_bool());
  all_out(byte, ones({3}));
  EXPECT_EQ(item(byte).to_int(), 1);
  EXPECT_THAT(message_of([&] { any_out(number, ones({3})); }),
              HasSubstr("any only supports bool tensor for result, got: "));
  EXPECT_THAT(message_of([&] { all_out(number, ones({3})); }), HasSubstr("all only supports bool tensor"));
}

TEST(Out, ThatIsAnOperandIsReadBeforeItIsResized) {
  const Tensor a = arange(6, kFloat64).view({2, 3}), b = ones({3, 400}, kFloat64);
  Tensor target = a.clone(), batch = a.view({1, 2, 3}).clone(), sums = a.clone();
  mm_out(target, target, b);
  bmm_out(batch, batch, b.view({1, 3, 400}));
  std::vector<std::string> texts;
  compare_values(target, mm(a, b), true, texts, "mm");
  compare_values(batch, mm(a, b).view({1, 2, 400}), true, texts, "bmm");
  int64_t dims[] = {0};
  sum_out(sums, sums, IntSpan(dims));
  compare_values(sums, sum(a, IntSpan(dims)), true, texts, "sum");
  EXPECT_THAT(texts, ::testing::IsEmpty());
  Tensor row = ones({3});
  EXPECT_THAT(message_of([&] { add_out(row, row, ones({2, 3})); }),
              HasSubstr("output with shape [3] doesn't match the broadcast shape [2, 3]"));
  EXPECT_THAT(sizes_of(row), ElementsAre(3));
}

TEST(DetachInPlace, LeavesTheHistoryBehind) {
  Tensor x = ones({2}).set_requires_grad(), y = x * 2;
  detach_(y);
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(y.is_leaf());
  y.set_requires_grad();
  sum(y * 3).backward();
  EXPECT_FALSE(x.grad().defined());
  EXPECT_EQ(item(sum(y.grad())).to_double(), 6);
}

TEST(DetachInPlace, HoldsWhileGradientsAreOff) {
  Tensor x = ones({2}).set_requires_grad(), y = x * 2;
  {
    GradModeScope no_grad(false);
    detach_(y);
  }
  EXPECT_FALSE(y.requires_grad());
}

TEST(DetachInPlace, RefusesViews) {
  Tensor x = ones({2}).set_requires_grad(), y = x * 2, part = select(y, 0, 0);
  EXPECT_THAT(message_of([&] { detach_(part); }), HasSubstr("Can't detach views in-place"));
}

TEST(BatchNorm, WritesItsRunningStatistics) {
  Tensor x = arange(12, kFloat64).view({4, 3}), mean_ = zeros({3}, kFloat64), var_ = ones({3}, kFloat64);
  uint32_t version = mean_.version();
  auto [out, save_mean, save_invstd] =
      _native_batch_norm_legit(x, Tensor(), Tensor(), mean_, var_, true, 0.5, 1e-5);
  EXPECT_GT(mean_.version(), version);
  EXPECT_EQ(item(select(mean_, 0, 0)).to_double(), 2.25);
  auto [again, m, r, new_mean, new_var] = _native_batch_norm_legit_functional(
      x, Tensor(), Tensor(), zeros({3}, kFloat64), ones({3}, kFloat64), true, 0.5, 1e-5);
  std::vector<std::string> texts;
  compare_values(new_mean, mean_, true, texts, "running mean");
  compare_values(new_var, var_, true, texts, "running variance");
  compare_values(again, out, true, texts, "result");
  EXPECT_THAT(texts, ::testing::IsEmpty());
}

// Values that PyTorch 2.13 gives: it rounds dense and strided inputs, and the two types, in different places.
TEST(BatchNorm, RoundsNarrowStatisticsAsPyTorchDoes) {
  struct Rounded {
    DType dtype;
    bool is_strided;
    double momentum;
    std::vector<double> statistics;  // two means, two variances
  };
  const Rounded cases[] = {
      {kBFloat16, false, 0.1, {0.318359375, 0.66015625, 1.1328125, 0.92578125}},
      {kBFloat16, false, 0.3, {0.35546875, 0.578125, 1.203125, 0.984375}},
      {kBFloat16, true, 0.1, {0.318359375, 0.66015625, 1.140625, 0.92578125}},
      {kBFloat16, true, 0.3, {0.35546875, 0.578125, 1.2109375, 0.984375}},
      {kFloat16, false, 0.1, {0.318359375, 0.65966796875, 1.1357421875, 0.92822265625}},
      {kFloat16, false, 0.3, {0.35546875, 0.5791015625, 1.20703125, 0.9853515625}},
      {kFloat16, true, 0.1, {0.318359375, 0.65966796875, 1.1357421875, 0.92822265625}},
      {kFloat16, true, 0.3, {0.35546875, 0.5791015625, 1.20703125, 0.9853515625}},
  };
  for (const Rounded& one : cases) {
    SCOPED_TRACE(fmt::format("{}, {}, {}", dtype_name(one.dtype), one.is_strided, one.momentum));
    Tensor x = (remainder(arange(48, kFloat64) * 7919, 31) / 8 - 1.5).view({24, 2}).to(one.dtype);
    if (one.is_strided) x = x.t().contiguous().t();
    Tensor mean_ = from_data<double>({0.3, 0.7}).to(one.dtype),
           var_ = from_data<double>({1.1, 0.9}).to(one.dtype);
    native_batch_norm(x, Tensor(), Tensor(), mean_, var_, true, one.momentum, 1e-5);
    std::vector<double> got;
    for (const Tensor& statistics : {mean_, var_})
      for (int64_t i : {0, 1}) got.push_back(item(select(statistics, 0, i)).to_double());
    EXPECT_THAT(got, ::testing::ElementsAreArray(one.statistics));
  }
}

}  // namespace
}  // namespace weft::table
