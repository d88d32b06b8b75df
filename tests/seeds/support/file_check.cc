#include "seeds/support/file_check.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft::testing {
namespace {

// A part of the text.
struct Range {
  size_t begin, end;
};

// Why a text is not as it should be.
struct Mismatch {
  std::string message;
};

// The text with marks below a part of it, up to the end of its line.
std::string marked(std::string_view text, const Range& part, std::string_view note) {
  const size_t line_break = text.substr(0, part.begin).rfind('\n');  // npos + 1 is the beginning
  const size_t line_begin = line_break + 1, line_end = std::min(text.find('\n', part.begin), text.size());
  std::string result(text.substr(0, line_end));
  result += "\n" + std::string(part.begin - line_begin, ' ');
  result.append(std::max<size_t>(std::min(part.end, line_end) - part.begin, 1), '^');
  return result.append(" ").append(note).append(text.substr(line_end));
}

std::string quoted(std::string_view pattern) {
  return pattern == "\n" ? "a line break" : "\"" + std::string(pattern) + "\"";
}

}  // namespace

// Tries the checks on one text; throws a Mismatch for the first that does not hold.
class FileCheck::Run {
 public:
  using Group = std::vector<Check>;

  explicit Run(std::string_view text) : text_(text) {}

  void match(const std::vector<Group>& groups) const {
    Range before = {0, 0};
    for (size_t i = 0; i < groups.size(); ++i) {
      if (groups[i][0].kind != Kind::kNot) {
        before = find_group(groups[i], before);
        continue;
      }
      // What must not be there ends where the next check is found.
      const Group& absent = groups[i];
      const bool is_last = ++i == groups.size();
      const Range after = is_last ? Range{text_.size(), text_.size()} : find_group(groups[i], before);
      for (const Check& check : absent) expect_none(check, check.pattern, {before.end, after.begin});
      before = after;
    }
  }

 private:
  Range find_group(const Group& group, const Range& before) const {
    Range found = find(group[0], before);
    for (size_t i = 1; i < group.size(); ++i) {
      const Range one = find(group[i], before);
      found = {std::min(found.begin, one.begin), std::max(found.end, one.end)};
    }
    return found;
  }

  Range find(const Check& check, const Range& before) const {
    Range found = {0, before.end};
    switch (check.kind) {
      case Kind::kCheck:
      case Kind::kDag:
        return find_after(check, check.pattern, before.end);
      case Kind::kSame:
        found = find_after(check, check.pattern, before.end);
        expect_none(check, "\n", {before.end, found.begin});
        return found;
      case Kind::kNext: {
        const Range line = find_after(check, "\n", before.end);
        found = find_after(check, check.pattern, line.end);
        expect_none(check, "\n", {line.end, found.begin});
        return found;
      }
      case Kind::kCount: {
        const size_t begin = find_after(check, check.pattern, before.end).begin;
        for (int i = 0; i < check.count; ++i) found = find_after(check, check.pattern, found.end);
        return {begin, found.end};
      }
      case Kind::kNot:
        break;
    }
    invariant(false, "a check_not has no place");
    return found;
  }

  Range find_after(const Check& check, std::string_view pattern, size_t from) const {
    const size_t at = text_.find(pattern, from);
    if (at != text_.npos) return {at, at + pattern.size()};
    throw Mismatch{"Expected to find " + quoted(pattern) + " but did not find it\nFrom " + name_of(check) +
                   ": " + check.pattern + "\nSearched text:\n" +
                   marked(text_, {from, from}, "searched from here")};
  }

  void expect_none(const Check& check, std::string_view pattern, const Range& part) const {
    const size_t at = text_.substr(part.begin, part.end - part.begin).find(pattern);
    if (at == text_.npos) return;
    const Range found = {part.begin + at, part.begin + at + pattern.size()};
    throw Mismatch{"Expected to not find " + quoted(pattern) + " but found it\nFrom " + name_of(check) +
                   ": " + check.pattern + "\nSearched text:\n" + marked(text_, found, "found here")};
  }

  std::string_view text_;
};

FileCheck::~FileCheck() {
  if (!has_run_) ADD_FAILURE() << "a FileCheck was made but never run";
}

FileCheck& FileCheck::add(Check check) {
  const bool is_grouped = check.kind == Kind::kNot || check.kind == Kind::kDag;
  if (is_grouped && !groups_.empty() && groups_.back()[0].kind == check.kind)
    groups_.back().push_back(std::move(check));
  else groups_.push_back({std::move(check)});
  return *this;
}

FileCheck& FileCheck::check(std::string_view pattern) { return add({Kind::kCheck, std::string(pattern)}); }
FileCheck& FileCheck::check_next(std::string_view pattern) {
  return add({Kind::kNext, std::string(pattern)});
}
FileCheck& FileCheck::check_same(std::string_view pattern) {
  return add({Kind::kSame, std::string(pattern)});
}
FileCheck& FileCheck::check_not(std::string_view pattern) { return add({Kind::kNot, std::string(pattern)}); }
FileCheck& FileCheck::check_dag(std::string_view pattern) { return add({Kind::kDag, std::string(pattern)}); }

FileCheck& FileCheck::check_count(std::string_view pattern, int count, bool exactly) {
  require(count > 0 || (count == 0 && exactly),
          "check_count(\"{}\", {}): says nothing; a count is at least 1, or exactly 0", pattern, count);
  if (count > 0) add({Kind::kCount, std::string(pattern), count});
  return exactly ? check_not(pattern) : *this;
}

std::string FileCheck::name_of(const Check& check) {
  switch (check.kind) {
    case Kind::kCheck:
      return "check";
    case Kind::kNext:
      return "check_next";
    case Kind::kSame:
      return "check_same";
    case Kind::kNot:
      return "check_not";
    case Kind::kCount:
      return "check_count " + std::to_string(check.count);
    case Kind::kDag:
      break;
  }
  return "check_dag";
}

::testing::AssertionResult FileCheck::match(std::string_view text) const {
  has_run_ = true;
  if (groups_.empty()) return ::testing::AssertionFailure() << "this FileCheck has no checks";
  try {
    Run(text).match(groups_);
  } catch (const Mismatch& mismatch) {
    return ::testing::AssertionFailure() << mismatch.message;
  }
  return ::testing::AssertionSuccess();
}

bool FileCheck::run(std::string_view text, std::source_location where) {
  const ::testing::AssertionResult result = match(text);
  if (!result) ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line())) << result.message();
  return bool(result);
}

}  // namespace weft::testing
