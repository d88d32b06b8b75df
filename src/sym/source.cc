#include "weft/sym/source.h"

#include <fmt/format.h>

#include <charconv>
#include <ostream>

namespace weft::sym {
namespace {

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_decimal(char c) { return c >= '0' && c <= '9'; }

// Takes an identifier from the front of `text`; empty when it has none.
std::string_view take_name(std::string_view& text) {
  size_t length = 0;
  while (length < text.size() && (is_name_start(text[length]) || (length > 0 && is_decimal(text[length]))))
    ++length;
  std::string_view name = text.substr(0, length);
  text.remove_prefix(length);
  return name;
}

// Takes "[0]", "['key']" or ".field"; empty when the text begins with none of them.
std::string_view take_step(std::string_view& text) {
  size_t end = 0;
  if (text.starts_with('.')) {
    std::string_view rest = text.substr(1);
    std::string_view name = take_name(rest);
    end = name.empty() || rest.starts_with('(') ? 0 : name.size() + 1;
  } else if (text.starts_with("['")) {
    end = text.find("']");
    end = end == std::string_view::npos ? 0 : end + 2;
  } else if (text.starts_with('[')) {
    for (end = 1; end < text.size() && is_decimal(text[end]);) ++end;
    end = end > 1 && text.substr(end).starts_with(']') ? end + 1 : 0;
  }
  std::string_view step = text.substr(0, end);
  text.remove_prefix(end);
  return step;
}

// Reads "<prefix><dim>)" as a whole.
bool read_property(std::string_view text, std::string_view prefix, int64_t& dim) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
  return error == std::errc() && std::string_view(end, text.data() + text.size()) == ")";
}

std::string joined(const std::vector<std::string>& steps) {
  std::string text;
  for (const std::string& step : steps) text += step;
  return text;
}

}  // namespace

Source Source::argument(std::string root, std::vector<std::string> steps) {
  Source result;
  result.kind = Kind::kValue;
  result.root = std::move(root);
  result.steps = std::move(steps);
  return result;
}

Source Source::computed(std::string description) {
  Source result;
  result.root = std::move(description);
  return result;
}

Source Source::step(std::string text) const {
  Source result = *this;
  result.steps.push_back(std::move(text));
  return result;
}

Source Source::property(Kind which, int64_t dimension) const {
  Source result = *this;
  result.kind = which;
  result.dim = dimension;
  return result;
}

Source Source::parse(std::string_view text) {
  std::string_view rest = text;
  Source result = argument(std::string(take_name(rest)));
  if (result.root.empty()) return computed(std::string(text));
  for (std::string_view step = take_step(rest); !step.empty(); step = take_step(rest))
    result.steps.emplace_back(step);
  int64_t dim = 0;
  if (rest.empty()) return result;
  if (read_property(rest, ".size(", dim)) return result.size(dim);
  if (read_property(rest, ".stride(", dim)) return result.stride(dim);
  if (rest == ".storage_offset()") return result.offset();
  return computed(std::string(text));
}

std::string Source::to_string() const {
  std::string text = root + joined(steps);
  switch (kind) {
    case Kind::kComputed:
    case Kind::kValue:
      return text;
    case Kind::kSize:
      return fmt::format("{}.size({})", text, dim);
    case Kind::kStride:
      return fmt::format("{}.stride({})", text, dim);
    case Kind::kOffset:
      return text + ".storage_offset()";
  }
  __builtin_unreachable();
}

std::string Source::guard_text() const {
  if (kind == Kind::kComputed) return root;
  std::string text = fmt::format("L['{}']{}", root, joined(steps));
  switch (kind) {
    case Kind::kComputed:
    case Kind::kValue:
      return text;
    case Kind::kSize:
      return fmt::format("{}.size()[{}]", text, dim);
    case Kind::kStride:
      return fmt::format("{}.stride()[{}]", text, dim);
    case Kind::kOffset:
      return text + ".storage_offset()";
  }
  __builtin_unreachable();
}

std::ostream& operator<<(std::ostream& out, const Source& source) { return out << source.to_string(); }

}  // namespace weft::sym
