#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "weft/base/device.h"
#include "weft/base/dtype.h"
#include "weft/base/error.h"

// What the JSON of a .pt2 archive has in all its parts: unions, enumerations, numbers.

namespace weft::pt2 {

// The version of the schema that is read, and written.
inline constexpr int64_t kMajor = 8, kMinor = 20;

// {"name": name}, which is how a value of the graph is referred to.
inline Json named(const std::string& name) { return Json::Object{{"name", name}}; }

// A union: an object whose one key says which variant it is.
struct Variant {
  std::string_view name;
  const Json& value;
  bool is(std::string_view other) const { return name == other; }
};
Variant variant_of(const Json& json, std::string_view what);
inline Json variant(std::string name, Json value) {
  Json::Object object;
  object.insert(std::move(name), std::move(value));
  return object;
}

// Numbers of the schema's own enumerations; nothing where weft has no such type. Errors name `what`.
std::optional<DType> dtype_of(int64_t number);
std::string_view dtype_text(int64_t number);  // "float8_e4m3fn", or "type 99"
int64_t number_of(DType dtype);
MemoryFormat memory_format_of(int64_t number, std::string_view what);
int64_t number_of(MemoryFormat format);
inline constexpr int64_t kStridedLayout = 7;

// Infinities and NaN are strings.
double float_of(const Json& json, std::string_view what);
Json json_of(double value);

template <typename... A>
[[noreturn]] void refuse(fmt::format_string<const A&...> text, const A&... args) {
  throw FormatError(fmt::format(text, args...));
}

}  // namespace weft::pt2
