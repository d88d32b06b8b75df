#include "weft/core/argument_names.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace weft {
namespace {

std::string bound(const char* names, const ValueList& args, const Kwargs& kwargs = {}) {
  return Value::list(ArgumentNames(names).bind(args, kwargs)).to_string();
}

TEST(ArgumentNames, OneStarTakesThePositionsThatAreLeft) {
  EXPECT_EQ(bound("a, b, *rest", {1, 2}), "[1, 2, []]");
  EXPECT_EQ(bound("a, b, *rest", {1, 2, 3, 4}), "[1, 2, [3, 4]]");
  EXPECT_EQ(bound("*rest", {}), "[[]]");
}

TEST(ArgumentNames, NamesBehindTheStarAreGivenByName) {
  EXPECT_EQ(bound("a, *rest, n, m = 5", {1, 2, 3}, {{"n", 4}}), "[1, [2, 3], 4, 5]");
  EXPECT_EQ(bound("a, *rest, n, **others", {1, 2}, {{"z", 6}, {"n", 4}}), "[1, [2], 4, {'z': 6}]");
  EXPECT_ERROR(bound("a, *rest, n", {1, 2, 3}), "argument 'n' is missing");
}

TEST(ArgumentNames, OnlyOneNameTakesWhatIsLeft) {
  EXPECT_ERROR(ArgumentNames("*a, b, *c"), "'*c' comes after '*a'");
  EXPECT_ERROR(ArgumentNames("**a, b"), "'b' comes after '**a', which must be the last");
}

}  // namespace
}  // namespace weft
