#include "house/source_tree.h"

namespace weft::house {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SourceTree, ReadsTheProject) {
  std::vector<SourceFile> files = read_cpp({"tests/house"});
  auto is_this = [](const SourceFile& file) { return file.path == "tests/house/source_tree_test.cc"; };
  ASSERT_EQ(std::count_if(files.begin(), files.end(), is_this), 1);
  EXPECT_NE(std::find_if(files.begin(), files.end(), is_this)->text.find("ReadsTheProject"),
            std::string::npos);
  EXPECT_THAT(read_tree({"no_such_folder"}), IsEmpty());
}

TEST(SourceTree, CountsLinesWithAndWithoutAFinalBreak) {
  EXPECT_THAT(lines_of("a\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(lines_of("a\nb\n"), ElementsAre("a", "b"));
  EXPECT_THAT(lines_of(""), IsEmpty());
}

TEST(SourceTree, RemovesCommentsAndNothingElse) {
  EXPECT_EQ(without_comments("a // b\nc"), "a     \nc");
  EXPECT_EQ(without_comments("a /* b\n */ c"), "a     \n    c");
  EXPECT_EQ(without_comments("x = \"// no \\\" comment\";"), "x = \"// no \\\" comment\";");
  EXPECT_EQ(without_comments("x = '\"'; // y"), "x = '\"';     ");
  EXPECT_EQ(without_comments("n = 1'000; // y"), "n = 1'000;     ");
  EXPECT_EQ(without_comments("s = R\"(\" // inside)\"; // y"), "s = R\"(\" // inside)\";     ");
  EXPECT_EQ(without_comments("/* open"), "       ");
}

TEST(SourceTree, PlacesFindingsOnTheirLines) {
  SourceFile file{"x.cc", "a\nbad\n\nbad bad\n"};
  Findings found = matches(file, file.text, std::regex("bad"), "no");
  ASSERT_THAT(found, SizeIs(3));
  EXPECT_EQ(found[0].line, 2u);
  EXPECT_EQ(found[1].line, 4u);
  EXPECT_EQ(found[2].line, 4u);
  EXPECT_EQ(found[2].what, "no: bad");
}

}  // namespace
}  // namespace weft::house
