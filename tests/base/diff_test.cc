#include "base/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/json.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Json recorded_cases() {
  const std::string path = WEFT_SOURCE_DIR "/tests/data/ndiff.json";
  std::ifstream in(path, std::ios::binary);
  return Json::parse(std::string{std::istreambuf_iterator<char>(in), {}}, path);
}

TEST(Ndiff, SaysWhatPythonSays) {
  const Json cases = recorded_cases();
  ASSERT_EQ(cases.size(), 300u);
  for (size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(ndiff(cases.at(i).at(0).as_string(), cases.at(i).at(1).as_string()),
              cases.at(i).at(2).as_string())
        << "case " << i;
}

TEST(Ndiff, MarksWhatChangedInSimilarLines) {
  EXPECT_EQ(ndiff("graph(%x):\n  %y = aten::add(%x, %x)\n  return %y\n",
                  "graph(%x):\n  %y = aten::mul(%x, %x)\n  return %y\n"),
            "  graph(%x):\n"
            "-   %y = aten::add(%x, %x)\n"
            "?              ^^^\n"
            "+   %y = aten::mul(%x, %x)\n"
            "?              ^^^\n"
            "    return %y\n");
}

TEST(Ndiff, OfLinesOfOneSideOnly) {
  EXPECT_EQ(ndiff("", ""), "");
  EXPECT_EQ(ndiff("a\n", ""), "- a\n");
  EXPECT_EQ(ndiff("", "a\nb\n"), "+ a\n+ b\n");
  EXPECT_EQ(ndiff("same\n", "same\n"), "  same\n");
}

TEST(Ndiff, LinesThatAreNotSimilarAreReplacedTheShorterBlockFirst) {
  EXPECT_EQ(ndiff("abc\ndef\n", "1\n"), "+ 1\n- abc\n- def\n");
  EXPECT_EQ(ndiff("abc\n", "1\n2\n"), "- abc\n+ 1\n+ 2\n");
}

TEST(Ndiff, TakesBytesThatAreNoText) {
  EXPECT_EQ(ndiff("same here \xff\n", "same here \xfe\n"),
            "- same here \xff\n?           ^\n+ same here \xfe\n?           ^\n");
  EXPECT_EQ(ndiff("abcdef\xe2\x80", "abcdef\xe2"), "- abcdef\xe2\x80?        -\n+ abcdef\xe2");
}

TEST(Ndiff, LeavesOutTheSearchInVeryLargeChanges) {
  std::vector<std::string> a, b;
  std::string wanted;
  for (int i = 0; i < 600; ++i) {
    a.push_back("the old line " + std::to_string(i) + "\n");
    wanted += "- " + a.back();
  }
  for (int i = 0; i < 600; ++i) {
    b.push_back("the new line " + std::to_string(i) + "\n");
    wanted += "+ " + b.back();
  }
  EXPECT_EQ(ndiff(a, b), wanted);
}

TEST(SplitLines, KeepsEveryKindOfLineBreak) {
  EXPECT_THAT(split_lines(""), IsEmpty());
  EXPECT_THAT(split_lines("a\n\nb"), ElementsAre("a\n", "\n", "b"));
  EXPECT_THAT(split_lines("a\r\nb\rc\vd\fe\x1c"
                          "f\u0085g\u2028h\u2029"),
              ElementsAre("a\r\n", "b\r", "c\v", "d\f", "e\x1c", "f\u0085", "g\u2028", "h\u2029"));
  EXPECT_THAT(split_lines("a\u00a0b"), ElementsAre("a\u00a0b"));
}

TEST(Indent, PutsATabBeforeEveryLine) {
  EXPECT_EQ(indent(""), "");
  EXPECT_EQ(indent("a"), "\ta");
  EXPECT_EQ(indent("a\n"), "\ta");
  EXPECT_EQ(indent("a\n\n  b\r\nc\n\n"), "\ta\n\t\n\t  b\n\tc\n\t");
  EXPECT_EQ(indent("\n"), "\t");
}

}  // namespace
}  // namespace weft
