#include "export/input_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace weft {
namespace {

std::string identifier(std::string_view text) {
  std::string name(text);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (!name.empty() && std::isdigit(static_cast<unsigned char>(name[0]))) name.insert(0, "_");
  return name;
}

std::string key_text(const Value& key) {
  std::string text = key.is_string() ? std::string(key.to_string_view()) : key.to_string();
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

InputNames::InputNames(const std::vector<std::string>& arguments, const ValueList& values) {
  for (size_t i = 0; i < values.size(); ++i)
    for (const PathLeaf& leaf : tree_flatten_with_path(values[i])) {
      std::string name = arguments[i];
      for (const PathKey& step : leaf.path) name += "_" + key_text(step.key);
      leaves_.push_back(unused(identifier(name)));
    }
}

std::string InputNames::of_state(std::string_view prefix, std::string_view name) {
  return unused(fmt::format("{}{}", prefix, identifier(fmt::format("{}", name))));
}

std::string InputNames::unused(std::string name) {
  if (used_.insert(name).second) return name;
  for (int64_t i = 1;; ++i)
    if (std::string other = fmt::format("{}_{}", name, i); used_.insert(other).second) return other;
}

}  // namespace weft
