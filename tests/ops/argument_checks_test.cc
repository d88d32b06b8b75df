// Arguments that PyTorch refuses, in its words, and those it takes that look odd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/expect_error.h"
#include "support/tensors.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using testing::values;

// --- reaching over memory --------------------------------------------------------------------------------

TEST(AsStrided, RefusesStridesWhoseReachIsNoNumber) {
  const int64_t s = 6148914691236517206, huge = std::numeric_limits<int64_t>::max();
  Tensor x = zeros({100});
  constexpr const char* overflowed = "Storage size calculation overflowed with sizes=[2, 2, 2]";
  EXPECT_USER_ERROR(as_strided(x, {2, 2, 2}, {s, s, s}, 0), overflowed);
  EXPECT_USER_ERROR(x.as_strided_({2, 2, 2}, {s, s, s}, 0), overflowed);
  EXPECT_USER_ERROR(as_strided_scatter(x, ones({2, 2, 2}), {2, 2, 2}, {s, s, s}, 0), overflowed);
  EXPECT_USER_ERROR(zeros({1}).set_(x, 0, {2, 2, 2}, {s, s, s}), overflowed);
  EXPECT_USER_ERROR(as_strided(x, {2}, {huge}, huge), "Storage size calculation overflowed");
  EXPECT_USER_ERROR(as_strided(x, {1}, {1}, huge), "Storage size calculation overflowed");
  EXPECT_USER_ERROR(as_strided(x, {2, 2}, {100, 1}, 0), "requiring a storage size of 408 are out of bounds");
  EXPECT_EQ(as_strided(x, {0, 2}, {huge, huge}, 0).plain_numel(), 0);
}

TEST(Set, RefusesNegativeStrides) {
  EXPECT_USER_ERROR(zeros({1}).set_(zeros({4}), 0, {2}, {-1}), "Negative strides are not supported");
}

// --- numbers at the ends of their range ------------------------------------------------------------------

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min(),
                  kHighest = std::numeric_limits<int64_t>::max();

TEST(Diagonal, BeyondTheMatrixIsEmpty) {
  const Tensor x = ones({2, 3});
  for (const int64_t offset : {kLowest, kHighest}) {
    EXPECT_EQ(x.diagonal(offset).plain_numel(), 0);
    EXPECT_EQ(diagonal_copy(x, offset).plain_numel(), 0);
    EXPECT_USER_ERROR(diag_embed(x, offset), "size arithmetic overflows int64");
  }
}

TEST(Chunk, RefusesMoreViewsThanMemoryHolds) {
  EXPECT_USER_ERROR(chunk(zeros({0}), kHighest), "chunk: 9223372036854775807 parts are more than");
  EXPECT_USER_ERROR(unbind(zeros({1}).expand({int64_t{1} << 40})),
                    "unbind: 1099511627776 parts are more than");
  EXPECT_USER_ERROR(split(zeros({1}).expand({int64_t{1} << 40}), 1),
                    "split: 1099511627776 parts are more than");
  EXPECT_EQ(chunk(zeros({3}), kHighest).size(), 3u);
  EXPECT_EQ(split(zeros({3}), kHighest).size(), 1u);
}

TEST(Arange, TakesTheLongestSteps) {
  EXPECT_EQ(arange(0, kHighest, kHighest).plain_numel(), 1);
  EXPECT_EQ(arange(5, -5, kLowest).plain_numel(), 1);
}

TEST(Empty, MayHaveAnyStridesWhereNothingIs) {
  const Tensor x = zeros({0, kHighest});
  EXPECT_EQ(x.clone().plain_numel(), 0);
  EXPECT_EQ((x + 1).plain_numel(), 0);
}

// --- memory ----------------------------------------------------------------------------------------------

TEST(ScatterAdd, TakesNoPositionWithoutAValue) {
  EXPECT_USER_ERROR(
      scatter_add(zeros({5}), 0, zeros({}, kInt64), zeros({0})),
      "Expected index [] to be no larger than self [5] apart from dimension 0 and to be no larger");
  EXPECT_THAT(values(scatter_add(zeros({2}), 0, zeros({1}, kInt64), full({}, 2.))), ElementsAre(2, 0));
}

TEST(LazyBits, AreKeptByAnOutTensorThatIsResized) {
  const Tensor x = testing::ramp({2, 3}).to(kComplex64);
  Tensor target = conj(zeros({4}, kComplex64));
  EXPECT_TRUE(mul_out(target, x, x).is_same(target));
  EXPECT_TRUE((target == x * x).all().item().to_bool());
  EXPECT_TRUE(target.is_conj());
}

// --- losses ----------------------------------------------------------------------------------------------

