#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace weft {

class Json;

// The members of a JSON object, in the order they were added. Finding is by hash once there are many.
class JsonObject {
 public:
  using Member = std::pair<std::string, Json>;

  JsonObject();
  JsonObject(std::initializer_list<Member> members);
  JsonObject(const JsonObject&);
  JsonObject(JsonObject&&) noexcept;
  JsonObject& operator=(const JsonObject&);
  JsonObject& operator=(JsonObject&&) noexcept;
  ~JsonObject();

  // Null if there is no such member.
  const Json* find(std::string_view key) const;
  Json* find(std::string_view key);
  // The member's value, added as null if it is new.
  Json& operator[](std::string_view key);
  // False, with nothing changed, if the key is there already.
  bool insert(std::string key, Json value);

  size_t size() const;
  bool empty() const { return size() == 0; }
  const Member* begin() const;
  const Member* end() const;
  // Also compares the order.
  bool operator==(const JsonObject&) const;

 private:
  size_t position(std::string_view key) const;

  std::vector<Member> members_;
  // Hash of a key to its position; filled when a scan would take longer.
  std::unordered_multimap<size_t, size_t> index_;
};

// A JSON value. Integers are int64 and stay apart from doubles, also in text: 1 and 1.0 differ.
//   Json config = Json::parse(text, path);
//   int64_t rank = config.at("model").at("rank").as_int();
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = JsonObject;

  Json() = default;
  Json(std::nullptr_t) {}                                       // NOLINT(google-explicit-constructor)
  Json(bool value) : value_(value) {}                           // NOLINT(google-explicit-constructor)
  Json(double value) : value_(value) {}                         // NOLINT(google-explicit-constructor)
  Json(std::string value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Json(std::string_view value) : value_(std::string(value)) {}  // NOLINT(google-explicit-constructor)
  Json(const char* value) : value_(std::string(value)) {}       // NOLINT(google-explicit-constructor)
  Json(Array value) : value_(std::move(value)) {}               // NOLINT(google-explicit-constructor)
  Json(Object value) : value_(std::move(value)) {}              // NOLINT(google-explicit-constructor)
  template <std::integral T>
    requires(!std::same_as<T, bool> && (sizeof(T) < 8 || std::is_signed_v<T>))
  Json(T value) : value_(static_cast<int64_t>(value)) {}  // NOLINT(google-explicit-constructor)
  Json(uint64_t value);  // NOLINT(google-explicit-constructor): checks the range

  struct ParseOptions {
    int max_depth = 512;
    size_t max_string = 16 << 20;
  };
  // Reads one value that makes up the whole text. Strict: no comments, no trailing commas, no NaN, no invalid
  // UTF-8, no duplicate keys, no integers beyond int64. Anything else is a FormatError that names `source`
  // (a file or an entry), line and column.
  static Json parse(std::string_view text, std::string_view source = "JSON");
  static Json parse(std::string_view text, std::string_view source, ParseOptions options);
  // Text that `parse` reads back to an equal value, doubles bit for bit. On one line, or indented by two
  // spaces a level. An error for infinities, NaN and strings that are not UTF-8.
  std::string to_text() const;
  std::string to_pretty_text() const;

  bool is_null() const { return holds<std::monostate>(); }
  bool is_bool() const { return holds<bool>(); }
  bool is_int() const { return holds<int64_t>(); }
  bool is_double() const { return holds<double>(); }
  bool is_number() const { return is_int() || is_double(); }
  bool is_string() const { return holds<std::string>(); }
  bool is_array() const { return holds<Array>(); }
  bool is_object() const { return holds<Object>(); }

  // The value, or a FormatError that says what is there instead. `as_double` takes integers too.
  bool as_bool() const;
  int64_t as_int() const;
  double as_double() const;
  const std::string& as_string() const;
  const Array& as_array() const;
  const Object& as_object() const;
  Array& as_array();
  Object& as_object();

  // A member or an element; a FormatError if it is not there.
  const Json& at(std::string_view key) const;
  const Json& at(const char* key) const { return at(std::string_view(key)); }
  const Json& at(size_t index) const;
  const Json& at(int index) const { return at(static_cast<size_t>(index)); }
  // Null if it is not there, or if this is no object.
  const Json* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  // The number of elements or members.
  size_t size() const;

  // These turn null into an object or an array first.
  Json& operator[](std::string_view key);
  void push_back(Json value);

  bool operator==(const Json&) const = default;

 private:
  template <typename T>
  bool holds() const {
    return std::holds_alternative<T>(value_);
  }
  template <typename T>
  const T& expect(std::string_view wanted) const;

  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

}  // namespace weft
