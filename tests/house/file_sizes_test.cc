#include <iostream>

#include "house/source_tree.h"

// A file has one subject and is read top to bottom.

namespace weft::house {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kUsualLines = 600, kMostLines = 900;

Findings longer_than(size_t limit, const SourceFile& file) {
  const size_t lines = lines_of(file.text).size();
  if (lines <= limit) return {};
  return {{file.path, lines, "has " + std::to_string(lines) + " lines; split it by subject"}};
}

TEST(FileSizes, StayReadable) {
  const std::vector<SourceFile> files =
      read_cpp({"include", "src", "tests", "tools", "examples", "benchmarks"});
  EXPECT_THAT(findings_in(files, [](const SourceFile& file) { return longer_than(kMostLines, file); }),
              IsEmpty());
  for (const Finding& finding :
       findings_in(files, [](const SourceFile& file) { return longer_than(kUsualLines, file); }))
    std::cout << "longer than " << kUsualLines << " lines:" << finding << "\n";
}

TEST(FileSizeRule, CountsLines) {
  std::string text;
  for (size_t i = 0; i < kMostLines; ++i) text += "int x;\n";
  EXPECT_THAT(longer_than(kMostLines, {"src/x.cc", text}), IsEmpty());
  EXPECT_THAT(longer_than(kMostLines, {"src/x.cc", text + "int y;"}), SizeIs(1));
}

}  // namespace
}  // namespace weft::house