TEST(CrossEntropy, RefusesTargetsOfAnotherShape) {
  EXPECT_USER_ERROR(cross_entropy_loss(ones({2, 3, 2}), zeros({2, 1, 2}, kInt64)),
                    "Expected target size [2, 2], got [2, 1, 2]");
  EXPECT_USER_ERROR(cross_entropy_loss(ones({2, 3, 2, 2, 2}), zeros({2, 2, 4}, kInt64)),
                    "Expected target size [2, 2, 2, 2], got [2, 2, 4]");
  EXPECT_USER_ERROR(nll_loss_nd(ones({2, 3, 2}), zeros({3, 2}, kInt64)),
                    "Expected input batch_size (2) to match target batch_size (3).");
  EXPECT_USER_ERROR(nll_loss_nd(ones({2, 3, 2}), zeros({}, kInt64)),
                    "Expected input batch_size (2) to match target batch_size (0).");
}

TEST(CrossEntropy, RefusesAWeightThatIsNoVectorOfClasses) {
  constexpr const char* words = "weight tensor should be defined either for all 3 classes or no classes";
  EXPECT_USER_ERROR(cross_entropy_loss(ones({2, 3}), ones({2, 3}), full({}, 1.)), words);
  EXPECT_USER_ERROR(cross_entropy_loss(ones({2, 3}), ones({2, 3}), ones({1, 3})), words);
  EXPECT_USER_ERROR(cross_entropy_loss(ones({2, 3}), zeros({2}, kInt64), full({}, 1.)), words);
}

// --- pooling ---------------------------------------------------------------------------------------------

TEST(Pool, RefusesWindowsBeyondInt32) {
  const Tensor x = ones({1, 1, 4, 4});
  const int64_t huge = int64_t{1} << 62;
  EXPECT_USER_ERROR(max_pool2d(x, {huge, 2}), "integer out of range");
  EXPECT_USER_ERROR(max_pool2d(x, {2, 2}, {1, 1}, {0, 0}, {huge, 1}), "integer out of range");
  EXPECT_USER_ERROR(avg_pool2d(x, {2, 2}, {huge, 1}), "integer out of range");
  EXPECT_USER_ERROR(avg_pool2d(x, {3, 3}, {1, 1}, {huge, 1}), "integer out of range");
}

TEST(Pool, OfTheLongestWindowsIsThatOfTheImage) {
  const int64_t longest = std::numeric_limits<int32_t>::max();
  const Tensor x = testing::ramp({1, 1, 4, 4});
  Tensor pooled =
      max_pool2d(x, {longest, longest}, {longest, longest}, {longest / 2, longest / 2}, {1, 1}, true);
  EXPECT_EQ(pooled.plain_numel(), 1);
  EXPECT_EQ(pooled.max().item().to_double(), x.max().item().to_double());
}

TEST(AdaptivePool, OfNothingHasAnyNumberOfBins) {
  const int64_t many = int64_t{1} << 40;
  EXPECT_EQ(adaptive_avg_pool2d(zeros({0, 2, 4, 3}), {many, 2}).plain_numel(), 0);
  EXPECT_EQ(adaptive_avg_pool2d(zeros({1, 2, 4, 3}), {many, 0}).plain_numel(), 0);
}

TEST(AdaptivePool, TakesNoChannels) {
  EXPECT_EQ(describe(adaptive_avg_pool2d(zeros({1, 0, 4, 3}), {2, 2})).str(), "f32[1, 0, 2, 2]");
  EXPECT_USER_ERROR(adaptive_avg_pool2d(zeros({1, 2, 0, 3}), {2, 2}),
                    "non-zero size for non-batch dimensions");
  EXPECT_USER_ERROR(avg_pool2d(zeros({1, 0, 4, 4}), {2, 2}), "non-zero size for non-batch dimensions");
}

TEST(AveragePool, KnowsOneTypeOfIntegers) {
  for (DType type : {kUInt8, kInt8, kInt16, kInt32, kBool, kComplex64})
    EXPECT_USER_ERROR(avg_pool2d(ones({1, 1, 4, 4}, type), {2, 2}), "\"avg_pool2d\" not implemented for");
  EXPECT_THAT(values(avg_pool2d(full({1, 1, 2, 2}, 3, kInt64), {2, 2})), ElementsAre(3));
}

TEST(MaxPool, OfPaddingAloneIsTheLowestNumberOfTheType) {
  auto lowest = [](DType type) {
    return max_pool2d(ones({1, 1, 2, 2}, type), {2, 2}, {2, 2}, {1, 1}, {3, 3}, true).item().to_double();
  };
  EXPECT_EQ(lowest(kUInt8), 0);
  EXPECT_EQ(lowest(kInt8), -128);
  EXPECT_EQ(lowest(kInt16), -32768);
  EXPECT_EQ(lowest(kInt32), -2147483648.0);
  EXPECT_EQ(lowest(kInt64), -9223372036854775808.0);
  EXPECT_EQ(lowest(kFloat32), -std::numeric_limits<double>::infinity());
}

// --- types and options -----------------------------------------------------------------------------------

TEST(Clamp, OfTruthValuesBetweenTwoIsRefused) {
  Tensor b = ones({2}, kBool);
  EXPECT_USER_ERROR(clamp(b, b, b), "\"clamp_cpu\" not implemented for 'bool'");
  EXPECT_THAT(values(clamp(b, zeros({2}, kInt64), b)), ElementsAre(1, 1));
  EXPECT_EQ(clamp(b, b).dtype(), kBool);
}

