#include <optional>
#include <set>

#include "house/source_tree.h"

// A folder includes itself and the folders before it; public headers include public headers only.

namespace weft::house {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// Bottom up. docs/architecture.md says what each is for.
const std::vector<std::string> kFolders = {"base",       "sym",          "core",      "dispatch", "ops",
                                           "autograd",   "func",         "nn",        "models",   "graph",
                                           "graph/text", "graph/script", "graph/run", "passes",   "capture",
                                           "aot",        "export",       "compile",   "io",       "dist"};

std::optional<size_t> folder_named(const std::string& name) {
  auto found = std::find(kFolders.begin(), kFolders.end(), name);
  return found == kFolders.end() ? std::nullopt : std::optional<size_t>(found - kFolders.begin());
}

// The folder of "graph/text/code.h": the deepest that is in the list.
std::optional<size_t> folder_of(const std::string& path) {
  for (size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0;
       slash = path.rfind('/', slash - 1))
    if (const std::optional<size_t> folder = folder_named(path.substr(0, slash))) return folder;
  return std::nullopt;
}

struct Include {
  size_t line;
  std::string target;
};

std::vector<Include> includes_of(const SourceFile& file) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*["<]([^">]+)[">])re");
  std::vector<Include> includes;
  const std::vector<std::string> lines = lines_of(without_comments(file.text));
  for (size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    if (std::regex_search(lines[i], match, pattern)) includes.push_back({i + 1, match[1]});
  }
  return includes;
}

Findings upward_includes(const SourceFile& file) {
  static const std::regex source_path("^(?:include/weft|src)/(([^/]+)/.*)");
  std::smatch match;
  if (!std::regex_match(file.path, match, source_path)) return {};
  const std::optional<size_t> own = folder_of(match[1]);
  if (!own) return {{file.path, 1, "folder '" + match[2].str() + "' is not in the list of folders"}};
  Findings found;
  for (const auto& [line, target] : includes_of(file)) {
    const bool is_public = target.starts_with("weft/");
    const std::optional<size_t> other = folder_of(is_public ? target.substr(5) : target);
    if (is_public && !other)
      found.push_back({file.path, line, "includes " + target + ", which is in no folder of the list"});
    if (other && *other > *own)
      found.push_back(
          {file.path, line,
           kFolders[*own] + " includes " + target + ", but " + kFolders[*other] + " comes after it"});
  }
  return found;
}

// What is installed or shown to users must not need what stays behind.
Findings private_includes(const SourceFile& file) {
  Findings found;
  for (const auto& [line, target] : includes_of(file))
    if (folder_of(target)) found.push_back({file.path, line, "includes " + target + ", which is private"});
  return found;
}

// weft.h is for people who write models, extend.h for authors of operators, passes, extensions and back ends.
// What is for neither is in a folder `detail`, or private. A header that is generated is listed without being
// there.
constexpr const char *kForModels = "weft/weft.h", *kForAuthors = "weft/extend.h";
constexpr size_t kMostForModels = 32;  // a newcomer reads all of it

std::vector<std::string> listed_in(const std::vector<SourceFile>& headers, const std::string& umbrella) {
  std::vector<std::string> listed;
  for (const SourceFile& header : headers)
    if (header.path == "include/" + umbrella)
      for (const Include& include : includes_of(header)) listed.push_back(include.target);
  return listed;
}

// Public headers that are not in exactly one of the lists, and others that are in one.
Findings misplaced_headers(const std::vector<SourceFile>& headers) {
  const std::vector<std::string> models = listed_in(headers, kForModels),
                                 authors = listed_in(headers, kForAuthors);
  Findings found;
  for (const SourceFile& header : headers) {
    const std::string target = header.path.substr(std::string("include/").size());
    if (target == kForModels || target == kForAuthors || !target.ends_with(".h")) continue;
    const auto times =
        std::count(models.begin(), models.end(), target) + std::count(authors.begin(), authors.end(), target);
    if (target.find("/detail/") != std::string::npos) {
      if (times > 0) found.push_back({header.path, 1, "is for nobody, but is listed"});
    } else if (times == 0) {
      found.push_back({header.path, 1,
                       "is in neither weft.h nor extend.h; move it to detail/ or src/ if it is for neither"});
    } else if (times > 1) {
      found.push_back({header.path, 1, "is listed twice"});
    }
  }
  if (models.size() > kMostForModels)
    found.push_back({std::string("include/") + kForModels, 1,
                     "has grown to " + std::to_string(models.size()) + " headers"});
  return found;
}

TEST(Folders, IncludeOnlyFoldersBeforeThem) {
  std::vector<SourceFile> files = read_cpp({"include", "src"});
  EXPECT_GT(files.size(), 50u);
  EXPECT_THAT(findings_in(files, upward_includes), IsEmpty());
}

TEST(Folders, PublicHeadersAndExamplesIncludeNothingPrivate) {
  EXPECT_THAT(findings_in(read_cpp({"include", "examples", "tests/consumer"}), private_includes), IsEmpty());
}

TEST(Folders, EveryPublicHeaderIsForSomebody) {
  EXPECT_THAT(misplaced_headers(read_cpp({"include"})), IsEmpty());
}

// Folders whose row is missing in a page, or stands out of order; a folder without files needs no row.
std::vector<std::string> misplaced_rows(const std::string& page, const std::set<std::string>& with_files) {
  std::vector<std::string> misplaced;
  size_t last = 0;
  for (const std::string& folder : kFolders) {
    const size_t at = page.find("\n| `" + folder + "/` |");
    if (at == std::string::npos ? with_files.count(folder) > 0 : at < last) misplaced.push_back(folder);
    if (at != std::string::npos) last = std::max(last, at);
  }
  return misplaced;
}

