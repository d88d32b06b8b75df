#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace weft {

// A cursor over text, which knows the offset of whatever is wrong.
class TextReader {
 public:
  // `reader` is what messages begin with: "parse_code".
  TextReader(std::string_view text, std::string_view reader) : text_(text), reader_(reader) {}

  std::string_view text() const { return text_; }
  size_t offset() const { return offset_; }
  void go_to(size_t offset) { offset_ = offset; }
  bool at_end() const { return offset_ >= text_.size(); }
  // Past the end there are zeros.
  char peek(size_t ahead = 0) const { return offset_ + ahead < text_.size() ? text_[offset_ + ahead] : '\0'; }
  bool starts_with(std::string_view token) const { return text_.substr(offset_).starts_with(token); }
  // Whether a line begins here.
  bool at_line_start() const { return offset_ == 0 || text_[offset_ - 1] == '\n'; }
  // Whether nothing but a comment is left of the line.
  bool at_line_end() const { return at_end() || peek() == '\n' || peek() == '#'; }

  // Takes the token if it is next.
  bool accept(std::string_view token) {
    if (!starts_with(token)) return false;
    offset_ += token.size();
    return true;
  }
  // The same, and an error otherwise.
  void expect(std::string_view token);
  // Takes the name if it is next and ends there.
  bool accept_word(std::string_view word);
  // The letters, digits and _ from here on; empty when a digit or anything else comes first.
  std::string_view identifier();
  void skip_spaces() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r') ++offset_;
  }
  // Spaces, ends of lines and comments.
  void skip_layout();
  void skip_line();
  // A string in single or double quotes with Python's escapes. \udc80 to \udcff stand for single bytes.
  std::string string_literal();
  bool at_string() const { return peek() == '\'' || peek() == '"'; }

  // Throws a FormatError that names line and column.
  template <typename... Args>
  [[noreturn]] void fail_at(size_t offset, fmt::format_string<Args...> format, Args&&... args) const {
    throw_at(offset, fmt::format(format, std::forward<Args>(args)...));
  }
  // "expected ... but found ..." at the cursor.
  [[noreturn]] void fail_expected(std::string_view what) const;

 private:
  [[noreturn]] void throw_at(size_t offset, const std::string& message) const;
  std::string found() const;
  unsigned hex_digits(size_t count);
  void append_escape(std::string& out);

  std::string_view text_;
  std::string_view reader_;
  size_t offset_ = 0;
};

}  // namespace weft
