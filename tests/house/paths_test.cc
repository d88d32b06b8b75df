#include "house/source_tree.h"

// The project stands alone: no file of it names a path outside its root.

namespace weft::house {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// Folders that exist on somebody's machine only; system folders are everybody's.
Findings outside_paths(const SourceFile& file) {
  static const std::regex pattern(
      R"((?:^|[^\w.~/}-])/(?:work|home|root|opt|srv|mnt|media|Users)(?:/[\w.-]*|\b)|(?:\.\./)+shared\b|#\s*include\s*["<]\.\.)");
  if (file.text.find('\0') != std::string::npos) return {};  // not text
  return matches(file, file.text, pattern, "names a path outside the project");
}

// In two pieces, so that this file does not break the rule itself.
#define OUTSIDE \
  "/wo"         \
  "rk"

TEST(Paths, StayInsideTheProject) {
  std::vector<SourceFile> files = read_tree({"include", "src", "tests", "tools", "examples", "benchmarks",
                                             "cmake", "scripts", "docs", "data", ".ci"});
  for (const auto& entry : std::filesystem::directory_iterator(WEFT_SOURCE_DIR))
    if (entry.is_regular_file()) files.push_back(read_source(entry.path()));
  EXPECT_THAT(findings_in(files, outside_paths), IsEmpty());
}

TEST(PathRule, FindsPlacesOutside) {
  EXPECT_THAT(outside_paths({"src/x.cc", "open(\"" OUTSIDE "/main/data\");"}), SizeIs(1));
  EXPECT_THAT(outside_paths({"docs/x.md", "See " OUTSIDE " for more."}), SizeIs(1));
  EXPECT_THAT(outside_paths({"docs/x.md", OUTSIDE "/notes.md"}), SizeIs(1));
  EXPECT_THAT(outside_paths({"tests/x.cc",
                             "read(\"/ho"
                             "me/someone/x\");"}),
              SizeIs(1));
  EXPECT_THAT(outside_paths({"tests/x.cc",
                             "read(\"../"
                             "shared/seeds/x.py\");"}),
              SizeIs(1));
  EXPECT_THAT(outside_paths({"tests/a/x.cc",
                             "#inc"
                             "lude \"../b/x.h\""}),
              SizeIs(1));
}

TEST(PathRule, AllowsTheRest) {
  EXPECT_THAT(outside_paths({"src/x.cc", "open(\"/proc/cpuinfo\");"}), IsEmpty());
  EXPECT_THAT(outside_paths({"src/x.cc", "// fork/work and its rest, build/workers"}), IsEmpty());
  EXPECT_THAT(outside_paths({"test", "#!/usr/bin/env bash"}), IsEmpty());
  EXPECT_THAT(outside_paths({"src/x.cc", "weft::shared_thing"}), IsEmpty());
  EXPECT_THAT(outside_paths({"x.bin", std::string("\0 /ho"
                                                  "me/x",
                                                  9)}),
              IsEmpty());
}

}  // namespace
}  // namespace weft::house
