#include "house/source_tree.h"

// A page that points at another page of the project points at one that is there.

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

TEST(Links, LeadSomewhere) { EXPECT_THAT(findings_in(pages(), broken_links), IsEmpty()); }

TEST(LinkRule, FindsBrokenLinks) {
  EXPECT_THAT(broken_links({"docs/x.md", "See [this](no_such_page.md#part)."}), SizeIs(1));
  EXPECT_THAT(broken_links({"docs/x.md", "See [this](README.md) and [that](../LICENSE)."}), IsEmpty());
  EXPECT_THAT(broken_links({"README.md", "[far away](https://example.org/page.md)"}), IsEmpty());
}

}  // namespace
}  // namespace weft::house