TEST(NativeDropout, OfIntegersIsRefusedInTrainingOnly) {
  for (DType type : {kBool, kInt64})
    EXPECT_USER_ERROR(native_dropout(ones({4}, type), 0.5, true), "result type Float can't be cast");
  EXPECT_THAT(values(std::get<0>(native_dropout(ones({2}, kInt64), 0.5, false))), ElementsAre(1, 1));
}

TEST(Softmax, OfNothingTakesAnyType) {
  for (DType type : {kInt64, kBool, kComplex64}) {
    EXPECT_EQ(_softmax(zeros({0, 3}, type), 1, false).dtype(), type);
    EXPECT_EQ(_log_softmax(zeros({3, 0}, type), 1, false).dtype(), type);
    EXPECT_EQ(_softmax_backward_data(zeros({0, 3}, type), zeros({0, 3}, type), 1, type).dtype(), type);
  }
  EXPECT_USER_ERROR(_softmax(zeros({1, 3}, kInt64), 1, false),
                    "\"softmax_lastdim_kernel_impl\" not implemented");
}

TEST(PinnedMemory, IsRefusedByFactoriesOfRandomNumbersToo) {
  constexpr const char* words = "weft has no pinned memory";
  Tensor x = zeros({2});
  EXPECT_USER_ERROR(rand({2}, {}, {}, {}, true), words);
  EXPECT_USER_ERROR(randn({2}, {}, {}, {}, true), words);
  EXPECT_USER_ERROR(randint(3, {2}, {}, {}, {}, true), words);
  EXPECT_USER_ERROR(rand_like(x, {}, {}, {}, true), words);
  EXPECT_USER_ERROR(randn_like(x, {}, {}, {}, true), words);
  EXPECT_USER_ERROR(randint_like(x, 3, {}, {}, {}, true), words);
}

// --- types -----------------------------------------------------------------------------------------------

TEST(NllLoss2d, WantsWideTargets) {
  Tensor scores = zeros({1, 2, 2, 2}), bytes = zeros({1, 2, 2}, kUInt8);
  EXPECT_USER_ERROR(nll_loss2d_forward(scores, bytes, {}, 1, -100),
                    "expected scalar type Long but found Byte");
  EXPECT_USER_ERROR(nll_loss2d_backward(ones({}), scores, bytes, {}, 1, -100, ones({})),
                    "expected scalar type Long but found Byte");
  Tensor total = std::get<1>(nll_loss2d_forward(zeros({0, 2, 2, 2}), zeros({0, 2, 2}, kUInt8), {}, 1, -100));
  EXPECT_EQ(values(total), std::vector<double>{0});
  EXPECT_EQ(values(std::get<1>(nll_loss_forward(zeros({1, 2}), zeros({1}, kUInt8), {}, 1, -100))),
            std::vector<double>{1});
}

TEST(Addmm, OfNoProductsKeepsTheTypeOfWhatIsScaled) {
  Tensor x = ones({2, 2}, kInt64), left = ones({2, 0}, kInt64), right = ones({0, 2}, kInt64);
  constexpr const char* words = "result type Float can't be cast to the desired output type";
  EXPECT_USER_ERROR(addmm(x, left, right, 0.2, 0.6), words);
  EXPECT_USER_ERROR(x.addmm_(left, right, 0.2, 1), words);
  Tensor out = zeros({2, 2}, kInt64);
  EXPECT_USER_ERROR(addmm_out(out, x, left, right, 0.2, 1), words);
  EXPECT_USER_ERROR(baddbmm(x.unsqueeze(0), left.unsqueeze(0), right.unsqueeze(0), 0.2, 1), words);
  EXPECT_EQ(values(addmm(x, left, right, 1, 0.6)), (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(values(addmm(x, left, right, 2, 3)), (std::vector<double>{2, 2, 2, 2}));
  EXPECT_EQ(values(addmm(x, ones({2, 3}, kInt64), ones({3, 2}, kInt64), 0.2, 1)),
            (std::vector<double>{3, 3, 3, 3}));
}

TEST(Abs, OfComplexNumbersGoesIntoRealOnesOrItsOwnType) {
  Tensor z = ones({2}, kComplex128), narrow = zeros({2}, kComplex64), same = zeros({2}, kComplex128),
         real = zeros({2});
  EXPECT_USER_ERROR(abs_out(narrow, z), "Found dtype complex64 but expected complex128");
  EXPECT_USER_ERROR(abs_out(same, ones({2}, kComplex64)), "Found dtype complex128 but expected complex64");
  abs_out(same, z);
  abs_out(real, z);
  EXPECT_EQ(values(weft::real(same)), (std::vector<double>{1, 1}));
  EXPECT_EQ(values(real), (std::vector<double>{1, 1}));
}

}  // namespace
}  // namespace weft
