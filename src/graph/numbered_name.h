#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

inline bool is_decimal_digit(char c) { return c >= '0' && c <= '9'; }

// "add_12" is "add" and 12; "add" and "add_x" have no number.
struct NumberedName {
  std::string_view base;
  std::optional<int64_t> number;
  bool is_plain = true;  // false for a number with zeros before it, as in "add_012"

  explicit NumberedName(std::string_view name) : base(name) {
    constexpr size_t kMostDigits = 17;  // so that it is an int64_t
    size_t end = name.size();
    while (end > 0 && is_decimal_digit(name[end - 1])) --end;
    const std::string_view digits = name.substr(end);
    if (digits.empty() || digits.size() > kMostDigits || end < 2 || name[end - 1] != '_') return;
    base = name.substr(0, end - 1);
    is_plain = digits.size() == 1 || digits[0] != '0';
    number = 0;
    for (char c : digits) *number = 10 * *number + (c - '0');
  }
};

}  // namespace weft
