#include "house/source_tree.h"

// Messages speak C++. One that quotes PyTorch's advice about Python, because its own tests ask for the words,
// goes on with what to do in C++.

namespace weft::house {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Literal {
  size_t line;
  std::string text;
};

// String literals as the compiler joins them.
std::vector<Literal> literals_of(const std::string& code) {
  std::vector<Literal> literals;
  size_t line = 1, last_end = 0;
  for (size_t at = 0; at < code.size();) {
    if (code[at] != '"' && code[at] != '\'') {
      line += code[at] == '\n';
      ++at;
      continue;
    }
    const size_t end = literal_end(code, at);
    const bool is_separator =
        code[at] == '\'' && at > 0 && std::isalnum(static_cast<unsigned char>(code[at - 1]));
    if (is_separator) {
      ++at;
      continue;
    }
    if (code[at] == '"') {
      const std::string between = code.substr(last_end, at - last_end);
      const bool joins = !literals.empty() && between.find_first_not_of(" \t\r\n") == std::string::npos;
      const std::string text = code.substr(at + 1, end - at - 2);
      if (joins) literals.back().text += text;
      else literals.push_back({line, text});
      last_end = end;
    }
    line += static_cast<size_t>(std::count(code.begin() + static_cast<std::ptrdiff_t>(at),
                                           code.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at = end;
  }
  return literals;
}

Findings advice_for_python(const SourceFile& file) {
  static const std::regex python(R"re(@torch\.|`with |with torch\.|[Dd]ecorat|[a-z]=(True|False) to )re");
  Findings found;
  for (const Literal& literal : literals_of(without_comments(file.text))) {
    const bool says_how = literal.text.find("n C++, ") != std::string::npos;
    if (!says_how && std::regex_search(literal.text, python))
      found.push_back({file.path, literal.line, "advice for Python, and none for C++: " + literal.text});
  }
  return found;
}

TEST(Messages, SpeakCpp) {
  EXPECT_THAT(findings_in(read_cpp({"include", "src"}), advice_for_python), IsEmpty());
}

TEST(MessageRule, FindsAdviceForPython) {
  EXPECT_THAT(advice_for_python({"src/x.cc", "fail(\"Add \"\n     \"@torch.jit.script\");"}), SizeIs(1));
  EXPECT_THAT(advice_for_python({"src/x.cc", "\n\nwarn(\"use `with no_grad()`\");"}), SizeIs(1));
  EXPECT_THAT(advice_for_python({"src/x.cc", "fail(\"pass strict=False to trace()\");"}), SizeIs(1));
  EXPECT_EQ(advice_for_python({"src/x.cc", "f('\"');\n\nfail(\"a decorator\");"})[0].line, 3u);
}

TEST(MessageRule, TakesItWithTheCppWayBehindIt) {
  EXPECT_THAT(advice_for_python({"src/x.cc", "fail(\"Add @torch.jit.script: \"\n \"in C++, script(f)\");"}),
              IsEmpty());
  EXPECT_THAT(advice_for_python({"src/x.cc", "fail(\"sizes do not agree with those\"); // with torch.x"}),
              IsEmpty());
  EXPECT_THAT(advice_for_python({"src/x.cc", "fail(\"decorator: in C++, \", \"a decorator\");"}), SizeIs(1))
      << "these are two messages";
}

}  // namespace
}  // namespace weft::house
