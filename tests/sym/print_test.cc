#include <gtest/gtest.h>

#include "weft/sym/shape_env.h"

namespace weft {
namespace {

struct Row {
  SymInt value;
  std::string_view text;
};

// Texts that SymPy 1.14 (with PyTorch 2.13's FloorDiv, Mod, Min and Max) gives for random polynomials over
// positive integer symbols, expanded.
TEST(Print, TermsAndFactorsComeInSympysOrder) {
  auto env = ShapeEnv::create();
  SymInt s0 = env->create_symbol(5, "a"), s1 = env->create_symbol(7, "b"), s2 = env->create_symbol(9, "c");
  for (int i = 3; i < 10; ++i) env->create_symbol(100 + i, "unused");
  SymInt s10 = env->create_symbol(11, "d");  // sorts between s1 and s2, as text does
  const Row rows[] = {
      {(max(floor_div((-1 * s1 * s0) + (s10 * s0) + -1, 3), s0)), "Max(s0, ((-s0*s1 + s0*s10 - 1)//3))"},
      {(s2 * mod(s0, 4)) + (s0) + (floor_div((-1 * s0) + (s1 * mod(s1, 4) * min(s0, s0)), 5)) +
           (-3 * mod(s2, 4)) + 2,
       "s0 + s2*(Mod(s0, 4)) + (((s0*s1*(Mod(s1, 4)) - s0)//5)) - 3*(Mod(s2, 4)) + 2"},
      {(-3 * s10 * s1 * s1) + (2 * s2) + 2, "-3*s1**2*s10 + 2*s2 + 2"},
      {(s10 * s10 * s2) + (-3 * s10) + (-1 * mod(s1, 2)) + (3 * s1) + -1,
       "3*s1 + s10**2*s2 - 3*s10 - (Mod(s1, 2)) - 1"},
      {(s10 * s0) + (mod(s2, 2)) + (min(max(s2, s0), s2) * s2) + (max(s2, s10)) + 7,
       "s0*s10 + s2**2 + (Mod(s2, 2)) + Max(s10, s2) + 7"},
      {(3 * min(floor_div((-3 * s1 * s10) + (2 * s10 * s10) + -1, 4), s2)) + (3 * s2) +
           (min(s0, s0) * mod(s10, 3)) + (mod(s10, 2)) + 7,
       "s0*(Mod(s10, 3)) + 3*s2 + (Mod(s10, 2)) + 3*Min(s2, ((-3*s1*s10 + 2*s10**2 - 1)//4)) + 7"},
      {(-2 * s0), "-2*s0"},
      {(mod(s1, 2)) + -4, "(Mod(s1, 2)) - 4"},
      {(3 * s10 *
        floor_div((5 * s0 * min(s10, s1) * floor_div((s2 * s2) + 7, 2)) + (3 * mod(s10, 3)) + 2, 3)) +
           -1,
       "3*s10*(((5*s0*(((s2**2 + 7)//2))*Min(s1, s10) + 2)//3)) + 3*s10*(Mod(s10, 3)) - 1"},
      {(s1) + (mod(s2, 2) * s0) + -4, "s0*(Mod(s2, 2)) + s1 - 4"},
      {(max(min(s1, s10), s1) * s2) + (s1), "s1*s2 + s1"},
      {(floor_div((3 * mod(s0, 4) * s1) + 2, 3) * s1) + 2, "s1**2*(Mod(s0, 4)) + 2"},
      {(-2 * max(s0, s1)), "-2*Max(s0, s1)"},
      {(mod(s2, 7) * floor_div((s2), 3)) + -1, "((s2//3))*(Mod(s2, 7)) - 1"},
      {(mod(s0, 3) * max(s0, s2)) + 7, "(Mod(s0, 3))*Max(s0, s2) + 7"},
      {(s2) + (s1 * s10) + (-1 * mod(s10, 7)) + 2, "s1*s10 + s2 - (Mod(s10, 7)) + 2"},
      {(s2 * s0) + (-1 * s1) + 1, "s0*s2 - s1 + 1"},
      {(s10 * s0 * s10), "s0*s10**2"},
      {(3 * s1) + (-2 * s2), "3*s1 - 2*s2"},
      {(3 * s1 * mod(s0, 4) * s0) + 1, "3*s0*s1*(Mod(s0, 4)) + 1"},
      {(-1 * max(min(s1, s10), s10) * s0) + (mod(s10, 7)) + (s2 * s10 * min(mod(s1, 4), s10)) + 2,
       "-s0*s10 + s10*s2*Min(s10, Mod(s1, 4)) + (Mod(s10, 7)) + 2"},
      {(-2 * s0) + -4, "-2*s0 - 4"},
      {(-3 * s10) + 7, "7 - 3*s10"},
      {(s10), "s10"},
      {(-3 * s1), "-3*s1"},
      {(5 * s10), "5*s10"},
      {(5 * s0), "5*s0"},
      {(3 * s0) + (-2 * max(s2, s2)), "3*s0 - 2*s2"},
      {(s2 * min(floor_div((5 * s1 * s10 * s10) + (s2) + 7, 3), s1)) +
           (-1 * floor_div((floor_div((s2 * s0), 2)) + (-2 * s2), 3) * s10) + (-1 * s2 * s2 * max(s2, s2)) +
           2,
       "-s10*(((-2*s2 + (((s0*s2)//2)))//3)) - s2**3 + s2*Min(s1, ((5*s1*s10**2 + s2 + 7)//3)) + 2"},
      {(-2 * s0), "-2*s0"},
      {(-1 * s0 * s1) + -1, "-s0*s1 - 1"},
      {(3 * floor_div((3 * s2), 2)) + 7, "3*(((3*s2)//2)) + 7"},
      {(s10), "s10"},
      {(5 * s2 * s2) + (-1 * s10 * s1) + (s0 * s1 * s10) +
           (max(floor_div((s2 * s0 * s10) + (-3 * s10 * s0) + -4, 5), s0) * mod(s1, 3)),
       "s0*s1*s10 - s1*s10 + 5*s2**2 + (Mod(s1, 3))*Max(s0, ((s0*s10*s2 - 3*s0*s10 - 4)//5))"},
      {(2 * s10 * floor_div((s1) + 7, 4) * s2) + (s10 * mod(s0, 4) * floor_div((-1 * s0 * s1) + 2, 5)),
       "2*s10*s2*(((s1 + 7)//4)) + s10*(((-s0*s1 + 2)//5))*(Mod(s0, 4))"},
      {(s10 * max(s10, s1)) + 7, "s10*Max(s1, s10) + 7"},
      {(5 * s10 * s1) + (2 * s0 * s0) + (s0) + 2, "2*s0**2 + s0 + 5*s1*s10 + 2"},
      {(floor_div((-2 * s2) + -1, 2)) +
           (2 * s2 * floor_div((3 * floor_div((-1 * s2), 2) * s2) + (min(s10, s10)), 4)) + 7,
       "2*s2*(((s10 + 3*s2*(((-s2)//2)))//4)) - s2 + 6"},
      {(-3 * s0) + (floor_div((mod(s1, 4)) + -4, 2) * mod(s0, 4)) + -4,
       "-3*s0 + (((Mod(s1, 4))//2))*(Mod(s0, 4)) - 2*(Mod(s0, 4)) - 4"},
      {(s1), "s1"},
      {(s10) + (-3 * mod(s2, 7) * s2 * floor_div((3 * mod(s1, 3)) + (-3 * s1 * s10), 3)) + -1,
       "3*s1*s10*s2*(Mod(s2, 7)) + s10 - 3*s2*(Mod(s1, 3))*(Mod(s2, 7)) - 1"},
      {(-1 * floor_div((floor_div((-2 * s10 * s0) + (s0 * s1), 4) * s10) + (s1), 2)) + (3 * s0) + -1,
       "3*s0 - (((s1 + s10*(((s0*s1 - 2*s0*s10)//4)))//2)) - 1"},
      {(2 * s2) + (s1 * s1 * min(max(s2, s0), s10)) + (2 * min(s10, s0) * mod(s10, 2)) + 1,
       "s1**2*Min(s10, Max(s0, s2)) + 2*s2 + 2*(Mod(s10, 2))*Min(s0, s10) + 1"},
      {(mod(s1, 4)) + -1, "(Mod(s1, 4)) - 1"},
      {(s10) + (floor_div((-3 * mod(s0, 2)) + (3 * mod(s1, 4)) + -1, 2)) + (2 * s0 * s10 * mod(s0, 2)) + 7,
       "2*s0*s10*(Mod(s0, 2)) + s10 + (((-3*(Mod(s0, 2)) + 3*(Mod(s1, 4)) - 1)//2)) + 7"},
      {(s0) + (5 * s10 * min(min(s1, s10), s1)), "s0 + 5*s10*Min(s1, s10)"},
      {(s10) + (s1) + (mod(s1, 7) * s10) + (3 * min(floor_div((s1) + 7, 4), s2)),
       "s1 + s10*(Mod(s1, 7)) + s10 + 3*Min(s2, ((s1 + 7)//4))"},
      {(s1 * floor_div((-3 * s1) + -4, 4)) +
           (floor_div((3 * s2 * s0), 2) * floor_div((-2 * floor_div((5 * s0), 5)) + (s0), 5)) + (s10) +
           (min(min(s1, s0), s10)),
       "s1*(((-3*s1)//4)) - s1 + s10 + (((-s0)//5))*(((3*s0*s2)//2)) + Min(s0, s1, s10)"},
      {(s2) + (min(min(s0, s1), s2)) + (s10) + (min(floor_div((3 * s2), 4), s1) * mod(s10, 2) * s2) + 1,
       "s10 + s2*(Mod(s10, 2))*Min(s1, ((3*s2)//4)) + s2 + Min(s0, s1, s2) + 1"},
      {(-3 *
        floor_div((5 * max(s2, s10) * mod(s10, 2) * floor_div((3 * s2) + (-3 * s10), 4)) + (min(s2, s1)), 2) *
        s1 * s0) +
           7,
       "-3*s0*s1*(((5*(((-3*s10 + 3*s2)//4))*(Mod(s10, 2))*Max(s10, s2) + Min(s1, s2))//2)) + 7"},
      {(s10 * s10 * s0) + (-1 * min(s1, s1)) + (s2 * s10), "s0*s10**2 - s1 + s10*s2"},
      {(2 * s1 * s2) + (mod(s1, 7)), "2*s1*s2 + (Mod(s1, 7))"},
      {(-1 * s1 * min(mod(s10, 4), s1) * s1), "-s1**2*Min(s1, Mod(s10, 4))"},
      {(2 * min(s1, s1) * s1 * max(min(s1, s10), s1)) +
           (floor_div((3 * min(s1, s1) * min(s2, s1)) + (min(s0, s1) * min(s10, s10)) + 1, 4) *
            floor_div((-3 * s1 * s10 * max(s1, s1)) + 1, 3) * s0) +
           (s1),
       "-s0*s1**2*s10*(((3*s1*Min(s1, s2) + s10*Min(s0, s1) + 1)//4)) + 2*s1**3 + s1"},
      {(2 * s1) + (5 * min(floor_div((2 * s0 * s1 * s1), 5), s1) * s10) +
           (-1 * max(floor_div((-3 * s2 * s0 * s2) + (s0) + 1, 5), s2)) + -4,
       "2*s1 + 5*s10*Min(s1, ((2*s0*s1**2)//5)) - Max(s2, ((-3*s0*s2**2 + s0 + 1)//5)) - 4"},
      {(-2 * s2 * floor_div((s10), 5)) + (-1 * s1 * min(mod(s0, 7), s0)) + (2 * s10 * mod(s2, 7)) +
           (s10 * mod(s0, 3)) + 7,
       "-s1*Min(s0, Mod(s0, 7)) + s10*(Mod(s0, 3)) + 2*s10*(Mod(s2, 7)) - 2*s2*((s10//5)) + 7"},
      {(-1 * mod(s2, 2)) + (-3 * s0) + (min(s1, s2)) + (3 * max(s10, s2)),
       "-3*s0 - (Mod(s2, 2)) + 3*Max(s10, s2) + Min(s1, s2)"},
      {(3 * s0 * floor_div((-2 * mod(s2, 4) * max(s1, s1) * floor_div((s10) + (5 * s2 * s1) + -4, 3)), 3)) +
           7,
       "3*s0*(((-2*s1*(((5*s1*s2 + s10 - 4)//3))*(Mod(s2, 4)))//3)) + 7"},
      {(-3 * s1) + 2, "2 - 3*s1"},
      {(s10), "s10"},
      {(mod(s2, 7)) + (s2) + -1, "s2 + (Mod(s2, 7)) - 1"},
      {(max(max(s1, s0), s2) * min(mod(s10, 7), s10)) + 2, "Max(s0, s1, s2)*Min(s10, Mod(s10, 7)) + 2"},
      {(-1 * min(s1, s10)) + (s10), "s10 - Min(s1, s10)"},
      {(-1 * s0) + -4, "-s0 - 4"},
  };
  for (const Row& row : rows) EXPECT_EQ(row.value.to_string(), row.text);
}

class PrintTest : public testing::Test {
 protected:
  Ref<ShapeEnv> env = ShapeEnv::create();
  SymInt s0 = env->create_symbol(8, "x.size(0)"), s1 = env->create_symbol(12, "x.size(1)");
  SymInt s2 = env->create_symbol(20, "x.size(2)");
};

TEST_F(PrintTest, Polynomials) {
  EXPECT_EQ((2 * s0 + 1).to_string(), "2*s0 + 1");
  EXPECT_EQ((s1 * s0).to_string(), "s0*s1");
  EXPECT_EQ((s0 * s0 - 1).to_string(), "s0**2 - 1");
  EXPECT_EQ((1 - s0).to_string(), "1 - s0");
  EXPECT_EQ((1 - s0 * s1).to_string(), "-s0*s1 + 1");
  EXPECT_EQ((1 - s0 * s0).to_string(), "1 - s0**2");
  EXPECT_EQ((-1 - s0).to_string(), "-s0 - 1");
  EXPECT_EQ((s1 - s0).to_string(), "-s0 + s1");
  EXPECT_EQ((-s0).to_string(), "-s0");
  EXPECT_EQ((s0 * (s1 + 1)).to_string(), "s0*s1 + s0");
  EXPECT_EQ((-3 * s0 * s1 * s1).to_string(), "-3*s0*s1**2");
}

TEST_F(PrintTest, FloorDivAndMod) {
  EXPECT_EQ(floor_div(s0, 2).to_string(), "(s0//2)");
  EXPECT_EQ((floor_div(s0, 2) + s0).to_string(), "s0 + ((s0//2))");
  EXPECT_EQ((3 * floor_div(s0 + 1, 2) + 1).to_string(), "3*(((s0 + 1)//2)) + 1");
  EXPECT_EQ((-floor_div(s0, 2)).to_string(), "-((s0//2))");
  EXPECT_EQ((s0 - 2 * floor_div(s0, 2)).to_string(), "s0 - 2*((s0//2))");
  EXPECT_EQ(pow(floor_div(s0, 2), 2).to_string(), "((s0//2))**2");
  EXPECT_EQ(floor_div(s0, floor_div(s1, 3)).to_string(), "(s0//((s1//3)))");
  EXPECT_EQ(floor_div(max(s0, s1), 2).to_string(), "(Max(s0, s1)//2)");
  EXPECT_EQ(mod(s0, 2).to_string(), "Mod(s0, 2)");
  EXPECT_EQ((2 * mod(s0, 2) + 1).to_string(), "2*(Mod(s0, 2)) + 1");
  EXPECT_EQ(mod(floor_div(s0, 2), 3).to_string(), "Mod((s0//2), 3)");
}

TEST_F(PrintTest, MinMaxPowWhere) {
  EXPECT_EQ(min(s0, 3).to_string(), "Min(3, s0)");
  EXPECT_EQ(max(s0, 9).to_string(), "Max(9, s0)");
  EXPECT_EQ(max(max(s0 + s1, s0 * s1), 30).to_string(), "Max(30, s0*s1, s0 + s1)");
  EXPECT_EQ(min(min(floor_div(s0, 2), s1), 4).to_string(), "Min(4, s1, (s0//2))");
  EXPECT_EQ(pow(2, s0).to_string(), "PowByNatural(2, s0)");
  EXPECT_EQ((3 * pow(2, s0) + 1).to_string(), "3*(PowByNatural(2, s0)) + 1");
  EXPECT_EQ(sym_ite(s0 > 4, s0, s1).to_string(), "Where(s0 > 4, s0, s1)");
}

TEST_F(PrintTest, Comparisons) {
  EXPECT_EQ((s0 == 5).to_string(), "Eq(s0, 5)");
  EXPECT_EQ((5 == s0).to_string(), "Eq(s0, 5)");
  EXPECT_EQ((mod(s0, 20) != 0).to_string(), "Ne(Mod(s0, 20), 0)");
  EXPECT_EQ((s0 > 4).to_string(), "s0 > 4");
  EXPECT_EQ((s0 >= 4).to_string(), "s0 >= 4");
  EXPECT_EQ((4 < s0).to_string(), "s0 > 4");
  EXPECT_EQ((s0 + s1 <= 10).to_string(), "s0 + s1 <= 10");
  EXPECT_EQ((s0 == s1).to_string(), "Eq(s0, s1)");
  EXPECT_EQ((s0 == 2 * s1).to_string(), "Eq(s0, 2*s1)");
  EXPECT_EQ((2 * s0 == 3 * s1).to_string(), "Eq(2*s0, 3*s1)");
  EXPECT_EQ((s0 - 1 < s1).to_string(), "s0 < s1 + 1");
  EXPECT_EQ((s0 + 1 < s1).to_string(), "s0 + 1 < s1");
  EXPECT_EQ((floor_div(s0, 2) > 4).to_string(), "((s0//2)) > 4");
  EXPECT_EQ((mod(s0, 7) > 4).to_string(), "(Mod(s0, 7)) > 4");
}

TEST_F(PrintTest, Logic) {
  EXPECT_EQ(((s0 > 3) & (s1 == 2)).to_string(), "Eq(s1, 2) & (s0 > 3)");
  EXPECT_EQ(((s0 > 3) | (s1 == 2)).to_string(), "Eq(s1, 2) | (s0 > 3)");
  EXPECT_EQ((!((s0 > 3) & (s1 == 2))).to_string(), "~(Eq(s1, 2) & (s0 > 3))");
  EXPECT_EQ(((s0 > 3) & ((s1 > 2) | (s2 > 3))).to_string(), "(s0 > 3) & ((s1 > 2) | (s2 > 3))");
  EXPECT_EQ((!env->create_unbacked_bool()).to_string(), "~u0");
}

TEST_F(PrintTest, Floats) {
  SymFloat z = env->create_unbacked_float("y.item()");
  EXPECT_EQ((z + 1.5).to_string(), "zuf0 + 1.5");
  EXPECT_EQ((z * 2).to_string(), "2.0*zuf0");
  EXPECT_EQ((z - s0).to_string(), "zuf0 - ToFloat(s0)");
  EXPECT_EQ(true_div(s0, s1).to_string(), "IntTrueDiv(s0, s1)");
  EXPECT_EQ((true_div(s0, s1) + 1).to_string(), "(IntTrueDiv(s0, s1)) + 1.0");
  EXPECT_EQ((z / s0).to_string(), "FloatTrueDiv(zuf0, ToFloat(s0))");
  EXPECT_EQ(sym_trunc(z).to_string(), "TruncToInt(zuf0)");
  EXPECT_EQ(sqrt(z).to_string(), "OpaqueUnaryFn_sqrt(zuf0)");
  EXPECT_EQ((z < 1.5).to_string(), "zuf0 < 1.5");
  EXPECT_EQ((1.5 < z).to_string(), "zuf0 > 1.5");
  EXPECT_EQ((z == 2.5).to_string(), "Eq(zuf0, 2.5)");
  EXPECT_EQ(SymFloat(2).to_string(), "2.0");
}

TEST_F(PrintTest, PlainValues) {
  EXPECT_EQ(SymInt(-7).to_string(), "-7");
  EXPECT_EQ(SymInt(INT64_MIN).to_string(), "-9223372036854775808");
  EXPECT_EQ(SymBool(true).to_string(), "True");
  EXPECT_EQ(fmt::format("[{}, {}, {}]", s0, SymInt(3), s0 == 5), "[s0, 3, Eq(s0, 5)]");
}

}  // namespace
}  // namespace weft
