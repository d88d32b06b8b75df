#include "base/function_name.h"

namespace weft {
namespace {

// Without the pair of brackets that it ends with.
std::string_view without_brackets(std::string_view text, char open, char close) {
  int depth = 0;
  for (size_t i = text.size(); i-- > 0 && text.ends_with(close);) {
    depth += (text[i] == close) - (text[i] == open);
    if (depth == 0) return text.substr(0, i);
  }
  return text;
}

}  // namespace

std::string short_function(std::string_view text) {
  if (text.ends_with(" const")) text.remove_suffix(6);
  text = without_brackets(without_brackets(text, '(', ')'), '<', '>');
  size_t begin = text.size();
  for (int depth = 0; begin > 0; --begin) {
    const char c = text[begin - 1];
    if (depth <= 0 && (c == ':' || c == ' ')) break;
    depth += (c == ')' || c == '>' || c == '}') - (c == '(' || c == '<' || c == '{');
  }
  return std::string(text.substr(begin));
}

}  // namespace weft
