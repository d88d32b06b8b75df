#pragma once

#include <optional>
#include <string>
#include <unordered_set>

#include "weft/core/value.h"
#include "weft/dispatch/schema.h"

// Parts of C++ source: names and literals.

namespace weft {

bool is_cpp_identifier(std::string_view text);

// Different names for different things, each a C++ identifier that hides nothing which the code needs.
class CppNames {
 public:
  // The name itself where it can be one, otherwise the nearest that can.
  std::string take(std::string_view wanted);
  void reserve(std::string_view name) { taken_.emplace(name); }

 private:
  std::unordered_set<std::string> taken_;
};

// A constant as code reads it; nothing where it has no C++ form (tensors, symbolic numbers).
std::string cpp_string(std::string_view text);
std::string cpp_double(double number);
std::string cpp_int(int64_t number);
std::optional<std::string> cpp_constant(const Value& value);

// The type of a parameter of a typed function, without `const` and `&`: "Tensor", "std::optional<DType>".
std::optional<std::string> cpp_type(const Type& type);

}  // namespace weft
