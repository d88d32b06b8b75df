#include <sstream>

#include "house/source_tree.h"

// The code on the pages about graphs and capture is code that the tests run.

namespace weft::house {
namespace {

// Lines without the blanks around them; empty ones are left out.
std::vector<std::string> bare_lines(const std::string& text) {
  std::vector<std::string> bare;
  for (const std::string& line : lines_of(text)) {
    size_t first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \t");
    if (first != std::string::npos) bare.push_back(line.substr(first, last - first + 1));
  }
  return bare;
}

std::vector<std::vector<std::string>> snippets_of(const std::string& page) {
  std::vector<std::vector<std::string>> snippets;
  size_t at = 0;
  while ((at = page.find("```cpp\n", at)) != std::string::npos) {
    size_t end = page.find("```", at + 7);
    snippets.push_back(bare_lines(page.substr(at + 7, end - at - 7)));
    at = end;
  }
  return snippets;
}

TEST(Snippets, OfThePagesAreRunByTests) {
  std::vector<std::string> run;
  for (const SourceFile& file : read_cpp({"tests/docs"}))
    for (const std::string& line : bare_lines(file.text)) run.push_back(line);
  for (const char* page : {"docs/graph.md", "docs/capture.md"}) {
    std::vector<std::vector<std::string>> snippets = snippets_of(read_source(std::filesystem::path(WEFT_SOURCE_DIR) / page).text);
    EXPECT_GE(snippets.size(), 4u) << page;
    for (const std::vector<std::string>& snippet : snippets) {
      auto found = std::search(run.begin(), run.end(), snippet.begin(), snippet.end());
      EXPECT_NE(found, run.end()) << page << ": tests/docs/ does not have this code, line by line:\n"
                                  << ::testing::PrintToString(snippet);
    }
  }
}

}  // namespace
}  // namespace weft::house
