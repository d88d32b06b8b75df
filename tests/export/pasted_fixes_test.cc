// What an error suggests in C++ is pasted into a program, built by a compiler, and exported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "export/support/programs_to_fix.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// The lines of a message that are C++.
template <typename M>
std::string suggested(const M& module, int64_t x, int64_t y) {
  try {
    testing::exported(module, x, y, Dim("a"), Dim("b"));
  } catch (const ConstraintViolationError& error) {
    const std::string text = error.message() + "\n";
    constexpr std::string_view kBegin = "\nIn C++:\n";
    const size_t begin = text.find(kBegin);
    return begin == text.npos ? "" : text.substr(begin + kBegin.size());
  }
  ADD_FAILURE() << "it was accepted as it is";
  return "";
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(PastedFixes, AreBuiltAndExport) {
  if (!std::filesystem::exists(WEFT_CMAKE) || !std::filesystem::exists(WEFT_COMPILER))
    GTEST_SKIP() << "no compiler to build the program with";
  std::string body;
  auto add = [&](const char* name, auto module, int64_t x, int64_t y, const char* fragment) {
    const std::string lines = suggested(module, x, y);
    EXPECT_THAT(lines, HasSubstr(fragment)) << name;
    body += fmt::format(
        "  {{\n  Dim a(\"a\"), b(\"b\");\n  {{\n{}  exported({}(), {}, {}, a, b);\n  std::cout << "
        "\"{}\\n\";\n  }}\n  }}\n",
        lines, name, x, y, name);
  };
  add("OneMore", testing::OneMore(), 6, 7, "auto b = a + 1;");
  add("Equal", testing::Equal(), 6, 6, "auto b = a;");
  add("Halves", testing::Halves(), 6, 3, "auto a = 2 * b;");
  add("Thirds", testing::Thirds(), 6, 3, "auto a = 3 * _a;");
  add("Bounded", testing::Bounded(), 9, 30, "auto a = Dim(\"a\", {.min = 6});");
  add("Fixed", testing::Fixed(), 7, 5, "const int64_t a = 7;");

  // The same folder each time: what was compiled there is found again.
  const std::filesystem::path folder = WEFT_BINARY_DIR "/pasted_fixes";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "main.cc")
      << "#include <iostream>\n\n#include \"" << WEFT_SOURCE_DIR
      << "/tests/export/support/programs_to_fix.h\"\n\nusing namespace weft;\nusing "
         "namespace weft::testing;\n\nint main() {\n"
      << body << "}\n";
  const std::string configure = fmt::format(
      "'{}' -S '{}/tests/consumer' -B '{}/build' -G Ninja -D 'PROGRAM={}/main.cc' -D weft_DIR='{}' "
      "-D CMAKE_CXX_COMPILER='{}' -D CMAKE_CXX_COMPILER_LAUNCHER='{}' -D CMAKE_CXX_FLAGS='{} -O0' >'{}/log' "
      "2>&1",
      WEFT_CMAKE, WEFT_SOURCE_DIR, folder.string(), folder.string(), WEFT_BINARY_DIR, WEFT_COMPILER,
      WEFT_LAUNCHER, WEFT_FLAGS, folder.string());
  ASSERT_EQ(std::system(configure.c_str()), 0) << text_of(folder / "log");
  const std::string make =
      fmt::format("'{}' --build '{}/build' >>'{}/log' 2>&1", WEFT_CMAKE, folder.string(), folder.string());
  ASSERT_EQ(std::system(make.c_str()), 0) << text_of(folder / "log");
  const std::string run = fmt::format("'{}/build/consumer' >'{}/out' 2>&1", folder.string(), folder.string());
  EXPECT_EQ(std::system(run.c_str()), 0) << text_of(folder / "out");
  EXPECT_EQ(text_of(folder / "out"), "OneMore\nEqual\nHalves\nThirds\nBounded\nFixed\n");
}

}  // namespace
}  // namespace weft
