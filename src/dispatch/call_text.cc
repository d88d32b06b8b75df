#include "dispatch/call_text.h"

#include <fmt/format.h>

namespace weft {
namespace {

constexpr size_t kMostElements = 8, kMostLetters = 60;

std::string text_of(const Value& value) {
  if (value.is_tensor()) return describe(value.tensor_ref()).str();
  if (value.is_sequence()) {
    std::string text = value.is_list() ? "[" : "(";
    const ValueList& elements = value.elements();
    for (size_t i = 0; i < std::min(elements.size(), kMostElements); ++i)
      text += (i ? ", " : "") + text_of(elements[i]);
    if (elements.size() > kMostElements) text += ", ...";
    return text + (value.is_list() ? "]" : ")");
  }
  if (value.is_dict() || value.is_object()) return std::string(value.kind_name());
  std::string text = value.to_string();
  if (text.size() > kMostLetters) text.replace(kMostLetters, text.npos, "...");
  return text;
}

}  // namespace

std::string call_text(const Operator& op, Args args) {
  const std::vector<Argument>& arguments = op.schema().arguments;
  std::string text;
  for (size_t i = 0; i < std::min(args.size(), arguments.size()); ++i) {
    const bool may_miss = arguments[i].default_value.has_value() || arguments[i].type.is_optional();
    if (may_miss && args[i] == op.info().defaults[i]) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", arguments[i].name, text_of(args[i]));
  }
  return fmt::format("{}({})", op.name(), text);
}

}  // namespace weft
