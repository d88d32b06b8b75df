// at() and put_at(): what brackets select and assign.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/ops/indexing.h"

namespace weft {
namespace {

using testing::expect_equal;
using testing::values;

std::string sizes(const Tensor& tensor) { return describe_sizes(tensor.sizes()).str(); }
Tensor numbers() { return arange(24).view({2, 3, 4}); }

TEST(Brackets, PositionsAndSlicesAreViews) {
  Tensor x = numbers();
  expect_equal(at(x, 1), x.select(0, 1));
  expect_equal(at(x, {-1, 0, 2}), full({}, 14));
  EXPECT_EQ(sizes(at(x, {Slice(), {1, 3}})), "[2, 2, 4]");
  EXPECT_EQ(sizes(at(x, {Slice(), Slice(), {{}, {}, 2}})), "[2, 3, 2]");
  EXPECT_EQ(sizes(at(x, {kEllipsis, 0})), "[2, 3]");
  EXPECT_EQ(sizes(at(x, {0, kEllipsis, {1, {}}})), "[3, 3]");
  EXPECT_EQ(sizes(at(x, {std::nullopt, 0, std::nullopt})), "[1, 1, 3, 4]");
  EXPECT_TRUE(at(x, {Slice(), 2}).storage() == x.storage());
  Tensor whole = at(x, kEllipsis);
  EXPECT_FALSE(whole.is_same(x));
  EXPECT_TRUE(whole.storage() == x.storage());
}

TEST(Brackets, TensorsSelectPositions) {
  Tensor x = numbers(), rows = from_data<int64_t>({2, 0});
  EXPECT_EQ(values(at(x, {0, rows, 1})), (std::vector<double>{9, 1}));
  EXPECT_EQ(sizes(at(x, {Slice(), rows})), "[2, 2, 4]");
  EXPECT_EQ(sizes(at(x, {kEllipsis, rows})), "[2, 3, 2]");
  Tensor mask = x.select(2, 0) > 8;  // of sizes [2, 3]
  EXPECT_EQ(sizes(at(x, mask)), "[3, 4]");
  EXPECT_EQ(values(at(x, {mask, 1})), (std::vector<double>{13, 17, 21}));
  EXPECT_EQ(sizes(at(x, true)), "[1, 2, 3, 4]");
  EXPECT_EQ(sizes(at(x, false)), "[0, 2, 3, 4]");
  EXPECT_EQ(sizes(at(x, full({}, true, kBool))), "[1, 2, 3, 4]");
}

TEST(Brackets, Assign) {
  Tensor x = zeros({2, 3});
  put_at(x, {Slice(), 1}, from_data<float>({5, 6}));
  put_at(x, {0, 0}, 1);
  EXPECT_EQ(values(x), (std::vector<double>{1, 5, 0, 0, 6, 0}));
  put_at(x, {1, from_data<int64_t>({0, 2})}, full({1, 1, 2}, 7.0));
  EXPECT_EQ(values(x), (std::vector<double>{1, 5, 0, 7, 6, 7}));
  put_at(x, x > 4, 0);
  EXPECT_EQ(values(x), (std::vector<double>{1, 0, 0, 0, 0, 0}));
  put_at(x, kEllipsis, ones({1, 1, 3}));
  expect_equal(x, ones({2, 3}));
}

TEST(Brackets, RefuseWhatDoesNotFit) {
  EXPECT_ERROR(at(numbers(), {0, 0, 0, 0}), "too many indices for a tensor of dimension 3: there are 4");
  EXPECT_ERROR(at(numbers(), {kEllipsis, kEllipsis}), "one ellipsis");
  EXPECT_ERROR(at(numbers(), 2), "out of range");
}

}  // namespace
}  // namespace weft
