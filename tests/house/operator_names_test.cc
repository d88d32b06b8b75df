#include "house/source_tree.h"

// Passes, layers and the compiler ask traits, never names: a list of names is out of date the day an operator
// is added. Names belong to the operators' definitions, to file formats, and to tests.

namespace weft::house {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

bool may_name_operators(const std::string& path) {
  return path.starts_with("src/ops/families/") || path.starts_with("src/io/");
}

// Comparisons of a name with a literal, and names taken apart.
Findings compared_names(const SourceFile& file, const std::string& text) {
  static const std::string name_of =
      R"((?:\b(?:\w*_)?name\(\)|\b(?:op|schema)\w*(?:\(\))?\s*(?:\.|->)\s*name))";
  static const std::pair<std::regex, const char*> patterns[] = {
      {std::regex(name_of + R"re(\s*[!=]=\s*"[^"\n]*")re"), "compares a name with a literal; ask a trait"},
      {std::regex(R"re("[^"\n]*"\s*[!=]=\s*(?:\w+(?:\(\))?\s*(?:\.|->)\s*)*)re" + name_of),
       "compares a name with a literal; ask a trait"},
      {std::regex(name_of + R"re(\s*\.\s*(?:starts_with|ends_with|contains|find|rfind|compare)\(\s*["'])re"),
       "takes a name apart; ask a trait"},
  };
  Findings found;
  for (const auto& [pattern, what] : patterns) {
    Findings more = matches(file, text, pattern, what);
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

// Whether the literal at `at` is the first argument of a call that emits an operator, which decides nothing:
// call("aten::relu", ...) or graph.call_function("aten::relu", ...).
bool is_emitted(const std::string& text, size_t at) {
  static const std::regex emission(R"(\b(?:call|call_function)\s*\(\s*$)");
  const size_t begin = at - std::min<size_t>(at, 80);
  return std::regex_search(text.substr(begin, at - begin), emission);
}

// Literals that are an operator's qualified name and nothing else: tables of names, lookups of fixed names.
Findings listed_names(const SourceFile& file, const std::string& text) {
  static const std::regex qualified(R"re("(?:aten|prims|quantized)::\w+(?:\.\w+)?")re");
  Findings found;
  for (std::sregex_iterator match(text.begin(), text.end(), qualified), none; match != none; ++match) {
    const auto at = match->position();
    if (is_emitted(text, static_cast<size_t>(at))) continue;
    const auto line = 1 + std::count(text.begin(), text.begin() + at, '\n');
    found.push_back({file.path, static_cast<size_t>(line),
                     "names " + match->str() + "; ask a trait, or emit it by call() or call_function()"});
  }
  return found;
}

Findings decisions_by_name(const SourceFile& file) {
  if (may_name_operators(file.path)) return {};
  const std::string text = without_comments(file.text);
  Findings found = compared_names(file, text), more = listed_names(file, text);
  found.insert(found.end(), more.begin(), more.end());
  return found;
}

Findings planted(const std::string& text) { return decisions_by_name({"src/passes/x.cc", text}); }

TEST(OperatorNames, DecideNothing) {
  EXPECT_THAT(findings_in(read_cpp({"include", "src", "tools/weft"}), decisions_by_name), IsEmpty());
}

TEST(OperatorNameRule, FindsComparisons) {
  EXPECT_THAT(planted(R"(if (op.name() == "aten::relu") fuse();)"), Not(IsEmpty()));
  EXPECT_THAT(planted(R"(if (node->op().name() != "relu") return;)"), Not(IsEmpty()));
  EXPECT_THAT(planted(R"(if ("relu" == node.op().name()) return;)"), Not(IsEmpty()));
  EXPECT_THAT(planted(R"(return schema.qualified_name() == "aten::add.Tensor";)"), Not(IsEmpty()));
  EXPECT_THAT(planted(R"(return op.schema().name == "add";)"), Not(IsEmpty()));
  EXPECT_THAT(planted("return op.name() ==\n    \"aten::add.Tensor\";"), Not(IsEmpty()));
}

TEST(OperatorNameRule, FindsNamesTakenApart) {
  EXPECT_THAT(planted(R"(if (op.name().starts_with("aten::conv")) return;)"), Not(IsEmpty()));
  EXPECT_THAT(planted(R"(bool inplace = op.name().ends_with('_');)"), SizeIs(1));
}

TEST(OperatorNameRule, FindsListsAndLookups) {
  EXPECT_THAT(planted(R"(const std::set<std::string> kFusable = {"aten::add.Tensor", "aten::mul.Tensor"};)"),
              SizeIs(2));
  EXPECT_THAT(planted(R"(if (&op == find_operator("aten::relu")) return;)"), SizeIs(1));
  EXPECT_THAT(planted(R"(if (&op == &operator_named( "aten::relu")) return;)"), SizeIs(1));
  EXPECT_THAT(planted(R"(constexpr const char* kRelu = "aten::relu";)"), SizeIs(1));
  EXPECT_THAT(planted("\"prims::convert_element_type\""), SizeIs(1));
}

TEST(OperatorNameRule, AllowsEmissionTextAndMessages) {
  EXPECT_THAT(planted(R"(return call("aten::relu", {x}).to_tensor();)"), IsEmpty());
  EXPECT_THAT(planted(R"(Node& relu = graph.call_function("aten::relu.default", {x});)"), IsEmpty());
  EXPECT_THAT(planted(R"(fail("{}: no kernel", op.name());)"), IsEmpty());
  EXPECT_THAT(planted(R"(const char* pattern = "%1 = aten::relu(%0)\n";)"), IsEmpty());
  EXPECT_THAT(planted(R"(// op.name() == "aten::relu" would be a decision by name)"), IsEmpty());
  EXPECT_THAT(planted(R"(if (name == "Dict") return parse_dict();)"), IsEmpty());
  EXPECT_THAT(planted(R"(std::string name() const override { return "CopySlices"; })"), IsEmpty());
}

TEST(OperatorNameRule, AllowsDefinitionsAndFormats) {
  const std::string text = R"(if (op.name() == "aten::relu") return;)";
  EXPECT_THAT(decisions_by_name({"src/ops/families/x.cc", text}), IsEmpty());
  EXPECT_THAT(decisions_by_name({"src/io/pt2.cc", text}), IsEmpty());
  EXPECT_THAT(decisions_by_name({"src/dispatch/dispatch.cc", text}), Not(IsEmpty()));
}

}  // namespace
}  // namespace weft::house
