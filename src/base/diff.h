#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// The lines of a text, each with its line break, as Python's splitlines(keepends=True) has them.
std::vector<std::string> split_lines(std::string_view text);

// How lines `a` become lines `b`, one after the other: "- " before a line of `a` only, "+ " before one of `b`
// only, "  " before one of both, and "? " before a line of marks under two lines that are similar. The text
// is that of Python's difflib.ndiff (up to 3.12). One exception keeps it quick: a change of more than 2^18
// pairs of lines (512 by 512) is shown without a search for similar lines in it.
std::string ndiff(std::span<const std::string> a, std::span<const std::string> b);
// ... of texts.
std::string ndiff(std::string_view a, std::string_view b);

// The text with a tab before every line, and without the last line break.
std::string indent(std::string_view text);

}  // namespace weft
