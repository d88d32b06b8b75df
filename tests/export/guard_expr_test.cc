#include "export/guard_expr.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using Reading = GuardExpr::Reading;

// 'x' is a tensor of sizes 3 and 4 with strides 4 and 1, `n` is 7; of others nothing is known.
std::optional<double> read(const Reading& reading) {
  using Property = Reading::Property;
  if (reading.root == "n" && reading.property == Property::kValue) return 7;
  if (reading.root != "x") return std::nullopt;
  if (reading.property == Property::kSize) return reading.dim == 0 ? 3 : 4;
  if (reading.property == Property::kStride) return reading.dim == 0 ? 4 : 1;
  return reading.property == Property::kOffset ? std::optional<double>(0) : std::nullopt;
}

std::optional<bool> holds(const char* text) {
  const std::optional<GuardExpr> expr = GuardExpr::parse(text);
  EXPECT_TRUE(expr.has_value()) << text;
  return expr ? expr->holds(read) : std::nullopt;
}

std::string printed(const char* text) {
  return GuardExpr::parse(text)->to_string([](const Reading& reading) {
    std::string name = reading.root;
    for (const std::string& step : reading.steps) name += step;
    return reading.property == Reading::Property::kSize
               ? name + ".size()[" + std::to_string(reading.dim) + "]"
               : name;
  });
}

TEST(GuardExpr, EvaluatesPythonsOperators) {
  EXPECT_EQ(holds("L['x'].size()[0] == 3"), true);
  EXPECT_EQ(holds("2*L['x'].size()[0] + 1 == L['n']"), true);
  EXPECT_EQ(holds("L['x'].size()[0] < L['x'].size()[1] <= 4 < L['n']"), true);
  EXPECT_EQ(holds("L['x'].size()[0] < 4 < 4"), false);
  EXPECT_EQ(holds("L['n'] // 2 == 3 and L['n'] % 2 == 1 and L['n'] / 2 == 3.5"), true);
  EXPECT_EQ(holds("(-L['n']) // 2 == -4 and (-L['n']) % 4 == 1"), true);
  EXPECT_EQ(holds("L['n'] - 3 - 3 == 1 and 2 ** 3 ** 2 == 512 and -2 ** 2 == -4"), true);
  EXPECT_EQ(holds("max(1, L['n'], 3) == 7 and min(L['n'], 2) == 2"), true);
  EXPECT_EQ(holds("not L['n'] == 7 or L['n'] != 8"), true);
  EXPECT_EQ(holds("L['x'].stride()[0] == 4 and L['x'].storage_offset() == 0"), true);
  EXPECT_EQ(holds("9223372036854775807 == 9223372036854775806"), false);
}

TEST(GuardExpr, IsOpenWhereAReadingIs) {
  EXPECT_EQ(holds("L['y'].size()[0] == 3"), std::nullopt);
  EXPECT_EQ(holds("L['n'] == 8 and L['y'].size()[0] == 3"), false);
  EXPECT_EQ(holds("L['n'] == 7 or L['y'].size()[0] == 3"), true);
  EXPECT_EQ(holds("L['n'] // 0 == 3"), std::nullopt);
}

TEST(GuardExpr, PrintsAsPythonDoes) {
  EXPECT_EQ(printed("((-1) + L['args'][1].size()[0]) == (2*L['args'][0].size()[0])"),
            "-1 + args[1].size()[0] == 2 * args[0].size()[0]");
  EXPECT_EQ(printed("L['a']['k'][0].x - (1 - 2)"), "a['k'][0].x - (1 - 2)");
  EXPECT_EQ(printed("(L['a'] + 1) * 2 // (3 * 4)"), "(a + 1) * 2 // (3 * 4)");
  EXPECT_EQ(printed("(L['a'] > 1 or L['a'] < 0) and not L['a'] == 5"), "(a > 1 or a < 0) and not a == 5");
  EXPECT_EQ(printed("max(L['a'], (2))"), "max(a, 2)");
}

TEST(GuardExpr, RefusesWhatIsNoCondition) {
  for (const char* text : {"", "L['x'", "L['x'].size()", "import os", "f(1)", "1 ==", "L['x'] == 'a'", "1 2",
                           "((1)", "L[x]", "__import__('os').system('ls')"})
    EXPECT_FALSE(GuardExpr::parse(text).has_value()) << text;
  const std::string deep = std::string(100'000, '(') + "1" + std::string(100'000, ')');
  EXPECT_FALSE(GuardExpr::parse(deep).has_value());
  const std::string signs = std::string(100'000, '-') + "1";
  EXPECT_FALSE(GuardExpr::parse(signs).has_value());
  std::string sum = "1";
  for (int i = 0; i < 100'000; ++i) sum += "+1";
  EXPECT_FALSE(GuardExpr::parse(sum + " == 1").has_value());
}

}  // namespace
}  // namespace weft
