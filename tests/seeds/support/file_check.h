#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace weft::testing {

// Says in which order a text contains what, as torch.testing.FileCheck does. Each check begins where the one
// before it ended.
//   FileCheck().check("graph(").check_count("aten::mul", 2,
//   true).check_not("aten::add").run(graph.to_string());
// A FileCheck that is never run fails its test.
class FileCheck {
 public:
  FileCheck() = default;
  ~FileCheck();
  FileCheck(const FileCheck&) = delete;
  FileCheck& operator=(const FileCheck&) = delete;

  // Somewhere after the check before.
  FileCheck& check(std::string_view pattern);
  // On the line after that in which the check before ended.
  FileCheck& check_next(std::string_view pattern);
  // After the check before, on the same line.
  FileCheck& check_same(std::string_view pattern);
  // Nowhere between the checks before and after this one, or the ends of the text.
  FileCheck& check_not(std::string_view pattern);
  // `count` times, one after the other; if `exactly`, then not before the next check.
  FileCheck& check_count(std::string_view pattern, int count, bool exactly = false);
  // Somewhere after the check before; neighbouring check_dags may come in any order.
  FileCheck& check_dag(std::string_view pattern);

  // Whether the text is like that; a failure names the check that failed and shows where.
  ::testing::AssertionResult match(std::string_view text) const;
  // The same as an expectation of the test, failed at the caller's line. Returns whether it holds.
  bool run(std::string_view text, std::source_location where = std::source_location::current());

 private:
  enum class Kind : unsigned char { kCheck, kNext, kSame, kNot, kCount, kDag };
  struct Check {
    Kind kind;
    std::string pattern;
    int count = 1;
  };
  class Run;

  FileCheck& add(Check check);
  static std::string name_of(const Check& check);

  // Neighbouring check_nots, or check_dags, are one group; the others are alone.
  std::vector<std::vector<Check>> groups_;
  mutable bool has_run_ = false;
};

}  // namespace weft::testing
