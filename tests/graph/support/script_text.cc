#include "graph/support/script_text.h"

#include <gtest/gtest.h>

#include <cctype>
#include <sstream>
#include <unordered_map>

namespace weft::testing {
namespace {

std::string_view without_first_break(std::string_view text) {
  return text.starts_with('\n') ? text.substr(1) : text;
}

}  // namespace

std::string renumbered(std::string_view text) {
  auto belongs_to_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  };
  std::unordered_map<std::string, size_t> numbers;
  std::string result;
  for (size_t i = 0; i < text.size();) {
    result += text[i];
    if (text[i++] != '%') continue;
    size_t end = i;
    while (end < text.size() && belongs_to_name(text[end])) ++end;
    result += std::to_string(
        numbers.try_emplace(std::string(text.substr(i, end - i)), numbers.size()).first->second);
    i = end;
  }
  return result;
}

std::vector<std::string> script_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> script_lines(const GraphModule& module) { return script_lines(script_text(module)); }

void expect_script(const GraphModule& module, std::string_view text, std::string_view code) {
  EXPECT_EQ(script_text(module), without_first_break(text));
  EXPECT_EQ(script_code(module), without_first_break(code));
}

void expect_like(const ScriptGraph& graph, std::string_view text, std::string_view code) {
  EXPECT_EQ(renumbered(graph.to_string()), renumbered(without_first_break(text)));
  EXPECT_EQ(graph.code(), without_first_break(code));
}

}  // namespace weft::testing
