#include "weft/sym/shape_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using sym::DimPolicy;
using sym::ValueRange;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <typename F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

std::vector<std::string> texts(std::span<const sym::Guard> guards) {
  std::vector<std::string> result;
  for (const sym::Guard& guard : guards) result.push_back(guard.condition->to_string());
  return result;
}

// A line of this file, as messages name it.
std::string here(uint32_t line) { return __FILE__ ":" + std::to_string(line); }

class ShapeEnvTest : public testing::Test {
 protected:
  Ref<ShapeEnv> env = ShapeEnv::create();
  SymInt size(int64_t hint) { return env->create_symbol(hint, "x.size(0)"); }
  SymInt own(int64_t hint) { return env->create_symbol(hint, "x.size(0)", DimPolicy::kDynamic); }
  SymInt unbacked() { return env->create_unbacked_int("y.item()"); }
};

TEST_F(ShapeEnvTest, EqualHintsShareASymbol) {
  SymInt a = env->create_symbol(8, "x.size(0)"), b = env->create_symbol(8, "y.size(0)"), c = size(9);
  EXPECT_TRUE(a.same_as(b));
  EXPECT_EQ(c.to_string(), "s1");
  EXPECT_THAT(env->symbols()[0].sources, ElementsAre("x.size(0)", "y.size(0)"));
}

TEST_F(ShapeEnvTest, DuckShapingCanBeOff) {
  env = ShapeEnv::create({.duck_shape = false});
  EXPECT_FALSE(size(8).same_as(size(8)));
}

TEST_F(ShapeEnvTest, DynamicDimensionsAreTheirOwn) {
  SymInt a = size(8), b = own(8);
  EXPECT_FALSE(a.same_as(b));
  EXPECT_TRUE(size(8).same_as(a));
}

TEST_F(ShapeEnvTest, ZeroAndOneAreConstants) {
  EXPECT_EQ(size(0).plain(), 0);
  EXPECT_EQ(size(1).plain(), 1);
  EXPECT_TRUE(own(1).is_symbolic());
  EXPECT_EQ(env->create_symbol(8, "x", DimPolicy::kStatic).plain(), 8);
  EXPECT_TRUE(known(size(8) >= 2));
}

TEST_F(ShapeEnvTest, ZeroAndOneCanBeSymbols) {
  env = ShapeEnv::create({.specialize_zero_one = false});
  SymInt one = size(1), eight = size(8);
  EXPECT_TRUE(one.is_symbolic());
  EXPECT_TRUE(known(eight >= 0));
  EXPECT_FALSE(known(eight >= 2));
}

TEST_F(ShapeEnvTest, ADeclaredRangeHoldsTheHint) {
  SymInt batch = env->create_symbol(8, "x.size(0)", DimPolicy::kDynamic, ValueRange{4, 16});
  EXPECT_TRUE(known(batch <= 16));
  EXPECT_EQ(
      error_of([&] { env->create_symbol(2, "x.size(0)", DimPolicy::kDynamic, ValueRange{4, 16}); }),
      "x.size(0): the example size 2 is outside of the declared range [4, 16]; give an example within it, "
      "or widen the range");
}

TEST_F(ShapeEnvTest, GuardsRecordTheConditionAndTheLine) {
  SymInt n = size(8);
  EXPECT_TRUE(guard(n > 4));
  uint32_t line = __LINE__ - 1;
  EXPECT_FALSE(guard(mod(n, 20) == 0));
  EXPECT_THAT(texts(env->guards()), ElementsAre("s0 > 4", "Ne(Mod(s0, 20), 0)"));
  EXPECT_EQ(env->guards()[0].where.line, line);
  EXPECT_EQ(env->guards()[0].where.to_string(), here(line));
}

TEST_F(ShapeEnvTest, AnAnsweredQuestionIsNotGuardedAgain) {
  SymInt n = size(8), m = size(9);
  guard(n > 4);
  EXPECT_TRUE(guard(n > 4));
  EXPECT_TRUE(guard(n >= 5));
  EXPECT_TRUE(guard(2 * n > 9));
  EXPECT_FALSE(guard(n == 3));
  guard(n + m <= 20);
  EXPECT_TRUE(guard(n + m < 23));
  EXPECT_TRUE(guard(m != n));
  EXPECT_FALSE(guard(n == m));
  EXPECT_THAT(texts(env->guards()), ElementsAre("s0 > 4", "s0 + s1 <= 20", "Ne(s0, s1)"));
}

