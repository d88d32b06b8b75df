#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weft/graph/node.h"

namespace weft {

// How a value is written.
enum class ValueStyle : uint8_t {
  kCode,    // as Python code: nodes by name, strings quoted, `torch.float32`, `device(type='cpu')`
  kGraph,   // as PyTorch's graph text has it: nodes with a %, strings as they are
  kQuoted,  // as code, but nodes with a %
};

// Containers inside each other that readers go into, and that exact texts may have.
constexpr int kDeepestValue = 500;

// These append to `out`, so that the text of a whole graph grows in one buffer.
void append_value(std::string& out, const Value& value, ValueStyle style);
// "(a, b)", "(a,)", "()"
void append_tuple(std::string& out, const ValueList& values, ValueStyle style);
void append_target(std::string& out, const Target& target);
// Whether the exact text of a value reads back as that value: not where it has a tensor, a generator, a
// symbolic number or an object inside, or too many containers.
bool has_exact_text(const Value& value, int depth = 0);
// In quotes as Python's repr would choose them. Bytes that are no UTF-8 become \udcXX, Python's own way to
// keep such bytes in a string.
void append_quoted(std::string& out, std::string_view text);
// A type as an annotation: as it is where that can be told from what follows it, in quotes otherwise.
void append_type(std::string& out, std::string_view type);

// How many bytes at the start of `text` are one character in UTF-8; 0 if they are none.
size_t utf8_length(std::string_view text);

// A letter or _, then letters, digits and _, all of ASCII.
bool is_identifier(std::string_view text);

// Functions that code writes with a sign instead of a name, by their number of arguments.
struct SignedFunction {
  std::string_view sign, function;
};
std::span<const SignedFunction> unary_functions();
// A sign that begins another one comes after it.
std::span<const SignedFunction> binary_functions();
// The function that code writes as `x.shape`.
constexpr std::string_view kAttributeFunction = "builtins.getattr";

}  // namespace weft
