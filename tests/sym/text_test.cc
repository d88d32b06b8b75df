// Expressions as text: SymPy's two spellings read and written, and guards in terms of sources.
#include "weft/sym/text.h"

#include <gtest/gtest.h>

#include <random>

#include "support/expect_error.h"

namespace weft {
namespace {

using sym::Expr;

class SymText : public ::testing::Test {
 protected:
  Ref<ShapeEnv> env = ShapeEnv::create();
  SymInt s0 = env->create_symbol(8, "x.size(0)"), s1 = env->create_symbol(12, "y['k'].size(1)");
  SymInt u0 = env->create_unbacked_int("z.item()");
  SymFloat zuf0 = env->create_unbacked_float("z.item()");
  SymBool u1 = env->create_unbacked_bool();
  std::string read(std::string_view text) { return sym::parse(*env, text)->to_string(); }
};

TEST_F(SymText, ReadsWhatSympyPrints) {
  for (std::string_view text : {"2*s0 + 1",
                                "Ne(Mod(s0, 20), 0)",
                                "(s0//2)",
                                "s0**2",
                                "Max(1, u0)",
                                "(s0 > 3) & (s1 < 4)",
                                "-s0 + s1",
                                "Eq(s1, 2) & (s0 > 3)",
                                "~(Eq(s1, 2) & (s0 > 3))",
                                "~u1",
                                "PowByNatural(2, s0)",
                                "Where(s0 > 4, s0, s1)",
                                "zuf0 - ToFloat(s0)",
                                "(IntTrueDiv(s0, s1)) + 1.0",
                                "True",
                                "-7",
                                "FloatTrueDiv(zuf0, ToFloat(s0))",
                                "TruncToInt(zuf0)",
                                "OpaqueUnaryFn_sqrt(zuf0)",
                                "zuf0 > 1.5",
                                "s0 - 2*((s0//2))",
                                "-9223372036854775808",
                                "1.5e-07"})
    EXPECT_EQ(read(text), text);
}

TEST_F(SymText, ReadsOtherSpellingsOfTheSame) {
  EXPECT_EQ(read("s0 // 2"), "(s0//2)");
  EXPECT_EQ(read("FloorDiv(s0, 2)"), "(s0//2)");
  EXPECT_EQ(read("CleanDiv(s0, 2)"), "(s0//2)");
  EXPECT_EQ(read("CeilDiv(s0, 2)"), (-floor_div(-s0, 2)).to_string());
  EXPECT_EQ(read("s0 % 20"), "Mod(s0, 20)");
  EXPECT_EQ(read("PythonMod(s0, 20)"), "Mod(s0, 20)");
  EXPECT_EQ(read("ModularIndexing(s0, 2, 3)"), "Mod((s0//2), 3)");
  EXPECT_EQ(read("Piecewise((s0, s0 > 4), (s1, True))"), "Where(s0 > 4, s0, s1)");
  EXPECT_EQ(read("s0 == 5 and not s1 != 7 or u1"), "u1 | (Eq(s0, 5) & Eq(s1, 7))");
  EXPECT_EQ(read("3 <= s0 <= 20"), "(s0 >= 3) & (s0 <= 20)");
  EXPECT_EQ(read("s0 / s1"), "IntTrueDiv(s0, s1)");
  EXPECT_EQ(read("-s0**2 + (s0 + 1)*(s0 - 1)"), "-1");
  EXPECT_EQ(read("CeilToInt(IntTrueDiv(s0, 3))"), "CeilToInt(IntTrueDiv(s0, 3))");
}

TEST_F(SymText, ReadsAndWritesConstructors) {
  struct Row {
    std::string_view repr, text;
  };
  const Row rows[] = {
      {"Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))", "2*s0 + 1"},
      {"Symbol('u0', integer=True)", "u0"},
      {"Max(Integer(1), Symbol('u0', integer=True))", "Max(1, u0)"},
      {"Mul(Pow(Symbol('s0', positive=True, integer=True), Integer(2)), Symbol('s1', positive=True, "
       "integer=True))",
       "s0**2*s1"},
      {"FloorDiv(Symbol('s0', positive=True, integer=True), Integer(2))", "(s0//2)"},
      {"Unequality(Mod(Symbol('s0', positive=True, integer=True), Integer(20)), Integer(0))",
       "Ne(Mod(s0, 20), 0)"},
      {"GreaterThan(Symbol('u0', integer=True), Integer(0))", "u0 >= 0"},
      {"StrictLessThan(Symbol('u0', integer=True), Integer(-3))", "u0 < -3"},
      {"IntTrueDiv(Symbol('s0', positive=True, integer=True), Symbol('s1', positive=True, integer=True))",
       "IntTrueDiv(s0, s1)"},
      {"Add(Symbol('zuf0', real=True), Float('1.5', precision=53))", "zuf0 + 1.5"},
      {"true", "True"},
  };
  for (const Row& row : rows) {
    const Expr* expr = sym::parse(*env, row.repr);
    EXPECT_EQ(expr->to_string(), row.text);
    EXPECT_EQ(sym::srepr(expr), row.repr);
  }
  EXPECT_EQ(read("Piecewise(ExprCondPair(Integer(1), Equality(Symbol('u0', integer=True), Integer(3))), "
                 "ExprCondPair(Integer(2), true))"),
            "Where(Eq(u0, 3), 1, 2)");
  EXPECT_EQ(read("Rational(6, 3)"), "2");
  EXPECT_EQ(read("Rational(1, 2)"), "0.5");
}

TEST_F(SymText, SymbolsCanBeMadeAsTheyAreMet) {
  auto lookup = [&](const sym::SymbolText& met) {
    const sym::Symbol* known = env->find_symbol(met.name);
    return known ? known->expr : env->add_symbol({.name = met.name, .is_size = met.is_positive});
  };
  const Expr* sum =
      sym::parse(*env, "Add(Symbol('s77', positive=True, integer=True), Symbol('s5', integer=True))", lookup);
  EXPECT_EQ(sum->to_string(), "s5 + s77");
  EXPECT_TRUE(env->find_symbol("s77")->is_size);
  EXPECT_FALSE(env->find_symbol("s5")->is_size);
}

TEST_F(SymText, BadTextNamesTheOffset) {
  EXPECT_ERROR(read("2*s0 +"), "'2*s0 +' is no expression: at 6 it has '', where a number, a symbol or '('");
  EXPECT_ERROR(read("s9 + 1"), "at 0, there is no symbol s9");
  EXPECT_ERROR(read("Foo(s0)"), "at 0, there is no function Foo");
  EXPECT_ERROR(read("(s0"), "at 3 it has '', where ')' was expected");
  EXPECT_ERROR(read("s0 s1"), "at 3 it has 's1', where the end was expected");
  EXPECT_ERROR(read("FloorDiv(s0)"), "FloorDiv has 1 arguments");
  EXPECT_ERROR(read("s0 & 3"), "s0 is no condition");
  EXPECT_ERROR(read("99999999999999999999"), "does not fit into int64");
  EXPECT_ERROR(read("int_oo"), "is no number");
  EXPECT_ERROR(read("Symbol('s0"), "a quoted text that ends");
  EXPECT_ERROR(read(""), "at 0 it has ''");
  for (const char* deep : {"(", "-", "~", "Max(", "not ", "2**", "Piecewise(("}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += deep;
    EXPECT_ERROR(read(text), "nested deeper than 400 levels");
  }
}

TEST_F(SymText, EveryPrefixOfGoodTextIsReadOrRefused) {
  const std::string texts[] = {
      "Eq(s1, 2) & (s0 > 3) | ~u1", "Piecewise((s0, s0 > 4), (s1, True))", "1.5e-07*zuf0 - 2",
      "Add(Mul(Integer(-2), Symbol('s0', positive=True, integer=True)), Float('1.5', precision=53))"};
  for (const std::string& text : texts)
    for (size_t length = 0; length < text.size(); ++length) {
      try {
        read(text.substr(0, length));
      } catch (const UserError&) {
      }
    }
}

TEST_F(SymText, GuardsSpeakOfSources) {
  auto text = [](const auto& value) { return sym::source_text(value.expr()); };
  EXPECT_EQ(text(s0 * s1), "L['x'].size()[0]*L['y']['k'].size()[1]");
  EXPECT_EQ(text(s0 + 1), "L['x'].size()[0] + 1");
  EXPECT_EQ(text(s0 == s1), "L['x'].size()[0] == L['y']['k'].size()[1]");
  EXPECT_EQ(text(mod(s0, 20) != 0), "(L['x'].size()[0] % 20) != 0");
  EXPECT_EQ(text((s0 >= 3) & (s0 <= 6)), "L['x'].size()[0] >= 3 and L['x'].size()[0] <= 6");
  EXPECT_EQ(text(floor_div(s0, 2) + u0), "u0 + (L['x'].size()[0] // 2)");
}

// Random expressions of all three types.
class TextSamples {
 public:
  explicit TextSamples(uint32_t seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) ints_.push_back(env->create_symbol(5 + i, "x", sym::DimPolicy::kDynamic));
    ints_.push_back(env->create_unbacked_int());
    reals_.push_back(env->create_unbacked_float());
    reals_.push_back(env->create_float_symbol(2.5, "y"));
  }
  SymInt integer(int depth) {
    if (depth == 0) return pick(3) == 0 ? SymInt(pick(13) - 6) : ints_[static_cast<size_t>(pick(4))];
    SymInt a = integer(depth - 1), b = integer(depth - 1);
    switch (pick(9)) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
        return min(a, b);
      case 4:
        return max(a, b);
      case 5:
        return b.maybe_plain() == 0 ? a : floor_div(a, b);
      case 6:
        return b.maybe_plain() == 0 ? a : mod(a, b);
      case 7:
        return sym_ite(truth(depth - 1), a, b);
      default:
        return sym_trunc(real(depth - 1) + sym_float(ints_[0]));
    }
  }
  SymFloat real(int depth) {
    if (depth == 0) return pick(3) == 0 ? SymFloat(pick(13) - 6.5) : reals_[static_cast<size_t>(pick(2))];
    SymFloat a = real(depth - 1), b = real(depth - 1);
    switch (pick(8)) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
        return a / b;
      case 4:
        return max(a, b);
      case 5:
        return -a;
      case 6:
        return sym_float(integer(depth - 1));
      default:
        return true_div(integer(depth - 1), ints_[0]);
    }
  }
  SymBool truth(int depth) {
    SymInt a = integer(depth == 0 ? 0 : depth - 1), b = integer(0);
    switch (pick(depth == 0 ? 4 : 8)) {
      case 0:
        return a < b;
      case 1:
        return a <= b;
      case 2:
        return a == b;
      case 3:
        return a != b;
      case 4:
        return truth(depth - 1) & truth(depth - 1);
      case 5:
        return truth(depth - 1) | truth(depth - 1);
      case 6:
        return !truth(depth - 1);
      default:
        return real(depth - 1) < real(depth - 1);
    }
  }
  Ref<ShapeEnv> env = ShapeEnv::create();

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  std::mt19937 random_;
  std::vector<SymInt> ints_;
  std::vector<SymFloat> reals_;
};

TEST(SymTextProperty, WhatIsNoNumberIsOneNode) {
  const Ref<ShapeEnv> env = ShapeEnv::create();
  const Expr* none = sym::parse(*env, "oo - oo");
  EXPECT_EQ(sym::parse(*env, sym::srepr(none)), none);
  EXPECT_EQ(sym::parse(*env, "-nan"), none);
}

TEST(SymTextProperty, ReadingWhatWasWrittenGivesTheSameNode) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    TextSamples samples(seed);
    auto expect_same = [&](const auto& value) {
      if (!value.is_symbolic()) return;
      const Expr* expr = value.expr();
      EXPECT_EQ(sym::parse(*samples.env, expr->to_string()), expr) << expr->to_string();
      EXPECT_EQ(sym::parse(*samples.env, sym::srepr(expr)), expr) << sym::srepr(expr);
    };
    expect_same(samples.integer(3));
    expect_same(samples.truth(3));
    expect_same(samples.real(3));
  }
}

}  // namespace
}  // namespace weft
