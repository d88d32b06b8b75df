#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include "house/source_tree.h"

// The catalogue of the reference suites, and the script that counts which of its rows pass.

namespace weft::house {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

struct Output {
  int status;
  std::string text;  // of both streams
};

Output run_script(const std::string& arguments) {
  const std::string command = WEFT_SOURCE_DIR "/scripts/conformance " + arguments + " 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  return {WEXITSTATUS(pclose(pipe)), text};
}

// A folder with a small catalogue, and reports about it.
class Conformance : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v python3 >/dev/null") != 0) GTEST_SKIP() << "needs python3";
    fs::create_directories(folder);
    write("a.tsv",
          "suite\ttest\tkind\tarea\tmust_hold\nTestA\ttest_one\tport\tx\tOne "
          "holds.\nTestA\ttest_two\tanalog\ty\t"
          "Two holds.\nTestA\thelper\tnone\tz\tNothing.\n");
    write("a-lost.tsv",
          "suite\ttest\tkind\tarea\tmust_hold\nTestB\ttest_one\tport\tx\tB "
          "holds.\nTestA\ttest_three\tport\tx\tThree "
          "holds.\n");
  }
  void TearDown() override { fs::remove_all(folder); }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder / name) << text; }
  std::string read(const std::string& name) {
    std::ifstream in(folder / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // What the script says of a report.
  Output run(const std::string& report, const std::string& options = "") {
    write("report", report);
    const std::string place = folder.string();
    return run_script(place + "/report --catalogue " + place + " " + options);
  }

  fs::path folder = fs::path(::testing::TempDir()) /
                    (std::string("weft_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

constexpr const char* kReport =
    "<?xml version=\"1.0\"?>\n<testsuite>"
    "<testcase name=\"TestA.test_one\" status=\"run\"/>"
    "<testcase name=\"Plain/TestA.test_two/0\" status=\"run\"/>"
    "<testcase name=\"Plain/TestA.test_two/1\" status=\"fail\"><failure/></testcase>"
    "<testcase name=\"Plain/TestA.test_three/0\" status=\"run\"/>"
    "<testcase name=\"Loaded/TestA.test_three/0\" status=\"run\"/>"
    "<testcase name=\"TestA.helper\" status=\"run\"/>"
    "<testcase name=\"TestB.test_one\" status=\"notrun\"><skipped "
    "message=\"SKIP_REGULAR_EXPRESSION_MATCHED\"/></testcase>"
    "<testcase name=\"Other.test_one\" status=\"run\"/>"
    "</testsuite>";

TEST_F(Conformance, CountsRowsOfWhichAllTestsPass) {
  const Output output = run(kReport);
  EXPECT_EQ(output.status, 0);
  EXPECT_EQ(output.text, "TestA     2 / 3\nTestB     0 / 1\ntotal     2 / 4\n");
}

TEST_F(Conformance, CountsTestsOfAListing) {
  EXPECT_EQ(
      run("Test project x\n  Test  #1: TestA.test_one\n  Test #12: TestB.test_one\n\nTotal Tests: 2\n").text,
      "TestA     1 / 3\nTestB     1 / 1\ntotal     2 / 4\n");
}

TEST_F(Conformance, ListsWhatIsMissing) {
  EXPECT_EQ(run(kReport, "--missing TestA").text, "TestA.test_two  [analog, y]\n  Two holds.\n");
  const Output output = run(kReport, "--missing TestC");
  EXPECT_EQ(output.status, 1);
  EXPECT_THAT(output.text, HasSubstr("no suite 'TestC'; there are TestA, TestB"));
}

TEST_F(Conformance, KeepsATableInAPage) {
  const std::string marks[] = {"<!-- written by scripts/conformance --update -->\n",
                               "<!-- end of what is written -->\n"};
  write("page.md", "before\n" + marks[0] + "old\n" + marks[1] + "after\n");
  const std::string page = (folder / "page.md").string();
  EXPECT_THAT(run(kReport, "--check " + page).text, HasSubstr("out of date"));
  EXPECT_EQ(run(kReport, "--update " + page).status, 0);
  EXPECT_EQ(run(kReport, "--check " + page).status, 0);
  EXPECT_EQ(read("page.md"), "before\n" + marks[0] + run(kReport, "--markdown").text + marks[1] + "after\n");
  EXPECT_THAT(read("page.md"), HasSubstr("| TestA | 2 / 3 |\n| TestB | 0 / 1 |\n| total | 2 / 4 |\n"));
  write("page.md", "no marks\n");
  EXPECT_THAT(run(kReport, "--update " + page).text, HasSubstr("has no place for the table"));
}

TEST_F(Conformance, MissesRowsThatPassedBefore) {
  write("page.md", "<!-- written by scripts/conformance --update -->\n<!-- end of what is written -->\n");
  const std::string page = (folder / "page.md").string();
  EXPECT_EQ(run(kReport, "--update " + page).status, 0);
  EXPECT_EQ(read("passing.txt"), "TestA.test_one\nTestA.test_three\n");
  const std::string less = "<testsuite><testcase name=\"TestA.test_one\" status=\"run\"/></testsuite>";
  for (const char* option : {"--check ", "--update "}) {
    const Output output = run(less, option + page);
    EXPECT_EQ(output.status, 1);
    EXPECT_THAT(output.text, HasSubstr("rows that passed before do not pass, or are gone: TestA.test_three"));
  }
}

TEST_F(Conformance, UpdatesFromResultsOnly) {
  write("page.md", "<!-- written by scripts/conformance --update -->\n<!-- end of what is written -->\n");
  const Output output = run("  Test  #1: TestA.test_one\n", "--update " + (folder / "page.md").string());
  EXPECT_EQ(output.status, 1);
  EXPECT_THAT(output.text, HasSubstr("lists tests, and does not say which of them pass"));
}

TEST_F(Conformance, RefusesABadCatalogue) {
  const std::string columns = "suite\ttest\tkind\tarea\tmust_hold\n";
  const std::pair<std::string, std::string> cases[] = {
      {"TestA\ttest_one\tport\tx\n", "the first line is not the names of the columns"},
      {columns + "TestA\ttest_four\tport\tx\n", "b.tsv:2: expected 5 columns"},
      {columns + "TestA\ttest_four\tmaybe\tx\tFour.\n", "b.tsv:2: unknown kind 'maybe'"},
      {columns + "TestA\ttest_one\tport\tx\tOne.\n", "b.tsv:2: TestA.test_one is there twice"}};
  for (const auto& [text, words] : cases) {
    write("b.tsv", text);
    const Output output = run(kReport);
    EXPECT_EQ(output.status, 1);
    EXPECT_THAT(output.text, HasSubstr(words));
  }
}

TEST_F(Conformance, TheCatalogueIsWellFormed) {
  write("report", "Total Tests: 0\n");
  const Output output = run_script((folder / "report").string());
  EXPECT_EQ(output.status, 0);
  EXPECT_THAT(output.text, HasSubstr("\nTestTracer                      0 / 125\n"));
}

}  // namespace
}  // namespace weft::house
