// Reading and writing of JSON. The one file that sees nlohmann's header, which takes seconds to compile: its
// lexer and iterative parser do the reading, its serializer writes numbers and strings.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "base/json.h"
#include "weft/base/error.h"

namespace weft {
namespace {

// Characters of the text for nlohmann's lexer. It tells how far reading has come, which the parser's events
// do not.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** progress) : at_(at), progress_(progress) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *progress_ = ++at_;
    return *this;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }
  bool operator!=(const Cursor& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** progress_;
};

// Receives the parser's events and builds the value.
class Builder {
 public:
  Builder(std::string_view text, std::string_view source, int max_depth)
      : text_(text), source_(source), max_depth_(max_depth), progress_(text.data()) {}

  Cursor begin() { return Cursor(text_.data(), &progress_); }
  Cursor end() { return Cursor(text_.data() + text_.size(), &progress_); }
  Json result() { return std::move(root_); }

  // nlohmann's lexer takes a zero byte for the end of the text.
  void refuse_zero_bytes() {
    size_t zero = text_.find('\0');
    if (zero == text_.npos) return;
    progress_ = text_.data() + zero + 1;
    refuse("a zero byte");
  }

  // nlohmann's lexer keeps several copies of the string that it reads.
  void refuse_long_strings(size_t most) {
    if (text_.size() <= most) return;
    for (size_t at = text_.find('"'); at != text_.npos; at = text_.find('"', at)) {
      const size_t begin = ++at;
      while (at < text_.size() && text_[at] != '"') at += text_[at] == '\\' ? 2 : 1;
      at = std::min(at + 1, text_.size());
      if (at - begin <= most) continue;
      progress_ = text_.data() + begin;
      refuse(fmt::format("a string of more than {} bytes", most));
    }
  }

  // The names and signatures that nlohmann's sax_parse asks for.
  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(int64_t value) { return add(value); }
  bool number_unsigned(uint64_t value) {
    if (value > INT64_MAX) refuse_integer(std::to_string(value));
    return add(static_cast<int64_t>(value));
  }
  bool number_float(double value, const std::string& text) {
    // An integer that fits no word arrives here: reading it as a double would change it.
    if (text.find_first_of(".eE") == std::string::npos) refuse_integer(text);
    return add(value);
  }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) { return false; }  // never in text
  bool start_object(size_t) { return open(Json::Object()); }
  bool start_array(size_t) { return open(Json::Array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& value) {
    if (open_.back()->contains(value)) refuse(fmt::format("the key \"{}\" comes twice in one object", value));
    key_ = std::move(value);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& error) {
    refuse(without_prefix(error.what()));
  }

 private:
  Json* place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.as_array().back();
    }
    return &(parent[key_] = std::move(value));
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (static_cast<int>(open_.size()) == max_depth_)
      refuse(fmt::format("values are nested more than {} deep", max_depth_));
    // Pointers stay valid: a parent grows only while its last child is closed.
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..." begins with what we
  // say ourselves.
  static std::string without_prefix(std::string_view what) {
    if (size_t end = what.find("] "); end != what.npos) what.remove_prefix(end + 2);
    if (what.starts_with("parse error")) what.remove_prefix(std::min(what.find(": ") + 2, what.size()));
    return std::string(what);
  }
  [[noreturn]] void refuse_integer(std::string_view digits) const {
    refuse(fmt::format("the integer {} does not fit 64 bits", digits));
  }
  [[noreturn]] void refuse(std::string_view what) const {
    std::string_view read(text_.data(), static_cast<size_t>(progress_ - text_.data()));
    size_t last = read.empty() ? 0 : read.size() - 1;  // the character that was read last
    std::string_view before = read.substr(0, last);
    auto line = 1 + std::count(before.begin(), before.end(), '\n');
    size_t line_start = before.rfind('\n');
    size_t column = last - (line_start == before.npos ? 0 : line_start + 1) + 1;
    throw FormatError(
        fmt::format("{} is not valid JSON at line {}, column {}: {}", source_, line, column, what));
  }

  std::string_view text_, source_;
  int max_depth_;
  const char* progress_;
  Json root_;
  std::vector<Json*> open_;
  std::string key_;
};

class Writer {
 public:
  explicit Writer(bool is_pretty) : is_pretty_(is_pretty) {}

  // Recursion is as deep as the value is nested, which the parser bounds.
  void write(const Json& value) {
    if (value.is_array()) write_all('[', value.as_array(), ']', [&](const Json& element) { write(element); });
    else if (value.is_object())
      write_all('{', value.as_object(), '}', [&](const Json::Object::Member& member) {
        write_string(member.first);
        out_ += is_pretty_ ? ": " : ":";
        write(member.second);
      });
    else write_scalar(value);
  }
  std::string take() { return std::move(out_); }

 private:
  template <typename Items, typename WriteItem>
  void write_all(char open, const Items& items, char close, WriteItem write_item) {
    out_ += open;
    ++depth_;
    bool is_first = true;
    for (const auto& item : items) {
      if (!is_first) out_ += ',';
      is_first = false;
      break_line();
      write_item(item);
    }
    --depth_;
    if (!is_first) break_line();
    out_ += close;
  }
  void break_line() {
    if (is_pretty_) out_.append("\n").append(2 * depth_, ' ');
  }

  void write_scalar(const Json& value) {
    if (value.is_null()) out_ += "null";
    else if (value.is_bool()) out_ += value.as_bool() ? "true" : "false";
    else if (value.is_int()) out_ += std::to_string(value.as_int());
    else if (value.is_double()) write_double(value.as_double());
    else write_string(value.as_string());
  }
  void write_double(double value) {
    require(std::isfinite(value), "JSON has no number for {}; write it as a string", value);
    out_ += nlohmann::json(value).dump();
  }
  void write_string(const std::string& value) {
    try {
      out_ += nlohmann::json(value).dump();
    } catch (const nlohmann::json::type_error&) {
      fail("a string of {} bytes is not valid UTF-8 and cannot be written as JSON; encode it first",
           value.size());
    }
  }

  bool is_pretty_;
  size_t depth_ = 0;
  std::string out_;
};

}  // namespace

Json Json::parse(std::string_view text, std::string_view source, ParseOptions options) {
  Builder builder(text, source, options.max_depth);
  builder.refuse_zero_bytes();
  builder.refuse_long_strings(options.max_string);
  nlohmann::json::sax_parse(builder.begin(), builder.end(), &builder);
  return builder.result();
}

std::string Json::to_text() const {
  Writer writer(false);
  writer.write(*this);
  return writer.take();
}

std::string Json::to_pretty_text() const {
  Writer writer(true);
  writer.write(*this);
  return writer.take();
}

}  // namespace weft
