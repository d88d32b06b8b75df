// Layouts of results where they do not follow from the usual rules, as PyTorch has them.
#include "ops/table_support.h"
#include "weft/ops/operators.h"

namespace weft::table {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> strides_of(const Tensor& tensor) {
  return {tensor.plain_strides().begin(), tensor.plain_strides().end()};
}
Tensor matrix() { return arange(12, kFloat32).view({3, 4}).t(); }
Tensor with_gaps() { return as_strided(arange(40, kFloat32), {4, 3}, {10, 2}, 1); }

TEST(MaskedFill, MakesAContiguousResult) {
  Tensor x = matrix(), mask = x > 3;
  EXPECT_THAT(strides_of(masked_fill(x, mask, 0)), ElementsAre(3, 1));
  EXPECT_THAT(strides_of(masked_fill(x, mask, scalar_tensor(0))), ElementsAre(3, 1));
  EXPECT_EQ(item(sum(masked_fill(x, mask, 0))).to_double(), 6);
}

TEST(Bernoulli, MakesAContiguousResult) {
  Tensor x = full({3, 2}, 0.5).t();
  EXPECT_THAT(strides_of(bernoulli(x)), ElementsAre(3, 1));
  EXPECT_THAT(strides_of(bernoulli(x, 0.5)), ElementsAre(3, 1));
  EXPECT_THAT(strides_of(bernoulli(x, full({2, 3}, 0.5))), ElementsAre(1, 2));
  EXPECT_THAT(strides_of(uniform(x)), ElementsAre(1, 2));
}

// The values of `result` where `self` has them, and `self`'s memory around.
void expect_preserved(const Tensor& result, const Tensor& self) {
  EXPECT_EQ(strides_of(result), strides_of(self));
  EXPECT_EQ(result.storage_offset().plain(), self.storage_offset().plain());
  EXPECT_NE(result.storage(), self.storage());
}

TEST(Scatters, KeepStridesAndOffset) {
  for (const Tensor& x : {matrix(), with_gaps(), arange(20, kFloat32).slice(0, 3, 15).view({4, 3})}) {
    expect_preserved(select_scatter(x, zeros({3}), 0, 1), x);
    expect_preserved(slice_scatter(x, zeros({1, 3}), 0, 1, 2), x);
    expect_preserved(diagonal_scatter(x, zeros({3})), x);
    expect_preserved(as_strided_scatter(x, zeros({2}), {2}, {1}), x);
    expect_preserved(copy(x, zeros({4, 3})), x);
    Tensor replaced = select_scatter(x, zeros({3}), 0, 1);
    EXPECT_EQ(item(sum(replaced)).to_double(), item(sum(x) - sum(select(x, 0, 1))).to_double());
    EXPECT_EQ(item(sum(copy(x, ones({4, 3})))).to_double(), 12);
  }
  EXPECT_THAT(strides_of(copy(expand(ones({4, 1}), {4, 3}), zeros({4, 3}))), ElementsAre(3, 1));
}

TEST(Cat, OfNothingButEmptyVectorsIsOne) {
  Tensor none = zeros({0});
  EXPECT_EQ(cat({none, none}, 1).plain_numel(), 0);
  EXPECT_EQ(cat({none, none}, -8).dim(), 1);
}

TEST(ThresholdBackward, HasTheLayoutOfTheInput) {
  Tensor grad = ones({4, 3});
  EXPECT_THAT(strides_of(threshold_backward(grad, matrix(), 0)), ElementsAre(1, 4));
  EXPECT_THAT(strides_of(threshold_backward(matrix(), grad, 0)), ElementsAre(3, 1));
}

TEST(ChannelsLast, OfNothingHasZeroStrides) {
  auto last = [](SymIntSpan sizes) {
    return strides_of(empty(sizes, kFloat32, {}, {}, {}, MemoryFormat::kChannelsLast));
  };
  EXPECT_THAT(last({5, 0, 5, 5}), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(last({0, 3, 4, 5}), ElementsAre(60, 1, 15, 3));
  EXPECT_THAT(last({2, 3, 4, 0}), ElementsAre(0, 1, 0, 3));
}

TEST(ChannelsLast, IsWhatTheStridesSuggest) {
  Tensor x = zeros({2, 1, 3, 4});  // fits both formats
  EXPECT_TRUE(x.is_contiguous(MemoryFormat::kChannelsLast));
  Tensor moved = x.to(kFloat32, false, false, MemoryFormat::kChannelsLast);
  EXPECT_FALSE(moved.is_same(x));
  EXPECT_THAT(strides_of(moved), ElementsAre(12, 1, 4, 1));
  EXPECT_TRUE(moved.to(kFloat32, false, false, MemoryFormat::kChannelsLast).is_same(moved));
  // A single sample whose stride says nothing.
  Tensor single = as_strided(zeros({90}), {1, 3, 5, 6}, {18, 1, 18, 3});
  EXPECT_THAT(strides_of(_adaptive_avg_pool2d(single, {2, 2})), ElementsAre(12, 4, 2, 1));
  EXPECT_THAT(strides_of(cat({single, single}, 1)), ElementsAre(180, 30, 6, 1));
  EXPECT_THAT(
      strides_of(convolution(single, ones({2, 3, 1, 1}), {}, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1)),
      ElementsAre(60, 30, 6, 1));
  Tensor gaps = permute(slice(zeros({2, 8, 9, 3}), 1, 0, 8, 2), {0, 3, 1, 2});
  EXPECT_THAT(strides_of(avg_pool2d(gaps, {1, 1})), ElementsAre(108, 1, 27, 3));
}

TEST(Convolution, OfASignalFollowsAWeightWithChannelsLast) {
  Tensor weight = permute(arange(12, kFloat32).view({2, 3, 2}), {0, 2, 1});
  Tensor x = arange(32, kFloat32).view({1, 4, 8});
  Tensor out = convolution(x, weight, {}, {3}, {1}, {2}, false, {0}, 2);
  EXPECT_THAT(strides_of(out), ElementsAre(4, 1, 2));
  std::vector<std::string> texts;
  compare_values(out, convolution(x, contiguous(weight), {}, {3}, {1}, {2}, false, {0}, 2), true, texts,
                 "out");
  EXPECT_THAT(texts, ::testing::IsEmpty());
}

TEST(Convolution, OfASignalWithChannelsLastIsRowMajor) {
  for (DType dtype : {kFloat32, kFloat64, kComplex64, kBFloat16}) {
    Tensor x = zeros({2, 3, 3}, dtype).transpose(1, 2), weight = zeros({3, 3, 1}, dtype);
    EXPECT_THAT(strides_of(conv1d(x, weight)), ElementsAre(9, 3, 1));
    Tensor one_by_one = zeros({2, 1, 2}, dtype);
    Tensor grouped = conv1d(zeros({1, 3, 2}, dtype).transpose(1, 2), one_by_one, {}, {1}, {0}, {1}, 2);
    EXPECT_THAT(strides_of(grouped), ElementsAre(4, 2, 1));
  }
}

// What can be read either way keeps the channels last, unless it is put together from two parts.
TEST(Convolution, OfComplexNumbersPrefersRowMajor) {
  auto result_of = [](DType dtype) {
    Tensor x = as_strided(zeros({6}, dtype), {2, 1, 3}, {3, 1, 1}), weight = zeros({2, 1, 1}, dtype);
    return conv1d(x, weight);
  };
  EXPECT_THAT(strides_of(result_of(kFloat32)), ElementsAre(6, 1, 2));
  EXPECT_THAT(strides_of(result_of(kComplex64)), ElementsAre(6, 3, 1));
  auto single_of = [](DType dtype) {
    Tensor x = as_strided(zeros({18}, dtype), {1, 2, 3, 3}, {18, 1, 6, 2});
    return conv2d(x, zeros({1, 2, 1, 1}, dtype));
  };
  EXPECT_THAT(strides_of(single_of(kFloat64)), ElementsAre(9, 1, 3, 1));
  EXPECT_THAT(strides_of(single_of(kComplex128)), ElementsAre(9, 9, 3, 1));
}

}  // namespace
}  // namespace weft::table
