#include "weft/core/argument_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "weft/base/error.h"

namespace weft {
namespace {

std::string_view trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

bool is_rest(std::string_view name) { return name.starts_with('*') && !name.starts_with("**"); }

Value literal(std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  if (text == "nullopt" || text == "std::nullopt" || text == "{}" || text == "nullptr") return {};
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') return text.substr(1, text.size() - 2);
  std::string copy(text);
  char* end = nullptr;
  int64_t integer = std::strtoll(copy.c_str(), &end, 0);
  if (!copy.empty() && *end == '\0') return integer;
  double real = std::strtod(copy.c_str(), &end);
  if (*end == 'f') ++end;
  require(!copy.empty() && *end == '\0',
          "argument names: the default '{}' is not a number, a bool, a string or nullopt", text);
  return real;
}

}  // namespace

ArgumentNames::ArgumentNames(std::string_view text) {
  while (!trimmed(text).empty()) {
    size_t comma = text.find(',');
    std::string_view entry = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    size_t equals = entry.find('=');
    std::string name(trimmed(entry.substr(0, equals)));
    require(!name.empty() && !find(name), "argument names: '{}' is empty or there twice", name);
    require(entries_.empty() || !entries_.back().name.starts_with("**"),
            "argument names: '{}' comes after '{}', which must be the last", name,
            entries_.empty() ? "" : entries_.back().name);
    require(!is_rest(name) || !rest_position(),
            "argument names: '{}' comes after '{}', and one name only may take "
            "what is left over",
            name, rest_position() ? entries_[*rest_position()].name : "");
    std::optional<Value> value;
    if (equals != std::string_view::npos) value = literal(trimmed(entry.substr(equals + 1)));
    entries_.push_back({std::move(name), std::move(value)});
  }
}

const ArgumentNames& ArgumentNames::of(const char* text) {
  // The address of a literal tells it apart; two literals with the same words do no harm.
  static std::mutex mutex;
  static std::unordered_map<const char*, std::unique_ptr<const ArgumentNames>> known;
  std::lock_guard lock(mutex);
  std::unique_ptr<const ArgumentNames>& entry = known[text];
  if (!entry) entry = std::make_unique<const ArgumentNames>(text);
  return *entry;
}

std::optional<size_t> ArgumentNames::find(std::string_view name) const {
  for (size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].name == name) return i;
  return std::nullopt;
}

bool ArgumentNames::takes_any_name() const {
  return !entries_.empty() && entries_.back().name.starts_with("**");
}

std::optional<size_t> ArgumentNames::rest_position() const {
  for (size_t i = 0; i < entries_.size(); ++i)
    if (is_rest(entries_[i].name)) return i;
  return std::nullopt;
}

ValueList ArgumentNames::bind(Args args, const Kwargs& kwargs, std::string_view what) const {
  const size_t named = entries_.size() - (takes_any_name() ? 1 : 0);
  const std::optional<size_t> rest = rest_position();
  const size_t positions = std::min(args.size(), rest.value_or(args.size()));
  require(positions <= entries_.size(), "{}: takes {} argument{} but {} were given", what, entries_.size(),
          entries_.size() == 1 ? "" : "s", args.size());
  std::vector<std::optional<Value>> bound(entries_.size());
  for (size_t i = 0; i < positions; ++i) bound[i] = args[i];
  if (rest) bound[*rest] = Value::list({args.begin() + static_cast<ptrdiff_t>(positions), args.end()});
  Dict others;
  for (const auto& [name, value] : kwargs) {
    std::optional<size_t> at = find(name);
    if (!at && takes_any_name()) {
      others.set(name, value);
      continue;
    }
    if (!at) {
      std::string known;
      for (const Entry& entry : entries_) known += (known.empty() ? "" : ",") + entry.name;
      fail("'{}' is not in {}() method's arguments,\nvalid arguments name are [{}]", name, what, known);
    }
    require(!bound[*at], "{}: argument '{}' is given twice", what, name);
    bound[*at] = value;
  }
  ValueList all;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!bound[i] && i == named) bound[i] = others;
    if (!bound[i]) bound[i] = entries_[i].default_value;
    require(bound[i].has_value(), "{}: argument '{}' is missing", what, entries_[i].name);
    all.push_back(std::move(*bound[i]));
  }
  return all;
}

}  // namespace weft