TEST_F(ShapeEnvTest, KnownNeverGuards) {
  SymInt n = size(8);
  EXPECT_TRUE(known(n > 1));
  EXPECT_FALSE(known(n > 4));
  EXPECT_FALSE(known(n <= 4));
  EXPECT_FALSE(known(unbacked() == 0));
  EXPECT_TRUE(known(n * n + n >= 6));
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(ShapeEnvTest, ImplicitConversionsGuard) {
  SymInt n = size(8);
  int64_t number = n + 1;
  uint32_t line = __LINE__ - 1;
  EXPECT_EQ(number, 9);
  EXPECT_THAT(texts(env->guards()), ElementsAre("Eq(s0, 8)"));
  EXPECT_EQ(env->guards()[0].where.to_string(), here(line));
  EXPECT_EQ(n.maybe_plain(), 8);
  EXPECT_EQ((n * 2).to_string(), "16");
}

TEST_F(ShapeEnvTest, ImplicitConversionsAreNamedByTheirLine) {
  SymInt u = unbacked();
  uint32_t line = __LINE__ + 1;
  EXPECT_THAT(error_of([&] { return static_cast<int64_t>(u); }), HasSubstr(" at " + here(line) + ": "));
  line = __LINE__ + 1;
  EXPECT_THAT(error_of([&] { return u > 4 ? 1 : 2; }), HasSubstr(" at " + here(line) + ": "));
}

TEST_F(ShapeEnvTest, ImplicitConversionsCanBeForbidden) {
  SymInt n = size(8);
  ForbidImplicitGuards scope;
  EXPECT_THROW(static_cast<void>(static_cast<int64_t>(n)), InternalError);
  EXPECT_THROW(static_cast<void>(static_cast<bool>(n > 4)), InternalError);
  EXPECT_TRUE(guard(n > 4));
  EXPECT_EQ(static_cast<int64_t>(SymInt(3)), 3);
  EXPECT_EQ(static_cast<int64_t>(SymInt(INT64_MIN)), INT64_MIN);
}

TEST_F(ShapeEnvTest, EqualSymbolsAreSubstituted) {
  SymInt a = own(8), b = own(8);
  EXPECT_TRUE(guard(a == b));
  EXPECT_EQ((b + 1).to_string(), "s0 + 1");
  EXPECT_TRUE(known(a + b == 2 * a));
  EXPECT_THAT(texts(env->guards()), ElementsAre("Eq(s0, s1)"));
}

TEST_F(ShapeEnvTest, EqualityWithAnExpressionSubstitutes) {
  SymInt a = own(8), b = own(4);
  check(a == 2 * b, "two halves");
  EXPECT_EQ(a.to_string(), "2*s1");
  EXPECT_TRUE(known(mod(a, 2) == 0));
  EXPECT_EQ(env->guards()[0].message, "two halves");
  ASSERT_EQ(env->replacements().size(), 1u);
  EXPECT_EQ(env->replacements()[0].second->to_string(), "2*s1");
}

TEST_F(ShapeEnvTest, SubstitutionCarriesBounds) {
  SymInt a = env->create_symbol(8, "a", DimPolicy::kDynamic, ValueRange{4, 10});
  SymInt b = own(8);
  guard(a == b);
  EXPECT_TRUE(known(b <= 10));
  SymInt c = own(9);
  guard(c == b + 1);
  EXPECT_EQ(c.to_string(), "s0 + 1");
}

TEST_F(ShapeEnvTest, ChainsOfEqualitiesEnd) {
  std::vector<SymInt> sizes;
  for (int i = 0; i < 300; ++i) sizes.push_back(own(8));
  for (int i = 298; i >= 0; --i) guard(sizes[i] == sizes[i + 1]);
  for (const SymInt& size : sizes) EXPECT_EQ(size.to_string(), "s0");
}

TEST_F(ShapeEnvTest, DivisibilityIsRemembered) {
  SymInt n = size(8);
  check(mod(n, 4) == 0);
  EXPECT_TRUE(known(n % 4 == 0));
  EXPECT_TRUE(known(4 * floor_div(n, 4) == n));
  EXPECT_EQ((floor_div(n, 4) * 4).to_string(), "s0");
}

TEST_F(ShapeEnvTest, AGuardOnDataNamesTheLineAndTheCheck) {
  SymInt u = unbacked();
  std::string message = error_of([&] { guard(u > 4); });
  EXPECT_THAT(message, AllOf(HasSubstr("Could not guard on data-dependent expression u0 > 4, at "),
                             HasSubstr("shape_env_test.cc:"),
                             HasSubstr("u0 (from y.item()) is only known at run time"),
                             HasSubstr("write check(u0 > 4) before this line"), HasSubstr("check(u0 <= 4)")));
  message = error_of([&] { guard_int(u + 1); });
  EXPECT_THAT(message, AllOf(HasSubstr("cannot turn u0 + 1 into a number at "),
                             HasSubstr("check(Eq(u0 + 1, value)) before this line")));
}

TEST_F(ShapeEnvTest, ChecksOnDataAreDeferredAndBelieved) {
  SymInt u = unbacked(), v = unbacked();
  check(u > 4, "need five");
  check(u <= v);
  EXPECT_TRUE(guard(u > 3));
  EXPECT_TRUE(known(v >= 5));
  EXPECT_TRUE(known(u - v <= 0));
  EXPECT_TRUE(known(max(u, v) == v));
  EXPECT_THAT(texts(env->runtime_asserts()), ElementsAre("u0 > 4", "u0 <= u1"));
  EXPECT_EQ(env->runtime_asserts()[0].message, "need five");
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(ShapeEnvTest, DataEqualToASizeBecomesTheSize) {
  SymInt u = unbacked(), n = size(8);
  check(u == n);
  EXPECT_EQ(u.to_string(), "s0");
  EXPECT_EQ(u.hint(), 8);
  EXPECT_TRUE(guard(u == 8));
}

TEST_F(ShapeEnvTest, ChecksThatFailAreErrors) {
  SymInt n = size(8), u = unbacked();
  EXPECT_EQ(error_of([] { check(SymInt(3) == 4, "sizes must agree"); }), "sizes must agree");
  EXPECT_THAT(error_of([&] { check(n == 4, "sizes must agree"); }),
              HasSubstr("sizes must agree: Eq(s0, 4) does not hold at "));
  check(u >= 5);
  EXPECT_THAT(error_of([&] { check(u < 3); }), HasSubstr("does not hold"));
}

TEST_F(ShapeEnvTest, ConjunctionsAreLearnedPartByPart) {
  SymInt u = unbacked();
  check((u >= 2) & (u <= 10));
  EXPECT_EQ(env->range(u.expr()), (ValueRange{2, 10}));
  EXPECT_TRUE(known(u != 11));
  check(!((u == 2) | (u == 10)));
  EXPECT_EQ(env->range(u.expr()), (ValueRange{3, 9}));
}

TEST_F(ShapeEnvTest, GuardOrAnswersWithoutAGuardForData) {
  SymInt u = unbacked(), n = size(8);
  EXPECT_FALSE(guard_or(u == 1, false));
  EXPECT_TRUE(guard_or(u == 1, true));
  EXPECT_FALSE(guard_or(u == n, false));
  EXPECT_TRUE(env->guards().empty());
  EXPECT_TRUE(guard_or(n > 4, false));
  EXPECT_THAT(texts(env->guards()), ElementsAre("s0 > 4"));
}

TEST_F(ShapeEnvTest, SizeLikeDataCountsAsAtLeastTwoOnlyForGuardOr) {
  SymInt u = unbacked();
  check_size_like(u);
  EXPECT_TRUE(known(u >= 0));
  EXPECT_FALSE(known(u >= 2));
  EXPECT_FALSE(guard_or(u == 0, true));
  EXPECT_FALSE(guard_or(u == 1, true));
  EXPECT_FALSE(guard_or(4 * u == 4, true));
  EXPECT_TRUE(guard_or(u != 1, false));
  EXPECT_FALSE(guard_or(u == 7, false));
  EXPECT_THAT(texts(env->runtime_asserts()), ElementsAre("u0 >= 0"));
}

TEST_F(ShapeEnvTest, TruthFromDataCanBeChecked) {
  SymBool flag = env->create_unbacked_bool("mask.any()");
  EXPECT_THAT(error_of([&] { guard(flag); }), HasSubstr("data-dependent expression u0"));
  check(flag);
  EXPECT_TRUE(guard(flag));
  EXPECT_FALSE(guard(!flag));
}

TEST_F(ShapeEnvTest, TracingDecidesSilently) {
  env = ShapeEnv::create({.record_guards = false});
  SymInt n = size(8);
  int64_t number = n * 2;
  EXPECT_EQ(number, 16);
  EXPECT_TRUE(n > 4);
  check(n == 8);
  EXPECT_TRUE(env->guards().empty());
  EXPECT_EQ(n.to_string(), "s0");
}

TEST_F(ShapeEnvTest, AFrozenEnvironmentTakesNoGuards) {
  SymInt n = size(8);
  guard(n > 4);
  env->freeze();
  EXPECT_TRUE(guard(n > 3));
  EXPECT_THAT(error_of([&] { guard(n > 5); }), HasSubstr("would need the new guard s0 > 5"));
  EXPECT_EQ((n * 2).hint(), 16);
}

TEST_F(ShapeEnvTest, HintsCanChange) {
  SymInt n = size(8), u = unbacked();
  SymInt sum = n + u;
  EXPECT_EQ(sum.hint(), std::nullopt);
  env->set_hint(u.expr(), int64_t{5});
  EXPECT_EQ(sum.hint(), 13);
  env->set_hint(n.expr(), int64_t{10});
  EXPECT_EQ(sum.hint(), 15);
  EXPECT_EQ((n * 2).hint(), 20);
  EXPECT_EQ(error_of([&] { env->set_hint(n.expr(), int64_t{1}); }),
            "set_hint: s0 cannot be 1; it is known to be in [2, inf]");
}

TEST_F(ShapeEnvTest, SubstituteRebuildsTheNormalForm) {
  SymInt a = size(8), b = size(9);
  SymInt value = floor_div(a * b + a, 2);
  EXPECT_EQ(env->substitute(value, {{b.expr(), env->constant(3)}}).to_string(), "2*s0");
  EXPECT_EQ(env->substitute(value, {{a.expr(), b.expr()}}).to_string(), "((s1**2 + s1)//2)");
}

TEST_F(ShapeEnvTest, EvaluateSaysWhenThereIsNoValue) {
  SymInt a = size(8), b = size(9);
  const sym::Expr* quotient = floor_div(a, b).expr();
  EXPECT_EQ(env->evaluate(quotient, {{a.expr(), int64_t{7}}, {b.expr(), int64_t{2}}}),
            sym::Number(int64_t{3}));
  EXPECT_EQ(env->evaluate(quotient, {{a.expr(), int64_t{7}}, {b.expr(), int64_t{0}}}), std::nullopt);
  EXPECT_EQ(env->evaluate(quotient, {{a.expr(), int64_t{7}}}), std::nullopt);
}

TEST_F(ShapeEnvTest, ConstraintsMustLeaveSomething) {
  SymInt n = size(8);
  env->constrain(n.expr(), {2, 100});
  EXPECT_TRUE(known(n <= 100));
  EXPECT_EQ(
      error_of([&] { env->constrain(n.expr(), {200, 300}); }),
      "s0 cannot be in [200, 300]: it is known to be in [2, 100]; the two conditions contradict each other");
}

TEST_F(ShapeEnvTest, FreeSymbolsComeInOrder) {
  SymInt a = size(8), b = size(9), u = unbacked();
  std::vector<std::string> names;
  for (const sym::Symbol* symbol : env->free_symbols((u * b + mod(a, 3)).expr()))
    names.push_back(symbol->name);
  EXPECT_THAT(names, ElementsAre("s0", "s1", "u0"));
}

}  // namespace
}  // namespace weft
