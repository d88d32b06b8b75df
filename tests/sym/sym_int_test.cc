#include "weft/sym/sym_int.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "support/sanitizers.h"
#include "weft/sym/shape_env.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

#define EXPECT_ERROR(expression, text)             \
  try {                                            \
    static_cast<void>(expression);                 \
    ADD_FAILURE() << "no error from " #expression; \
  } catch (const Error& error) {                   \
    EXPECT_THAT(error.message(), HasSubstr(text)); \
  }

TEST(SymIntPlain, IsAnInt64InDisguise) {
  static_assert(sizeof(SymInt) == 8 && sizeof(SymBool) == 8 && sizeof(SymFloat) == 16);
  std::vector<SymInt> sizes{2, 3, INT64_MAX, -5, -(int64_t{1} << 62)};
  const auto* raw = reinterpret_cast<const int64_t*>(sizes.data());
  EXPECT_EQ(raw[0], 2);
  EXPECT_EQ(raw[2], INT64_MAX);
  EXPECT_EQ(raw[3], -5);
  EXPECT_EQ(raw[4], -(int64_t{1} << 62));
  for (const SymInt& size : sizes) EXPECT_FALSE(size.is_symbolic());
}

TEST(SymIntPlain, IsAConstantExpression) {
  constexpr SymInt three = 3;
  static_assert(three.plain() == 3);
}

TEST(SymIntPlain, VeryNegativeValuesAreKept) {
  SymInt least = INT64_MIN;
  EXPECT_EQ(least.maybe_plain(), INT64_MIN);
  EXPECT_EQ(static_cast<int64_t>(least), INT64_MIN);
  EXPECT_EQ(static_cast<int64_t>(least + 1), INT64_MIN + 1);
  EXPECT_TRUE(least < 0);
  EXPECT_TRUE(least == SymInt(INT64_MIN));
  EXPECT_EQ((least + INT64_MAX).plain(), -1);
}

TEST(SymIntPlain, ArithmeticFollowsCpp) {
  SymInt a = 7, b = -2;
  EXPECT_EQ((a + b).plain(), 5);
  EXPECT_EQ((a * b).plain(), -14);
  EXPECT_EQ((a / b).plain(), -3);
  EXPECT_EQ((a % b).plain(), 1);
  EXPECT_EQ(floor_div(a, b).plain(), -4);
  EXPECT_EQ(mod(a, b).plain(), -1);
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(mod(SymInt(kLowest), SymInt(3)).plain(), 1);
  EXPECT_EQ(mod(SymInt(kLowest), SymInt(-3)).plain(), -2);
  EXPECT_EQ(ceil_div(a, 2).plain(), 4);
  EXPECT_EQ(min(a, 3).plain(), 3);
  EXPECT_EQ(max(a, b).plain(), 7);
  EXPECT_EQ(pow(a, 2).plain(), 49);
  EXPECT_EQ((-a).plain(), -7);
}

TEST(SymIntPlain, MixesWithEveryIntegerType) {
  SymInt a = 7;
  size_t n = 2;
  EXPECT_EQ((a + n).plain(), 9);
  EXPECT_EQ((n * a).plain(), 14);
  EXPECT_TRUE(a > int8_t{3});
  EXPECT_TRUE(3u < a);
  EXPECT_EQ((a * 0.5).plain(), 3.5);
  int narrow = a;
  EXPECT_EQ(narrow, 7);
}

TEST(SymIntPlain, OverflowIsAnError) {
  SymInt big = INT64_MAX;
  EXPECT_ERROR(big + 1, "size arithmetic overflows int64: 9223372036854775807 + 1");
  EXPECT_ERROR(big * 2, "size arithmetic overflows int64: 9223372036854775807 * 2");
  EXPECT_ERROR(-big - 2, "size arithmetic overflows int64");
  EXPECT_ERROR(SymInt(1) / 0, "division of the size 1 by zero");
  EXPECT_ERROR(SymInt(UINT64_MAX), "size 18446744073709551615 does not fit into int64");
}

class SymIntTest : public ::testing::Test {
 protected:
  Ref<ShapeEnv> env = ShapeEnv::create();
  SymInt s0 = env->create_symbol(8, "x.size(0)"), s1 = env->create_symbol(12, "x.size(1)");
  std::string text(const SymInt& value) { return value.to_string(); }
};

