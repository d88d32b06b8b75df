#include "io/pt2_schema.h"

#include <cmath>
#include <limits>

namespace weft::pt2 {
namespace {

struct TypeNumber {
  int64_t number;
  const char* name;
  std::optional<DType> dtype;
};
constexpr TypeNumber kTypes[] = {{1, "uint8", kUInt8},
                                 {2, "int8", kInt8},
                                 {3, "int16", kInt16},
                                 {4, "int32", kInt32},
                                 {5, "int64", kInt64},
                                 {6, "float16", kFloat16},
                                 {7, "float32", kFloat32},
                                 {8, "float64", kFloat64},
                                 {9, "complex32", std::nullopt},
                                 {10, "complex64", kComplex64},
                                 {11, "complex128", kComplex128},
                                 {12, "bool", kBool},
                                 {13, "bfloat16", kBFloat16},
                                 {28, "uint16", std::nullopt},
                                 {29, "float8_e4m3fn", std::nullopt},
                                 {30, "float8_e5m2", std::nullopt},
                                 {31, "float8_e4m3fnuz", std::nullopt},
                                 {32, "float8_e5m2fnuz", std::nullopt},
                                 {33, "float8_e8m0fnu", std::nullopt},
                                 {34, "uint32", std::nullopt},
                                 {35, "uint64", std::nullopt}};

// By the schema's number, from 1 on.
constexpr MemoryFormat kFormats[] = {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast,
                                     MemoryFormat::kChannelsLast3d, MemoryFormat::kPreserve};

}  // namespace

Variant variant_of(const Json& json, std::string_view what) {
  if (!json.is_object() || json.size() != 1)
    refuse("{}: expected an object with one key, found {}", what, json.to_text().substr(0, 80));
  const Json::Object::Member& member = *json.as_object().begin();
  return {member.first, member.second};
}

std::optional<DType> dtype_of(int64_t number) {
  for (const TypeNumber& type : kTypes)
    if (type.number == number) return type.dtype;
  return std::nullopt;
}

std::string_view dtype_text(int64_t number) {
  for (const TypeNumber& type : kTypes)
    if (type.number == number) return type.name;
  return "a type that is not known";
}

int64_t number_of(DType dtype) {
  for (const TypeNumber& type : kTypes)
    if (type.dtype == dtype) return type.number;
  invariant(false, "the schema has no {}", dtype_name(dtype));
  return 0;
}

MemoryFormat memory_format_of(int64_t number, std::string_view what) {
  if (number < 1 || number > 4) refuse("{}: memory format {} is not known", what, number);
  return kFormats[number - 1];
}

int64_t number_of(MemoryFormat format) {
  for (int64_t i = 0; i < 4; ++i)
    if (kFormats[i] == format) return i + 1;
  __builtin_unreachable();
}

double float_of(const Json& json, std::string_view what) {
  if (json.is_number()) return json.as_double();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (json.is_string()) {
    const std::string& text = json.as_string();
    if (text == "Infinity") return kInf;
    if (text == "-Infinity") return -kInf;
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  refuse("{}: expected a float, found {}", what, json.to_text().substr(0, 80));
}

Json json_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

}  // namespace weft::pt2
