#include "weft/base/dtype.h"

#include <algorithm>
#include <array>

namespace weft {
namespace {

constexpr std::array<std::string_view, kDTypeCount> kNames = {
    "bool",    "uint8",    "int8",    "int16",   "int32",     "int64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128"};
constexpr std::array<std::string_view, kDTypeCount> kShortNames = {
    "b8", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128"};

// The enumeration's order is the order of promotion but for three pairs, of which neither holds the other.
constexpr DType promoted(DType a, DType b) {
  DType low = std::min(a, b), high = std::max(a, b);
  if (low == kUInt8 && high == kInt8) return kInt16;
  if (low == kFloat16 && high == kBFloat16) return kFloat32;
  if (low == kFloat64 && high == kComplex64) return kComplex128;
  return high;
}

constexpr auto kPromoted = [] {
  std::array<std::array<DType, kDTypeCount>, kDTypeCount> table{};
  for (int a = 0; a < kDTypeCount; ++a)
    for (int b = 0; b < kDTypeCount; ++b)
      table[a][b] = promoted(static_cast<DType>(a), static_cast<DType>(b));
  return table;
}();

}  // namespace

std::string_view dtype_name(DType t) { return kNames[static_cast<size_t>(t)]; }
std::string_view short_name(DType t) { return kShortNames[static_cast<size_t>(t)]; }

std::optional<DType> dtype_from_name(std::string_view name) {
  auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<DType>(found - kNames.begin());
}

DType promote(DType a, DType b) { return kPromoted[static_cast<size_t>(a)][static_cast<size_t>(b)]; }

DType real_type(DType t) {
  if (t == kComplex64) return kFloat32;
  if (t == kComplex128) return kFloat64;
  return t;
}

DType complex_type(DType t) {
  switch (t) {
    case kFloat64:
    case kComplex128:
      return kComplex128;
    default:
      return kComplex64;
  }
}

}  // namespace weft
