#include "house/source_tree.h"

// A page that points at another page of the project, or names a file of its sources, means one that is there.

namespace weft::house {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

Findings broken_links(const SourceFile& page) {
  static const std::regex link(R"(\]\(([^)#\s]+)(?:#[^)]*)?\))");
  const std::filesystem::path folder = (std::filesystem::path(WEFT_SOURCE_DIR) / page.path).parent_path();
  Findings found;
  const std::vector<std::string> lines = lines_of(page.text);
  for (size_t i = 0; i < lines.size(); ++i)
    for (std::sregex_iterator match(lines[i].begin(), lines[i].end(), link), none; match != none; ++match) {
      const std::string target = (*match)[1];
      if (target.find("://") == std::string::npos && !std::filesystem::exists(folder / target))
        found.push_back({page.path, i + 1, "links to " + target + ", which is not there"});
    }
  return found;
}

std::vector<SourceFile> pages() {
  std::vector<SourceFile> files = read_tree({"docs", "data"});
  std::erase_if(files, [](const SourceFile& file) { return !file.path.ends_with(".md"); });
  for (const char* name : {"README.md", "CONTRIBUTING.md"})
    files.push_back(read_source(std::filesystem::path(WEFT_SOURCE_DIR) / name));
  return files;
}

// Paths of sources in backticks: the end of a path is enough, "cpu/gemm/driver.cc".
Findings missing_files(const SourceFile& page, const std::vector<std::string>& paths) {
  static const std::regex quoted(R"(`([a-z_0-9]+(?:/[a-z_0-9]+)+\.(?:h|cc|cmake|inc|txt|tsv))`)");
  Findings found;
  const std::vector<std::string> lines = lines_of(page.text);
  for (size_t i = 0; i < lines.size(); ++i)
    for (std::sregex_iterator match(lines[i].begin(), lines[i].end(), quoted), none; match != none; ++match) {
      const std::string name = (*match)[1];
      const bool is_there = std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
        return path == name || path.ends_with("/" + name);
      });
      if (!is_there) found.push_back({page.path, i + 1, "names " + name + ", which is not there"});
    }
  return found;
}

TEST(Links, LeadSomewhere) { EXPECT_THAT(findings_in(pages(), broken_links), IsEmpty()); }

TEST(Links, NameFilesThatAreThere) {
  std::vector<std::string> paths = {"weft/ops/functions.h"};  // which the build makes
  for (const SourceFile& file :
       read_tree({"benchmarks", "cmake", "examples", "include", "src", "tests", "tools"}))
    paths.push_back(file.path);
  auto rule = [&](const SourceFile& page) { return missing_files(page, paths); };
  EXPECT_THAT(findings_in(pages(), rule), IsEmpty());
}

TEST(LinkRule, FindsFilesThatAreNotThere) {
  const std::vector<std::string> paths = {"src/ops/cpu/gemm.cc", "include/weft/base/error.h"};
  EXPECT_THAT(missing_files({"docs/x.md", "`cpu/gemm.cc`, `weft/base/error.h` and `base/error.h`"}, paths),
              IsEmpty());
  EXPECT_THAT(missing_files({"docs/x.md", "see `base/arena.h`"}, paths), SizeIs(1));
  EXPECT_THAT(missing_files({"docs/x.md", "your `main.cc`, and base/arena.h in words"}, paths), IsEmpty());
}

TEST(LinkRule, FindsBrokenLinks) {
  EXPECT_THAT(broken_links({"docs/x.md", "See [this](no_such_page.md#part)."}), SizeIs(1));
  EXPECT_THAT(broken_links({"docs/x.md", "See [this](README.md) and [that](../LICENSE)."}), IsEmpty());
  EXPECT_THAT(broken_links({"README.md", "[far away](https://example.org/page.md)"}), IsEmpty());
}

}  // namespace
}  // namespace weft::house
