#include "graph/text/text_reader.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, unsigned code) {
  auto add = [&](unsigned byte) { out += static_cast<char>(byte); };
  auto continuation = [&](int shift) { add(0x80u | (code >> shift & 0x3fu)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0u | code >> 6);
  } else if (code < 0x10000) {
    add(0xe0u | code >> 12);
    continuation(6);
  } else {
    add(0xf0u | code >> 18);
    continuation(12);
    continuation(6);
  }
  continuation(0);
}

}  // namespace

// --- errors ----------------------------------------------------------------------------------------------

void TextReader::throw_at(size_t offset, const std::string& message) const {
  const std::string_view before = text_.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;  // 0 in the first line
  throw FormatError(
      fmt::format("{}: line {}, column {}: {}", reader_, line, before.size() - line_start + 1, message));
}

void TextReader::fail_expected(std::string_view what) const {
  throw_at(offset_, fmt::format("expected {} but found {}", what, found()));
}

std::string TextReader::found() const {
  constexpr size_t kLongest = 30;
  if (at_end()) return "the end of the text";
  if (peek() == '\n') return "the end of the line";
  size_t length = 0;
  while (length < kLongest && is_word(peek(length))) ++length;
  if (length > 0) return fmt::format("'{}'", text_.substr(offset_, length));
  if (peek() >= 0x20 && peek() < 0x7f) return fmt::format("'{}'", peek());
  return fmt::format("the byte 0x{:02x}", static_cast<unsigned char>(peek()));
}

// --- words and layout ------------------------------------------------------------------------------------

void TextReader::expect(std::string_view token) {
  if (!accept(token)) fail_expected(fmt::format("'{}'", token));
}

bool TextReader::accept_word(std::string_view word) {
  if (!starts_with(word) || is_word(peek(word.size()))) return false;
  offset_ += word.size();
  return true;
}

std::string_view TextReader::identifier() {
  if (is_digit(peek())) return {};
  const size_t begin = offset_;
  while (is_word(peek())) ++offset_;
  return text_.substr(begin, offset_ - begin);
}

void TextReader::skip_line() {
  const size_t end = text_.find('\n', offset_);
  offset_ = end == std::string_view::npos ? text_.size() : end;
}

void TextReader::skip_layout() {
  while (!at_end()) {
    skip_spaces();
    if (peek() == '#') skip_line();
    else if (peek() == '\n') ++offset_;
    else return;
  }
}

// --- strings ---------------------------------------------------------------------------------------------

unsigned TextReader::hex_digits(size_t count) {
  unsigned value = 0;
  for (size_t i = 0; i < count; ++i, ++offset_) {
    const char c = peek();
    const char lower = static_cast<char>(c | 0x20);
    if (is_digit(c)) value = value * 16 + static_cast<unsigned>(c - '0');
    else if (lower >= 'a' && lower <= 'f') value = value * 16 + static_cast<unsigned>(lower - 'a' + 10);
    else fail_expected(fmt::format("{} hexadecimal digits", count));
  }
  return value;
}

// What comes after a backslash.
void TextReader::append_escape(std::string& out) {
  static constexpr std::string_view letters = "abfnrtv", meanings = "\a\b\f\n\r\t\v";
  const size_t begin = offset_ - 1;
  const char c = peek();
  if (const size_t at = letters.find(c); at != std::string_view::npos) {
    ++offset_;
    out += meanings[at];
    return;
  }
  if (c == '\\' || c == '\'' || c == '"') {
    ++offset_;
    out += c;
    return;
  }
  unsigned code = 0;
  if (c >= '0' && c <= '7') {
    for (int i = 0; i < 3 && peek() >= '0' && peek() <= '7'; ++i, ++offset_)
      code = code * 8 + static_cast<unsigned>(peek() - '0');
  } else if (c == 'x' || c == 'u' || c == 'U') {
    ++offset_;
    code = hex_digits(c == 'x' ? 2 : c == 'u' ? 4 : 8);
  } else {
    fail_expected("an escape like \\n, \\x41 or \\u0041 after the backslash");
  }
  if (code >= 0xdc80 && code <= 0xdcff) {
    out += static_cast<char>(code - 0xdc00);
    return;
  }
  if ((code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff)
    fail_at(begin, "expected the number of a character, but 0x{:x} is none", code);
  append_utf8(out, code);
}

std::string TextReader::string_literal() {
  const size_t begin = offset_;
  const char quote = peek();
  if (!at_string()) fail_expected("a string in quotes");
  ++offset_;
  std::string value;
  while (peek() != quote) {
    if (at_end() || peek() == '\n')
      fail_at(begin, "expected the string that begins here to end with {} on its line", quote);
    if (peek() == '\\') {
      ++offset_;
      append_escape(value);
    } else {
      value += peek();
      ++offset_;
    }
  }
  ++offset_;
  return value;
}

}  // namespace weft