TEST_F(SymIntTest, EqualExpressionsAreOneNode) {
  EXPECT_TRUE((s0 + s1).same_as(s1 + s0));
  EXPECT_TRUE(((s0 - s1) + s1).same_as(s0));
  EXPECT_TRUE(((s0 + 1) * (s0 - 1)).same_as(s0 * s0 - 1));
  EXPECT_TRUE((pow(s0 + s1, 2)).same_as(s0 * s0 + 2 * s0 * s1 + s1 * s1));
  EXPECT_TRUE((s0 - s0).same_as(0));
  EXPECT_TRUE((s0 < s1).same_as(s1 > s0));
  EXPECT_TRUE((2 * s0 == 2 * s1).same_as(s1 == s0));
  EXPECT_TRUE((!(s0 < s1)).same_as(s1 <= s0));
  EXPECT_TRUE((2 * s0 <= 9).same_as(s0 <= 4));
}

TEST_F(SymIntTest, FloorDivSimplifies) {
  EXPECT_EQ(text(floor_div(s0, 1)), "s0");
  EXPECT_EQ(text(floor_div(4 * s0, 2)), "2*s0");
  EXPECT_EQ(text(floor_div(2 * s0, 4)), "(s0//2)");
  EXPECT_EQ(text(floor_div(4 * s0 + 3, 2)), "2*s0 + 1");
  EXPECT_EQ(text(floor_div(s0 + 2, 2)), "((s0//2)) + 1");
  EXPECT_EQ(text(floor_div(floor_div(s0, 2), 3)), "(s0//6)");
  EXPECT_EQ(text(floor_div(s0 * s1, s0)), "s1");
  EXPECT_EQ(text(floor_div(s0 * s1 + s0, s1 + 1)), "s0");
  EXPECT_EQ(text(floor_div(30 * s0, 4 * s0 * s1)), "(15//(2*s1))");
  EXPECT_EQ(text(floor_div(s0, -2)), "((-s0)//2)");
  EXPECT_EQ(text(floor_div(mod(s0, 4), 4)), "0");
  EXPECT_ERROR(floor_div(s0, 0), "division of the size s0 by zero");
}

TEST_F(SymIntTest, ModSimplifies) {
  EXPECT_EQ(text(mod(4 * s0, 2)), "0");
  EXPECT_EQ(text(mod(3 * s0, 2)), "Mod(s0, 2)");
  EXPECT_EQ(text(mod(2 * s0, 4)), "2*(Mod(s0, 2))");
  EXPECT_EQ(text(mod(s0 + 5, 4)), "Mod(s0 + 1, 4)");
  EXPECT_EQ(text(mod(mod(s0, 8), 4)), "Mod(s0, 4)");
  EXPECT_EQ(text(mod(s0 * s1, s1)), "0");
  EXPECT_EQ(text(mod(mod(s0, 3), 5)), "Mod(s0, 3)");
  EXPECT_EQ(text(s0 % 4), "Mod(s0, 4)");
}

TEST_F(SymIntTest, MinMaxUseRangesAndDifferences) {
  EXPECT_EQ(text(max(s0, 1)), "s0");
  EXPECT_EQ(text(min(s0, 2)), "2");
  EXPECT_EQ(text(max(s0, s0 + 1)), "s0 + 1");
  EXPECT_EQ(text(max(max(s0, 5), 7)), "Max(7, s0)");
  EXPECT_EQ(text(min(s0, max(s0, s1))), "s0");
  EXPECT_EQ(text(min(s0 - 2, INT64_MAX)), "s0 - 2");
}

