#include "seeds/support/file_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>

#include "support/expect_error.h"

namespace weft::testing {
namespace {

constexpr std::string_view kText = "one two\nthree two\nfour\n";

std::string message_of(FileCheck& check, std::string_view text = kText) {
  return check.match(text).message();
}

TEST(FileCheck, ChecksComeOneAfterTheOther) {
  EXPECT_TRUE(FileCheck().check("one").check("two").check("two").check("four").match(kText));
  EXPECT_FALSE(FileCheck().check("two").check("one").match(kText));
  EXPECT_FALSE(FileCheck().check("two").check("two").check("two").match(kText));
  EXPECT_TRUE(FileCheck().check("on").check("e").match(kText)) << "a check begins where the last one ended";
  EXPECT_FALSE(FileCheck().check("one").check("e t").match("one t")) << "and not before";
}

TEST(FileCheck, NextIsOnTheLineAfter) {
  EXPECT_TRUE(FileCheck().check("one").check_next("three").match(kText));
  EXPECT_TRUE(FileCheck().check("one").check_next("two").check_next("four").match(kText));
  EXPECT_FALSE(FileCheck().check("one").check_next("four").match(kText));
  EXPECT_FALSE(FileCheck().check("four").check_next("one").match(kText));
  EXPECT_TRUE(FileCheck().check_next("three").match(kText)) << "the first line is the one before";
  EXPECT_FALSE(FileCheck().check("four").check_next("x").match("four"));
}

TEST(FileCheck, SameIsOnTheSameLine) {
  EXPECT_TRUE(FileCheck().check("one").check_same("two").match(kText));
  EXPECT_FALSE(FileCheck().check("one").check_same("three").match(kText));
  EXPECT_FALSE(FileCheck().check("one two").check_same("two").match(kText)) << "only found on the next line";
}

TEST(FileCheck, NotIsBetweenItsNeighbours) {
  EXPECT_TRUE(FileCheck().check("three").check_not("one").check("four").match(kText));
  EXPECT_FALSE(FileCheck().check("one").check_not("three").check("four").match(kText));
  EXPECT_FALSE(FileCheck().check("one").check_not("four").match(kText)) << "up to the end";
  EXPECT_FALSE(FileCheck().check_not("one").check("two").match(kText)) << "from the beginning";
  EXPECT_FALSE(FileCheck().check_not("five").check_not("three").check("four").match(kText));
  EXPECT_TRUE(FileCheck().check_not("two\nfour").check("four").match(kText)) << "wholly between them";
  EXPECT_FALSE(FileCheck().check_not("five").check("six").match(kText)) << "the neighbour is to be there";
}

TEST(FileCheck, CountIsAtLeastOrExactly) {
  EXPECT_TRUE(FileCheck().check_count("two", 1).match(kText));
  EXPECT_TRUE(FileCheck().check_count("two", 2, true).match(kText));
  EXPECT_FALSE(FileCheck().check_count("two", 1, true).match(kText));
  EXPECT_FALSE(FileCheck().check_count("two", 3).match(kText));
  EXPECT_TRUE(FileCheck().check_count("five", 0, true).match(kText));
  EXPECT_FALSE(FileCheck().check_count("two", 0, true).match(kText));
  EXPECT_TRUE(FileCheck().check_count("two", 1, true).check("three").match(kText)) << "up to the next check";
  EXPECT_FALSE(FileCheck().check_count("two", 2).check("three").match(kText));
}

TEST(FileCheck, CountsThatSayNothingAreRefused) {
  FileCheck check;
  EXPECT_ERROR(check.check_count("two", 0), "check_count(\"two\", 0): says nothing");
  EXPECT_ERROR(check.check_count("two", -1, true), "check_count(\"two\", -1): says nothing");
  EXPECT_TRUE(check.check("one").match(kText));
}

TEST(FileCheck, DagsComeInAnyOrder) {
  EXPECT_TRUE(FileCheck().check_dag("four").check_dag("one").match(kText));
  EXPECT_TRUE(FileCheck().check_dag("three").check_dag("one").check("four").match(kText));
  EXPECT_FALSE(FileCheck().check_dag("four").check_dag("one").check("three").match(kText))
      << "what follows is after all of them";
  EXPECT_FALSE(FileCheck().check("three").check_dag("four").check_dag("one").match(kText));
  EXPECT_FALSE(FileCheck().check("one").check_not("two").check_dag("four").check_dag("three").match(kText))
      << "what is before them ends with the first";
  EXPECT_TRUE(FileCheck().check_dag("two").check_dag("two").check("three two").match(kText))
      << "each is found from the same place";
}

TEST(FileCheck, WithoutChecksFails) {
  FileCheck none;
  EXPECT_EQ(message_of(none), "this FileCheck has no checks");
}

TEST(FileCheck, SaysWhatWasNotFoundAndWhereItWasSearched) {
  EXPECT_EQ(message_of(FileCheck().check("two").check("five")),
            "Expected to find \"five\" but did not find it\n"
            "From check: five\n"
            "Searched text:\n"
            "one two\n"
            "       ^ searched from here\n"
            "three two\nfour\n");
  EXPECT_EQ(message_of(FileCheck().check_count("two", 3)),
            "Expected to find \"two\" but did not find it\n"
            "From check_count 3: two\n"
            "Searched text:\n"
            "one two\nthree two\n"
            "         ^ searched from here\n"
            "four\n");
  EXPECT_EQ(
      message_of(FileCheck().check("x"), ""),
      "Expected to find \"x\" but did not find it\nFrom check: x\nSearched text:\n\n^ searched from here");
}

TEST(FileCheck, SaysWhatWasFoundThoughItShouldNot) {
  EXPECT_EQ(message_of(FileCheck().check("one").check_not("three two").check("four")),
            "Expected to not find \"three two\" but found it\n"
            "From check_not: three two\n"
            "Searched text:\n"
            "one two\nthree two\n"
            "^^^^^^^^^ found here\n"
            "four\n");
  EXPECT_EQ(message_of(FileCheck().check("one").check_same("four")),
            "Expected to not find a line break but found it\n"
            "From check_same: four\n"
            "Searched text:\n"
            "one two\n"
            "       ^ found here\n"
            "three two\nfour\n");
}

TEST(FileCheck, RunFailsTheTest) {
  EXPECT_TRUE(FileCheck().check("one").run(kText));
  EXPECT_NONFATAL_FAILURE(EXPECT_FALSE(FileCheck().check("five").run(kText)),
                          "Expected to find \"five\" but did not find it");
  EXPECT_NONFATAL_FAILURE(FileCheck().check("one"), "never run");
}

}  // namespace
}  // namespace weft::testing
