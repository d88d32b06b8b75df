// What an environment keeps about its symbols: ranges, names, sources, checkpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "weft/sym/shape_env.h"

namespace weft {
namespace {

using sym::Backing;
using sym::DimPolicy;
using sym::Source;
using sym::Symbol;
using sym::ValueRange;
using ::testing::ElementsAre;

std::vector<std::string> conditions(std::span<const sym::Guard> guards) {
  std::vector<std::string> result;
  for (const sym::Guard& guard : guards) result.push_back(guard.condition->to_string());
  return result;
}

TEST(SymSource, PrintsForMessagesAndAsPyTorchDoes) {
  struct Row {
    Source source;
    const char *message, *guard;
  };
  const Source x = Source::argument("x"), leaf = Source::argument("x", {"['k']", "[0]"});
  const Row rows[] = {
      {x, "x", "L['x']"},
      {x.size(0), "x.size(0)", "L['x'].size()[0]"},
      {x.stride(1), "x.stride(1)", "L['x'].stride()[1]"},
      {x.offset(), "x.storage_offset()", "L['x'].storage_offset()"},
      {leaf.size(0), "x['k'][0].size(0)", "L['x']['k'][0].size()[0]"},
      {x.step(".field").step("[2]"), "x.field[2]", "L['x'].field[2]"},
      {Source::computed("y.item()"), "y.item()", "y.item()"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(row.source.to_string(), row.message);
    EXPECT_EQ(row.source.guard_text(), row.guard);
    EXPECT_EQ(Source(row.message), row.source);
  }
}

TEST(SymSource, OtherTextDescribesAPlaceInTheProgram) {
  for (const char* text : {"y.item()", "the rounds of a while_loop", "x.size(0", "x[", "x['k", "", "2x"}) {
    EXPECT_FALSE(Source(text).is_argument()) << text;
    EXPECT_EQ(Source(text).to_string(), text);
  }
}

TEST(SymLedger, DeclaredAndLearntRangesAreApart) {
  auto env = ShapeEnv::create();
  SymInt n = env->create_symbol(8, "x.size(0)", DimPolicy::kDynamic, ValueRange{2, 64});
  const Symbol& symbol = *env->symbol_of(n.expr());
  guard(n <= 32);
  EXPECT_EQ(symbol.declared, (ValueRange{2, 64}));
  EXPECT_EQ(symbol.range, (ValueRange{2, 32}));
  env->constrain(n.expr(), {4, 100});
  EXPECT_EQ(symbol.declared, (ValueRange{4, 64}));
  EXPECT_EQ(symbol.range, (ValueRange{4, 32}));
  EXPECT_EQ(env->create_symbol(9, "y.size(0)").to_string(), "s1");
  EXPECT_EQ(env->symbols()[1].declared, (ValueRange{2, ValueRange::kInf}));
}

TEST(SymLedger, GivenNamesAreNotGivenAgain) {
  auto env = ShapeEnv::create();
  const sym::Expr* given =
      env->add_symbol({.name = "s1", .hint = int64_t{5}, .declared = {2, 10}, .sources = {"x.size(0)"}});
  EXPECT_EQ(env->find_symbol("s1")->expr, given);
  EXPECT_EQ(env->create_symbol(8, "a").to_string(), "s0");
  EXPECT_EQ(env->create_symbol(9, "b").to_string(), "s2");
  EXPECT_ERROR(env->add_symbol({.name = "s2"}), "there is a symbol s2 already, and a name is given once");
  EXPECT_ERROR(env->add_symbol({.name = "2*s"}), "'2*s' cannot name a symbol");
  env->add_symbol({.name = "u0", .backing = Backing::kUnbacked});
  EXPECT_EQ(env->create_unbacked_int().to_string(), "u1");
  EXPECT_ERROR(env->add_symbol({.hint = int64_t{1}, .declared = {2, 10}, .sources = {"x"}}),
               "x: the example value 1 is outside of the declared range [2, 10]");
}

TEST(SymLedger, WithoutAHintOnlyWhatIsKnownIsAnswered) {
  auto env = ShapeEnv::create();
  SymInt n = SymInt::from_expr(
      env->add_symbol({.name = "s77", .declared = {2, 64}, .is_size = true, .sources = {"x.size(0)"}}));
  EXPECT_EQ(n.hint(), std::nullopt);
  EXPECT_TRUE(guard(n <= 64));
  EXPECT_FALSE(guard(n == 1));
  EXPECT_ERROR(
      guard(n > 4),
      "only an example value could tell, and s77 (from x.size(0)) has none. Give it one by set_hint, "
      "or write check(s77 > 4) before this line");
  EXPECT_ERROR(guard_int(n + 1), "cannot turn s77 + 1 into a number at ");
  EXPECT_FALSE(guard_or(n == 4, false));
  EXPECT_TRUE(guard_or(n == 4, true));
  EXPECT_TRUE(env->guards().empty());
  check(n > 4);
  EXPECT_THAT(conditions(env->guards()), ElementsAre("s77 > 4"));
  env->set_hint(n.expr(), int64_t{8});
  EXPECT_TRUE(guard(n > 6));
}

TEST(SymLedger, ValuesAreNoSizes) {
  auto env = ShapeEnv::create();
  SymInt n = env->create_value(-3, "n"), one = env->create_value(1, "m");
  EXPECT_TRUE(one.is_symbolic());
  EXPECT_EQ(n.hint(), -3);
  EXPECT_FALSE(known(n >= 0));
  EXPECT_FALSE(known(one >= 0));
  EXPECT_TRUE(guard(n < 0));
  EXPECT_ERROR(env->create_symbol(-3, "x.size(0)"), "a size cannot be -3");
}

TEST(SymLedger, DuckShapedValuesShareTheSymbolsOfSizes) {
  auto env = ShapeEnv::create();
  SymInt n = env->create_value(8, "n", DimPolicy::kDuck);
  EXPECT_FALSE(known(n >= 0));
  EXPECT_TRUE(env->create_symbol(8, "x.size(0)").same_as(n));
  EXPECT_TRUE(known(n >= 2));
  EXPECT_THAT(env->symbols()[0].sources, ElementsAre(Source("n"), Source("x.size(0)")));
  EXPECT_EQ(env->create_value(1, "m", DimPolicy::kDuck).plain(), 1);
  EXPECT_TRUE(env->create_value(-1, "k", DimPolicy::kDuck).is_symbolic());
}

TEST(SymLedger, SymbolsStayWhereTheyAre) {
  auto env = ShapeEnv::create();
  const Symbol* first = env->symbol_of(env->create_symbol(2, "x.size(0)").expr());
  for (int i = 3; i < 1000; ++i) env->create_symbol(i, "y");
  EXPECT_EQ(first, &env->symbols()[0]);
  EXPECT_EQ(first->name, "s0");
}

TEST(SymLedger, AGuardGivesItsConditionUndecided) {
  auto env = ShapeEnv::create();
  SymInt n = env->create_symbol(8, "x.size(0)");
  guard(n > 4);
  SymBool condition = env->guards()[0].as_bool();
  EXPECT_TRUE(condition.is_symbolic());
  EXPECT_EQ(condition.to_string(), "s0 > 4");
  EXPECT_EQ((!condition).to_string(), "s0 <= 4");
  EXPECT_EQ(condition.maybe_plain(), std::nullopt);
  EXPECT_FALSE(known(condition));
  EXPECT_EQ(condition.hint(), true);
  EXPECT_EQ(env->evaluate(condition.expr(), {{n.expr(), int64_t{3}}}), sym::Number(false));
  EXPECT_EQ((condition & (n < 20)).to_string(), "(s0 > 4) & (s0 < 20)");
  EXPECT_TRUE(guard(condition));  // which adds nothing
  EXPECT_EQ(env->guards().size(), 1u);
}

TEST(SymLedger, DeferredGuardsBecomeAssertions) {
  auto env = ShapeEnv::create();
  SymInt a = env->create_symbol(8, "x.size(0)"), b = env->create_symbol(12, "x.size(1)");
  env->defer_guards([&](const sym::Expr* condition) {
    for (const Symbol* symbol : env->free_symbols(condition))
      if (symbol->expr == b.expr()) return true;
    return false;
  });
  EXPECT_TRUE(guard(a > 4));
  EXPECT_TRUE(guard(mod(b, 4) == 0));
  EXPECT_TRUE(known(mod(b, 4) == 0));
  check(a < b);
  EXPECT_THAT(conditions(env->guards()), ElementsAre("s0 > 4"));
  EXPECT_THAT(conditions(env->runtime_asserts()), ElementsAre("Eq(Mod(s1, 4), 0)", "s0 < s1"));
}

TEST(SymCheckpoint, ForgetsWhatWasAddedSince) {
  auto env = ShapeEnv::create();
  SymInt n = env->create_symbol(8, "x.size(0)"), m = env->create_symbol(9, "x.size(1)");
  SymInt old = floor_div(n * m, 4);
  guard(n >= 4);
  auto start = env->checkpoint();
  SymInt shared = env->create_symbol(8, "y.size(0)"), k = env->create_symbol(10, "y.size(1)");
  SymInt u = env->create_unbacked_int("y.item()");
  check(u >= 3);
  check(n == 8);
  guard(n < m);
  guard(m <= 20);
  guard(mod(m, 3) == 0);
  EXPECT_EQ(old.to_string(), "2*s1");
  env->rollback(start);
  EXPECT_EQ(env->symbols().size(), 2u);
  EXPECT_THAT(env->symbols()[0].sources, ElementsAre("x.size(0)"));
  EXPECT_THAT(conditions(env->guards()), ElementsAre("s0 >= 4"));
  EXPECT_TRUE(env->runtime_asserts().empty());
  EXPECT_TRUE(env->replacements().empty());
  EXPECT_EQ(old.to_string(), "((s0*s1)//4)");
  EXPECT_EQ(env->range(m.expr()), (ValueRange{2, ValueRange::kInf}));
  EXPECT_EQ(env->range(old.expr()), (ValueRange{2, ValueRange::kInf}));
  EXPECT_FALSE(known(n < m));
  EXPECT_FALSE(known(mod(m, 3) == 0));
  EXPECT_EQ(env->find_symbol("u0"), nullptr);
  // Names and hints of before are free again.
  SymInt other = env->create_symbol(10, "z.size(0)", DimPolicy::kDuck);
  EXPECT_EQ(other.to_string(), "s2");
  EXPECT_FALSE(other.same_as(k));
  EXPECT_TRUE(shared.same_as(n));
}

TEST(SymCheckpoint, AForgottenSymbolIsNotTheOneThatTakesItsPlace) {
  auto env = ShapeEnv::create();
  SymInt n = env->create_symbol(8, "x.size(0)");
  SymInt gone, twice, kept;
  {
    sym::Trial trial(*env);
    gone = env->create_symbol(20, "y.size(0)");
    twice = gone * 2 + n;
    kept = n * 3;
    check(gone == 20);
  }
  SymInt fresh = env->create_symbol(30, "z.size(0)");
  EXPECT_EQ(fresh.to_string(), "s1");
  EXPECT_EQ((fresh * 2 + n).hint(), 68);
  EXPECT_EQ(env->range((fresh * 2 + n).expr()).lo, 6);
  EXPECT_FALSE((fresh * 2 + n).same_as(twice));
  // What needs no forgotten symbol is as good as new.
  EXPECT_TRUE((n * 3).same_as(kept));
  EXPECT_EQ(twice.expr()->to_string(), "s0 + 2*s1");
  EXPECT_ERROR(gone + 1,
               "s1 was made after a checkpoint of its ShapeEnv and is forgotten since the rollback");
  EXPECT_ERROR(known(twice > 4), "is forgotten since the rollback");
  EXPECT_ERROR(env->set_hint(gone.expr(), int64_t{5}), "set_hint: s1 is not a symbol of this environment");
}

TEST(SymCheckpoint, HintsComeBack) {
  auto env = ShapeEnv::create();
  SymInt n = env->create_symbol(8, "x.size(0)"), twice = n * 2;
  auto start = env->checkpoint();
  env->set_hint(n.expr(), int64_t{10});
  EXPECT_EQ(twice.hint(), 20);
  SymInt later = n * 5;
  env->rollback(start);
  EXPECT_EQ(twice.hint(), 16);
  EXPECT_EQ(later.hint(), 40);
}

TEST(SymCheckpoint, EndWithAnEarlierOne) {
  auto env = ShapeEnv::create();
  auto outer = env->checkpoint();
  env->create_symbol(8, "x.size(0)");
  auto inner = env->checkpoint();
  env->rollback(inner);
  env->rollback(inner);
  EXPECT_EQ(env->symbols().size(), 1u);
  env->rollback(outer);
  EXPECT_EQ(env->symbols().size(), 0u);
  EXPECT_ERROR(env->rollback(inner), "the checkpoint has ended");
  EXPECT_ERROR(ShapeEnv::create()->rollback(outer), "of another ShapeEnv");
}

TEST(SymCheckpoint, ATrialCanBeKept) {
  auto env = ShapeEnv::create();
  SymInt n = env->create_symbol(8, "x.size(0)");
  {
    sym::Trial trial(*env);
    guard(n > 4);
    trial.keep();
  }
  EXPECT_TRUE(known(n > 4));
  {
    sym::Trial outer(*env);
    guard(n > 5);
    {
      sym::Trial inner(*env);
      guard(n > 6);
    }
    EXPECT_TRUE(known(n > 5));
    EXPECT_FALSE(known(n > 6));
  }
  EXPECT_FALSE(known(n > 5));
}

}  // namespace
}  // namespace weft
