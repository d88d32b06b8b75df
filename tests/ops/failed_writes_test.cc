// What a write that fails leaves behind: its target as it was. And writes into the memory that is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"

namespace weft {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::values;

Tensor integers(std::vector<int64_t> v) { return from_data(v); }
std::vector<int64_t> sizes_of(const Tensor& tensor) {
  return {tensor.plain_sizes().begin(), tensor.plain_sizes().end()};
}
constexpr const char* kZero = "an integer was divided by zero";
constexpr const char* kShared =
    "some elements of the input tensor and the written-to tensor refer to a single memory location";

TEST(IntegerDivisionInPlace, HappensWhollyOrNotAtAll) {
  Tensor by = integers({2, 5, 0, 1});
  for (const char* mode : {"trunc", "floor"}) {
    Tensor x = full({4}, 10, kInt64);
    EXPECT_USER_ERROR(x.div_(by, std::string_view(mode)), kZero);
    EXPECT_THAT(values(x), Each(10));
    EXPECT_EQ(x.version(), full({4}, 10, kInt64).version());
  }
  Tensor x = full({4}, 10, kInt64);
  EXPECT_USER_ERROR(x.remainder_(by), kZero);
  EXPECT_USER_ERROR(x.fmod_(by), kZero);
  EXPECT_USER_ERROR(x.floor_divide_(by), kZero);
  EXPECT_USER_ERROR(x.remainder_(0), kZero);
  EXPECT_THAT(values(x), Each(10));
  x.floor_divide_(integers({2, 5, 3, 1}));
  EXPECT_THAT(values(x), ElementsAre(5, 2, 3, 10));
}

TEST(IntegerDivisionInPlace, LooksAtDivisorsInTheTypeThatComputes) {
  Tensor x = full({2, 2}, 10, kInt8);
  EXPECT_USER_ERROR(x.remainder_(256), kZero);
  EXPECT_USER_ERROR(x.t().div_(integers({4, 0}).to(kInt8), std::string_view("trunc")), kZero);
  EXPECT_THAT(values(x), Each(10));
}

TEST(IntegerDivisionInPlace, OfNothingIsNoError) {
  Tensor x = zeros({0, 2}, kInt64);
  x.floor_divide_(integers({0, 0}));
  EXPECT_THAT(sizes_of(x), ElementsAre(0, 2));
}

TEST(OutOfAnError, KeepsItsSizes) {
  Tensor x = testing::ramp({3}), wrong = integers({0, 9, 1});
  Tensor out = zeros({2}, kFloat64);
  EXPECT_USER_ERROR(gather_out(out, x, 0, wrong), "index 9 is out of bounds");
  EXPECT_THAT(sizes_of(out), ElementsAre(2));
  EXPECT_THAT(values(out), Each(0));
  EXPECT_USER_ERROR(index_select_out(out, x, 0, wrong), "index out of range");
  EXPECT_USER_ERROR(embedding_out(out, testing::ramp({3, 2}), wrong), "index out of range");
  EXPECT_THAT(sizes_of(out), ElementsAre(2));
}

TEST(OutInTheMemoryThatIsRead, IsRefusedWhereElementsMove) {
  Tensor x = testing::vec({1, 2, 3}), at = integers({2, 1, 0}), mask = ones({3}, kBool);
  EXPECT_USER_ERROR(gather_out(x, x, 0, at), kShared);
  EXPECT_USER_ERROR(index_select_out(x, x, 0, at), kShared);
  EXPECT_USER_ERROR(index_select_out(at, integers({1, 2, 3}), 0, at), kShared);
  EXPECT_USER_ERROR(masked_select_out(x, x, mask), kShared);
  EXPECT_USER_ERROR(masked_select_out(mask, ones({3}, kBool), mask), kShared);
  EXPECT_USER_ERROR(nonzero_out(at, at), kShared);
  EXPECT_USER_ERROR(cat_out(x, {x, x}), kShared);
  EXPECT_USER_ERROR(cat_out(x, {x}), kShared);
  EXPECT_USER_ERROR(scatter_(x, 0, at, x), kShared);
  EXPECT_USER_ERROR(scatter_(at, 0, at, 1), kShared);
  EXPECT_USER_ERROR(scatter_add_(x, 0, at, x), kShared);
  EXPECT_USER_ERROR(index_add_(x, 0, at, x), kShared);
  EXPECT_THAT(values(x), ElementsAre(1, 2, 3));
}

TEST(OutInTheMemoryThatIsRead, IsTakenWhereElementsStay) {
  Tensor x = testing::vec({1, 2, 3}), at = integers({2, 1, 0});
  cumsum_out(x, x, 0);
  EXPECT_THAT(values(x), ElementsAre(1, 3, 6));
  gather_out(at, integers({7, 8, 9}), 0, at);
  EXPECT_THAT(values(at), ElementsAre(9, 8, 7));
  Tensor memory = testing::ramp({6});
  EXPECT_USER_ERROR(cumsum_out(memory.slice(0, 1, 6), memory.slice(0, 0, 5), 0), kShared);
}

}  // namespace
}  // namespace weft
