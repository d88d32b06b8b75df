#include "weft/sym/value_range.h"

#include <gtest/gtest.h>

namespace weft::sym {
namespace {

constexpr int64_t kInf = ValueRange::kInf, kNegInf = ValueRange::kNegInf;

TEST(ValueRange, SumsKeepInfinities) {
  EXPECT_EQ((ValueRange{2, kInf} + ValueRange{1, 3}), (ValueRange{3, kInf}));
  EXPECT_EQ((ValueRange{kNegInf, 5} + ValueRange{kNegInf, kInf}), (ValueRange{}));
  EXPECT_EQ((ValueRange{kInf - 1, kInf - 1} + point(10)).hi, kInf);
}

TEST(ValueRange, ProductsTakeTheCorners) {
  EXPECT_EQ((ValueRange{-2, 3} * ValueRange{-5, 4}), (ValueRange{-15, 12}));
  EXPECT_EQ((ValueRange{0, kInf} * ValueRange{-1, 2}), (ValueRange{kNegInf, kInf}));
  EXPECT_EQ((ValueRange{2, kInf} * point(0)), point(0));
}

TEST(ValueRange, DivisionLeavesTheDivisorsZeroOut) {
  EXPECT_EQ(floor_div(ValueRange{2, kInf}, point(2)), (ValueRange{1, kInf}));
  EXPECT_EQ(floor_div(ValueRange{4, 10}, ValueRange{0, 2}), (ValueRange{2, 10}));
  EXPECT_EQ(floor_div(ValueRange{-7, 7}, ValueRange{-2, 2}), (ValueRange{-7, 7}));
  EXPECT_EQ(floor_div(ValueRange{3, 5}, ValueRange{2, kInf}), (ValueRange{0, 2}));
  EXPECT_EQ(floor_div(ValueRange{-3, -1}, ValueRange{4, kInf}), point(-1));
}

TEST(ValueRange, RemaindersHaveTheSignOfTheDivisor) {
  EXPECT_EQ(mod(ValueRange{}, point(4)), (ValueRange{0, 3}));
  EXPECT_EQ(mod(ValueRange{}, point(-4)), (ValueRange{-3, 0}));
  EXPECT_EQ(mod(ValueRange{1, 2}, point(4)), (ValueRange{1, 2}));
  EXPECT_EQ(mod(ValueRange{0, 100}, ValueRange{1, kInf}), (ValueRange{0, 100}));
}

TEST(ValueRange, EvenPowersAreNotNegative) {
  EXPECT_EQ(power(ValueRange{-3, 2}, point(2)), (ValueRange{0, 9}));
  EXPECT_EQ(power(ValueRange{-3, 2}, point(3)), (ValueRange{-27, 8}));
  EXPECT_EQ(power(point(2), ValueRange{0, 10}), (ValueRange{1, 1024}));
  EXPECT_EQ(power(ValueRange{2, kInf}, ValueRange{1, kInf}), (ValueRange{2, kInf}));
}

TEST(ValueRange, TruthIsARange) {
  EXPECT_EQ(is_zero(ValueRange{1, kInf}), point(0));
  EXPECT_EQ(is_zero(point(0)), point(1));
  EXPECT_EQ(is_negative(ValueRange{-5, 0}), kAnyBool);
  EXPECT_EQ(is_not_positive(ValueRange{-5, 0}), point(1));
  EXPECT_EQ(logical_not(point(1)), point(0));
}

TEST(ValueRange, PrintsInfinities) { EXPECT_EQ((ValueRange{2, kInf}).to_string(), "[2, inf]"); }

}  // namespace
}  // namespace weft::sym