TEST_F(SymIntTest, ComparisonWithExtremesIsKnown) {
  EXPECT_TRUE(known(s0 - 2 < INT64_MAX));
  EXPECT_TRUE(known(s0 + 2 > INT64_MIN));
  EXPECT_TRUE(known(s0 - 2 != INT64_MAX));
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(SymIntTest, LogicSimplifies) {
  SymBool a = s0 > 4, b = s1 > 4;
  EXPECT_TRUE((a & a).same_as(a));
  EXPECT_TRUE((a & !a).same_as(false));
  EXPECT_TRUE((a | !a).same_as(true));
  EXPECT_TRUE((a & true).same_as(a));
  EXPECT_TRUE((a | true).same_as(true));
  EXPECT_TRUE((a & b).same_as(b & a));
  EXPECT_TRUE((!!(a & b)).same_as(a & b));
}

TEST_F(SymIntTest, DivisionTruncatesForNegatives) {
  SymInt u = env->create_unbacked_int();
  EXPECT_EQ(text(s0 / 2), "(s0//2)");
  SymInt quotient = u / 4;
  auto at = [&](int64_t value) {
    return std::get<int64_t>(*env->evaluate(quotient.expr(), {{u.expr(), value}}));
  };
  EXPECT_EQ(at(-7), -1);
  EXPECT_EQ(at(7), 1);
}

TEST_F(SymIntTest, SumOfManyIsOnePass) {
  std::vector<SymInt> parts(1000, s0);
  parts.push_back(s1);
  parts.push_back(3);
  EXPECT_EQ(text(sym_sum(parts)), "1000*s0 + s1 + 3");
  EXPECT_EQ(text(sym_product(std::vector<SymInt>{s0, 2, s1})), "2*s0*s1");
}

TEST_F(SymIntTest, OutlivesTheHandleOfItsEnvironment) {
  SymInt kept = s0 * 2 + s1;
  s0 = s1 = 0;
  env.reset();
  EXPECT_EQ(kept.to_string(), "2*s0 + s1");
  EXPECT_EQ(kept.env()->use_count(), 1u);
}

TEST_F(SymIntTest, IsDestroyedOnAnyThread) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([copy = std::vector<SymInt>(100, s0 + s1)]() mutable { copy.clear(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(text(s0 + s1), "s0 + s1");
}

TEST_F(SymIntTest, TwoCapturesDoNotMix) {
  auto other = ShapeEnv::create();
  SymInt t0 = other->create_symbol(8, "y.size(0)");
  EXPECT_ERROR(s0 + t0, "belongs to another capture");
}

TEST_F(SymIntTest, DeepChainsNeedNoDeepStack) {
  SymInt value = s0;
  const int depth = testing::kSanitized ? 20'000 : 100'000;
  for (int i = 0; i < depth; ++i) value = floor_div(value + s1, 3) + mod(s0, 5);
  EXPECT_TRUE(value.hint().has_value());
  EXPECT_GT(value.to_string().size(), static_cast<size_t>(depth));
  EXPECT_TRUE(guard(s0 == 8));
  EXPECT_TRUE(guard(value >= 0));
  EXPECT_TRUE(env->evaluate(value.expr(), {{s0.expr(), int64_t{8}}, {s1.expr(), int64_t{12}}}).has_value());
}

TEST_F(SymIntTest, LongSumsAreLinear) {
  std::vector<SymInt> parts;
  for (int i = 0; i < 100000; ++i) parts.push_back(env->create_unbacked_int({}, {0, 10}));
  SymInt total = sym_sum(parts);
  EXPECT_TRUE(known(total <= 1000000));
  EXPECT_FALSE(known(total <= 999999));
}

TEST_F(SymIntTest, LargeProductsAreNotExpanded) {
  SymInt product = 1;
  for (int i = 0; i < 40; ++i) product *= env->create_unbacked_int() + 1;
  EXPECT_LT(env->pool_size(), 100000u);
}

TEST(SymFloatTest, PlainValuesStayPlain) {
  SymFloat a = 2.5;
  EXPECT_EQ((a * 2 + 1).plain(), 6.0);
  EXPECT_EQ(sym_floor(a).plain(), 2);
  EXPECT_EQ(sym_ceil(a).plain(), 3);
  EXPECT_EQ(sym_round(a).plain(), 2);
  EXPECT_EQ(true_div(1, 4).plain(), 0.25);
  EXPECT_EQ(sqrt(SymFloat(9)).plain(), 3.0);
  EXPECT_ERROR(sym_floor(SymFloat(1e300)), "does not fit into int64");
}

TEST_F(SymIntTest, FloatsCarryHintsAndGuard) {
  SymFloat scale = true_div(1, s0);
  EXPECT_EQ(scale.hint(), 0.125);
  EXPECT_EQ(sym_floor(sym_float(s0)).to_string(), "s0");
  EXPECT_EQ(sym_trunc(s0 * 1.5).hint(), 12);
  EXPECT_TRUE(guard(s0 * 1.5 < 13));
  EXPECT_EQ(env->guards()[0].condition->to_string(), "1.5*ToFloat(s0) < 13.0");
  EXPECT_TRUE(known(s0 * 1.5 < 13));
  double plain = scale;
  EXPECT_EQ(plain, 0.125);
}

}  // namespace
}  // namespace weft