TEST(Folders, AreDocumentedInTheirOrder) {
  std::set<std::string> with_files;
  for (const SourceFile& file : read_cpp({"src"}))
    with_files.insert(kFolders[folder_of(file.path.substr(4)).value()]);
  const SourceFile page = read_source(WEFT_SOURCE_DIR "/docs/architecture.md");
  EXPECT_THAT(misplaced_rows(page.text, with_files), IsEmpty()) << "in " << page.path;
}

TEST(FolderRule, FindsAnIncludeUpward) {
  Findings found = upward_includes(
      {"src/core/x.cc", "#include \"weft/base/error.h\"\n#include \"weft/dispatch/operator.h\"\n"});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].line, 2u);
  EXPECT_EQ(found[0].what, "core includes weft/dispatch/operator.h, but dispatch comes after it");
  EXPECT_THAT(upward_includes({"include/weft/sym/x.h", "  #  include <weft/core/tensor.h>\n"}), SizeIs(1));
  EXPECT_THAT(upward_includes({"src/ops/cpu/x.h", "#include \"autograd/engine.h\"\n"}), SizeIs(1));
}

TEST(FolderRule, KnowsTheRoomsOfAFolder) {
  Findings found = upward_includes(
      {"src/graph/text/x.cc", "#include \"graph/node_rules.h\"\n#include \"graph/run/program.h\"\n"});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].what, "graph/text includes graph/run/program.h, but graph/run comes after it");
  EXPECT_THAT(upward_includes({"src/graph/x.cc", "#include \"graph/text/code.h\"\n"}), SizeIs(1));
  EXPECT_THAT(upward_includes({"src/ops/families/x.cc", "#include \"ops/cpu/isa.h\"\n"}), IsEmpty());
}

TEST(FolderRule, FindsTheUmbrellaAndUnknownFolders) {
  EXPECT_THAT(upward_includes({"src/dist/x.cc", "#include \"weft/weft.h\"\n"}), SizeIs(1));
  EXPECT_THAT(upward_includes({"src/utils/x.cc", ""}), SizeIs(1));
}

TEST(FolderRule, AllowsWhatIsBelowAndWhatIsNotWeft) {
  EXPECT_THAT(upward_includes(
                  {"src/autograd/x.cc", "#include \"weft/dispatch/operator.h\"\n#include \"ops/table.h\"\n"}),
              IsEmpty());
  EXPECT_THAT(upward_includes({"include/weft/core/tensor.h", "#include \"weft/core/tensor_methods.inc\"\n"}),
              IsEmpty());
  EXPECT_THAT(upward_includes({"src/base/x.cc", "#include <fmt/format.h>\n#include \"x.h\"\n"}), IsEmpty());
  EXPECT_THAT(upward_includes({"src/base/x.cc", "// #include \"weft/io/zip.h\"\n"}), IsEmpty());
  EXPECT_THAT(upward_includes({"tools/weft/main.cc", "#include \"weft/dist/world.h\"\n"}), IsEmpty());
}

TEST(FolderRule, FindsPrivateIncludes) {
  EXPECT_THAT(private_includes({"include/weft/ops/x.h", "#include \"ops/table.h\"\n"}), SizeIs(1));
  EXPECT_THAT(private_includes({"include/weft/ops/x.h", "#include \"weft/dispatch/schema.h\"\n"}), IsEmpty());
}

TEST(FolderRule, FindsMissingAndMisplacedRows) {
  const std::string page = "\n| `base/` | errors |\n| `core/` | tensors |\n| `sym/` | sizes |\n";
  EXPECT_THAT(misplaced_rows(page, {"base"}), ::testing::ElementsAre("core"));
  EXPECT_THAT(misplaced_rows(page, {"ops"}), ::testing::ElementsAre("core", "ops"));
  EXPECT_THAT(misplaced_rows("\n| `base/` | errors |\n| `io/` | files |\n", {"base", "io"}), IsEmpty());
}

TEST(FolderRule, FindsHeadersThatAreForNobody) {
  std::vector<SourceFile> headers = {
      {"include/weft/weft.h", "#include \"weft/base/a.h\"\n#include \"weft/ops/made.h\"\n"},
      {"include/weft/extend.h", "#include \"weft/weft.h\"\n#include \"weft/base/b.h\"\n"},
      {"include/weft/base/a.h", "#include \"weft/base/c.h\"\n"},
      {"include/weft/base/b.h", ""},
      {"include/weft/base/detail/d.h", ""}};
  EXPECT_THAT(misplaced_headers(headers), IsEmpty());
  headers.push_back({"include/weft/base/c.h", ""});  // that a.h includes it says nothing of whom it is for
  Findings found = misplaced_headers(headers);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].path, "include/weft/base/c.h");
  headers[1].text +=
      "#include \"weft/base/c.h\"\n#include \"weft/base/a.h\"\n#include \"weft/base/detail/d.h\"\n";
  EXPECT_THAT(misplaced_headers(headers), SizeIs(2)) << "one is listed twice, one is for nobody";
}

TEST(FolderRule, FindsAnUmbrellaThatHasGrown) {
  SourceFile umbrella{"include/weft/weft.h", ""};
  for (size_t i = 0; i < kMostForModels; ++i)
    umbrella.text += "#include \"weft/ops/made" + std::to_string(i) + ".h\"\n";
  EXPECT_THAT(misplaced_headers({umbrella}), IsEmpty());
  umbrella.text += "#include \"weft/ops/one_more.h\"\n";
  EXPECT_THAT(misplaced_headers({umbrella}), SizeIs(1));
}

}  // namespace
}  // namespace weft::house
