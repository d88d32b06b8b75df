// The recorded calls in tests/data/samples: whatever PyTorch answered, weft answers.
//
// tests/data/samples/pending.txt is the one place that lists what does not hold yet: an overload that is not
// defined, or a single row ("aten::add.Tensor#3"). The list is exact: what passes must not stand on it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>
#include <set>

#include "samples/runner.h"

namespace weft::recorded {
namespace {

const std::filesystem::path kFolder = WEFT_SOURCE_DIR "/tests/data/samples";

std::set<std::string> read_pending() {
  std::ifstream file(kFolder / "pending.txt");
  std::set<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') lines.insert(line);
  return lines;
}
const std::set<std::string>& pending() {
  static const std::set<std::string> lines = read_pending();
  return lines;
}

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const auto& path : sample_files(kFolder)) names.push_back(path.stem().string());
  return names;
}

class RecordedCalls : public ::testing::TestWithParam<std::string> {};

TEST_P(RecordedCalls, AnswerAsPyTorchDid) {
  SampleFile file = SampleFile::load(kFolder / (GetParam() + ".json"));
  constexpr int kMostShown = 20;
  int shown = 0;
  std::set<std::string> passing_overloads;
  for (const Row& row : file.rows()) {
    RowResult result = run_row(file, row);
    bool is_pending = pending().contains(row.overload) || pending().contains(row.id);
    if (result.outcome == Outcome::kPassed) {
      EXPECT_FALSE(pending().contains(row.id)) << row.id << " passes now; take it off pending.txt";
      if (pending().contains(row.overload)) passing_overloads.insert(row.overload);
    } else if (!is_pending && shown++ < kMostShown) {
      ADD_FAILURE() << row.id << ": " << (result.is_missing ? "the operator is not defined" : result.reason)
                    << ::testing::PrintToString(result.differences);
    }
  }
  EXPECT_LE(shown, kMostShown) << "and more";
  EXPECT_THAT(passing_overloads, ::testing::IsEmpty())
      << "rows of these pass now; take them off pending.txt, or list the rows that do not";
}
INSTANTIATE_TEST_SUITE_P(Family, RecordedCalls, ::testing::ValuesIn(families()),
                         [](const auto& info) { return info.param; });

TEST(RecordedCallsPending, ListsOnlyRowsThatExist) {
  std::set<std::string> unknown = pending();
  for (const auto& path : sample_files(kFolder)) {
    SampleFile file = SampleFile::load(path);
    for (const Row& row : file.rows()) {
      unknown.erase(row.id);
      unknown.erase(row.overload);
    }
  }
  EXPECT_THAT(unknown, ::testing::IsEmpty());
}

}  // namespace
}  // namespace weft::recorded
