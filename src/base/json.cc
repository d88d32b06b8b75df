#include "base/json.h"

#include <limits>

#include "weft/base/error.h"

namespace weft {
namespace {

// Up to this many members a scan is faster than hashing.
constexpr size_t kScanned = 16;

size_t hash_of(std::string_view key) { return std::hash<std::string_view>()(key); }

}  // namespace

JsonObject::JsonObject() = default;
JsonObject::JsonObject(const JsonObject&) = default;
JsonObject::JsonObject(JsonObject&&) noexcept = default;
JsonObject& JsonObject::operator=(const JsonObject&) = default;
JsonObject& JsonObject::operator=(JsonObject&&) noexcept = default;
JsonObject::~JsonObject() = default;

JsonObject::JsonObject(std::initializer_list<Member> members) {
  for (const Member& member : members)
    require(insert(member.first, member.second), "a JSON object cannot have the key \"{}\" twice",
            member.first);
}

size_t JsonObject::position(std::string_view key) const {
  if (members_.size() <= kScanned) {
    for (size_t i = 0; i < members_.size(); ++i)
      if (members_[i].first == key) return i;
    return members_.size();
  }
  auto [first, last] = index_.equal_range(hash_of(key));
  for (; first != last; ++first)
    if (members_[first->second].first == key) return first->second;
  return members_.size();
}

const Json* JsonObject::find(std::string_view key) const {
  size_t i = position(key);
  return i < members_.size() ? &members_[i].second : nullptr;
}
Json* JsonObject::find(std::string_view key) {
  size_t i = position(key);
  return i < members_.size() ? &members_[i].second : nullptr;
}

Json& JsonObject::operator[](std::string_view key) {
  if (Json* value = find(key)) return *value;
  insert(std::string(key), Json());
  return members_.back().second;
}

bool JsonObject::insert(std::string key, Json value) {
  if (position(key) < members_.size()) return false;
  members_.emplace_back(std::move(key), std::move(value));
  if (members_.size() > kScanned) {
    for (size_t i = index_.size(); i < members_.size(); ++i) index_.emplace(hash_of(members_[i].first), i);
  }
  return true;
}

size_t JsonObject::size() const { return members_.size(); }
const JsonObject::Member* JsonObject::begin() const { return members_.data(); }
const JsonObject::Member* JsonObject::end() const { return members_.data() + members_.size(); }
bool JsonObject::operator==(const JsonObject& other) const { return members_ == other.members_; }

Json::Json(uint64_t value) : value_(static_cast<int64_t>(value)) {
  require(value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()),
          "{} does not fit the 64-bit signed integers of weft's JSON", value);
}

namespace {

constexpr size_t kShown = 60;  // of a value in a message

std::string described(const Json& value) {
  if (value.is_array()) return fmt::format("an array of {} elements", value.size());
  if (value.is_object()) return fmt::format("an object of {} members", value.size());
  if (!value.is_string()) return value.to_text();
  std::string_view text = value.as_string();
  if (text.size() <= kShown) return fmt::format("the string \"{}\"", text);
  return fmt::format("the string \"{}...\"", text.substr(0, kShown));
}

}  // namespace

template <typename T>
const T& Json::expect(std::string_view wanted) const {
  if (const T* value = std::get_if<T>(&value_)) return *value;
  throw FormatError(fmt::format("expected {} in the JSON, found {}", wanted, described(*this)));
}

bool Json::as_bool() const { return expect<bool>("true or false"); }
int64_t Json::as_int() const { return expect<int64_t>("an integer"); }
double Json::as_double() const {
  if (const int64_t* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  return expect<double>("a number");
}
const std::string& Json::as_string() const { return expect<std::string>("a string"); }
const Json::Array& Json::as_array() const { return expect<Array>("an array"); }
const Json::Object& Json::as_object() const { return expect<Object>("an object"); }
Json::Array& Json::as_array() { return const_cast<Array&>(expect<Array>("an array")); }
Json::Object& Json::as_object() { return const_cast<Object&>(expect<Object>("an object")); }

const Json& Json::at(std::string_view key) const {
  const Object& object = expect<Object>(fmt::format("an object with the key \"{}\"", key));
  if (const Json* value = object.find(key)) return *value;
  std::string keys;
  for (const auto& [name, value] : object) {
    if (keys.size() > kShown) {
      keys += ", ...";
      break;
    }
    keys += (keys.empty() ? "" : ", ") + name;
  }
  throw FormatError(fmt::format("the key \"{}\" is missing from a JSON object; it has {}", key,
                                keys.empty() ? "no members" : keys));
}

const Json& Json::at(size_t index) const {
  const Array& array = as_array();
  if (index < array.size()) return array[index];
  throw FormatError(
      fmt::format("element {} is missing from a JSON array; it has {} elements", index, array.size()));
}

const Json* Json::find(std::string_view key) const {
  const Object* object = std::get_if<Object>(&value_);
  return object ? object->find(key) : nullptr;
}

size_t Json::size() const {
  if (const Array* array = std::get_if<Array>(&value_)) return array->size();
  return expect<Object>("an array or an object").size();
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object();
  return as_object()[key];
}

void Json::push_back(Json value) {
  if (is_null()) value_ = Array();
  as_array().push_back(std::move(value));
}

Json Json::parse(std::string_view text, std::string_view source) {
  return parse(text, source, ParseOptions());
}

}  // namespace weft
