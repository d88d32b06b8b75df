#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "samples/sample_file.h"
#include "weft/base/error.h"

// Runs recorded calls and compares all that is stored of them: values, types, geometry, aliasing, writes,
// gradients, and whether a bad call fails.

namespace weft::recorded {

enum class Outcome : uint8_t { kPassed, kFailed, kSkipped };

struct RowResult {
  Outcome outcome = Outcome::kPassed;
  std::vector<std::string> differences;  // of a failed row
  std::string reason;                    // of a skipped row
  bool is_missing = false;               // skipped because the operator is not defined
  std::string message;                   // what a call that must fail said
};

struct RunOptions {
  bool vjp = true;
};

// What is wrong with an error as the answer to a bad call; nothing where it is the caller's mistake.
std::optional<std::string> wrong_kind(const Error& error);

RowResult run_row(const SampleFile& file, const Row& row, const RunOptions& options = {});

// The rows of one overload taken together.
struct OverloadResult {
  int passed = 0, failed = 0, skipped = 0;
  bool is_missing = false;
  std::vector<std::string> differences;  // "id: what", of all failed rows in order
  std::map<std::string, int> reasons;    // why rows were skipped
};

// Runs the rows of a file that `wanted` accepts, by overload in alphabetical order. `watch` sees each row
// before it runs and its result after.
struct Watch {
  std::function<void(const Row&)> before;
  std::function<void(const Row&, const RowResult&)> after;
};
std::map<std::string, OverloadResult> run_file(const SampleFile& file,
                                               const std::function<bool(const std::string& overload)>& wanted,
                                               const RunOptions& options = {}, const Watch& watch = {});

}  // namespace weft::recorded
