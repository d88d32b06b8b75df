#include "io/cpp_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

const std::unordered_set<std::string_view>& keywords() {
  static const std::unordered_set<std::string_view> words = {
      "alignas",     "alignof",  "and",       "and_eq",    "asm",       "auto",         "bitand",
      "bitor",       "bool",     "break",     "case",      "catch",     "char",         "char8_t",
      "char16_t",    "char32_t", "class",     "co_await",  "co_return", "co_yield",     "compl",
      "concept",     "const",    "consteval", "constexpr", "constinit", "const_cast",   "continue",
      "decltype",    "default",  "delete",    "do",        "double",    "dynamic_cast", "else",
      "enum",        "explicit", "export",    "extern",    "false",     "float",        "for",
      "friend",      "goto",     "if",        "inline",    "int",       "long",         "mutable",
      "namespace",   "new",      "noexcept",  "not",       "not_eq",    "nullptr",      "operator",
      "or",          "or_eq",    "private",   "protected", "public",    "register",     "reinterpret_cast",
      "requires",    "return",   "short",     "signed",    "sizeof",    "static",       "static_assert",
      "static_cast", "struct",   "switch",    "template",  "this",      "thread_local", "throw",
      "true",        "try",      "typedef",   "typeid",    "typename",  "union",        "unsigned",
      "using",       "virtual",  "void",      "volatile",  "wchar_t",   "while",        "xor",
      "xor_eq"};
  return words;
}

// What statements of generated code name without a namespace, and macros of the headers that they include.
const std::unordered_set<std::string_view>& used_names() {
  static const std::unordered_set<std::string_view> names = {
      "Tensor",     "Tensors",    "Value",   "ValueList",  "ValueObject", "Scalar",       "SymInt",
      "Args",       "Ref",        "Dict",    "DType",      "Device",      "Layout",       "MemoryFormat",
      "Generator",  "Complex",    "IntSpan", "SymIntSpan", "TensorSpan",  "OptionalSpan", "ListSpan",
      "int64_t",    "size_t",     "assert",  "errno",      "main",        "inputs",       "EOF",
      "NULL",       "stdin",      "stdout",  "stderr",     "NAN",         "INFINITY",     "HUGE_VAL",
      "INT64_MIN",  "INT64_MAX",  "M_PI",    "M_E",        "kBool",       "kUInt8",       "kInt8",
      "kInt16",     "kInt32",     "kInt64",  "kFloat16",   "kBFloat16",   "kFloat32",     "kFloat64",
      "kComplex64", "kComplex128"};
  return names;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr const char* kDTypes[] = {"kBool",    "kUInt8",   "kInt8",      "kInt16",
                                   "kInt32",   "kInt64",   "kFloat16",   "kBFloat16",
                                   "kFloat32", "kFloat64", "kComplex64", "kComplex128"};
static_assert(std::size(kDTypes) == kDTypeCount);

std::string memory_format(MemoryFormat format) {
  switch (format) {
    case MemoryFormat::kContiguous:
      return "MemoryFormat::kContiguous";
    case MemoryFormat::kPreserve:
      return "MemoryFormat::kPreserve";
    case MemoryFormat::kChannelsLast:
      return "MemoryFormat::kChannelsLast";
    case MemoryFormat::kChannelsLast3d:
      return "MemoryFormat::kChannelsLast3d";
  }
  __builtin_unreachable();
}

}  // namespace

// --- names -----------------------------------------------------------------------------------------------

bool is_cpp_identifier(std::string_view text) {
  if (text.empty() || !is_letter(text[0]) || keywords().contains(text)) return false;
  // Names with two underscores, or one and a capital in front, are the compiler's.
  if (text.find("__") != std::string_view::npos) return false;
  if (text[0] == '_' && text.size() > 1 && text[1] >= 'A' && text[1] <= 'Z') return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

std::string CppNames::take(std::string_view wanted) {
  std::string name;
  for (char c : wanted) {
    const char own = is_letter(c) || is_digit(c) ? c : '_';
    if (own != '_' || name.empty() || name.back() != '_') name += own;
  }
  if (name.empty() || is_digit(name[0])) name.insert(0, "n");
  if (name[0] == '_' && name.size() > 1 && name[1] >= 'A' && name[1] <= 'Z') name.insert(0, "n");
  const bool has_meaning = keywords().contains(name) || used_names().contains(name);
  if (has_meaning || taken_.contains(name)) {
    const std::string base = name + (name.back() == '_' ? "" : "_");
    for (int i = has_meaning ? 0 : 1;; ++i) {
      name = i == 0 ? base : fmt::format("{}{}", base, i);
      if (!taken_.contains(name) && is_cpp_identifier(name)) break;
    }
  }
  taken_.insert(name);
  return name;
}

// --- literals --------------------------------------------------------------------------------------------

std::string cpp_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte >= 0x7f || c == '?') {
      out += fmt::format("\\{:03o}", byte);  // three digits: what follows cannot be taken for one more
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string cpp_double(double number) {
  if (std::isnan(number)) return "std::numeric_limits<double>::quiet_NaN()";
  if (std::isinf(number))
    return number > 0 ? "std::numeric_limits<double>::infinity()"
                      : "-std::numeric_limits<double>::infinity()";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string cpp_int(int64_t number) {
  if (number >= INT32_MIN + 1 && number <= INT32_MAX) return fmt::format("{}", number);
  if (number == INT64_MIN) return "INT64_MIN";
  return fmt::format("int64_t{{{}}}", number);
}

std::optional<std::string> cpp_constant(const Value& value) {
  using Kind = Value::Kind;
  switch (value.kind()) {
    case Kind::kNone:
      return "Value()";
    case Kind::kBool:
      return value.to_bool() ? "true" : "false";
    case Kind::kInt:
      return cpp_int(value.to_int());
    case Kind::kDouble:
      return cpp_double(value.to_double());
    case Kind::kComplex:
      return fmt::format("Complex<double>({}, {})", cpp_double(value.to_complex().re),
                         cpp_double(value.to_complex().im));
    case Kind::kString:
      // A literal ends at a zero.
      if (std::string_view text = value.to_string_view(); text.find('\0') != std::string_view::npos)
        return fmt::format("std::string({}, {})", cpp_string(text), text.size());
      return cpp_string(value.to_string_view());
    case Kind::kDType:
      return kDTypes[static_cast<size_t>(value.to_dtype())];
    case Kind::kDevice:
      return fmt::format("Device({})", cpp_string(value.to_device().to_string()));
    case Kind::kLayout:
      return "Layout::kStrided";
    case Kind::kMemoryFormat:
      return memory_format(value.to_memory_format());
    default:
      return std::nullopt;
  }
}

// --- types -----------------------------------------------------------------------------------------------

namespace {

std::optional<std::string> list_type(const Type& type) {
  const Type& element = type.element().is_optional() ? type.element().element() : type.element();
  switch (element.kind()) {
    case Type::Kind::kTensor:
      return "TensorSpan";
    case Type::Kind::kInt:
      return "IntSpan";
    case Type::Kind::kSymInt:
      return "SymIntSpan";
    case Type::Kind::kFloat:
      return "ListSpan<double>";
    case Type::Kind::kScalar:
      return "ListSpan<Scalar>";
    case Type::Kind::kBool:
      return fmt::format("std::array<bool, {}>", type.list_size().value_or(1));
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> cpp_type(const Type& type) {
  switch (type.kind()) {
    case Type::Kind::kTensor:
      return "Tensor";
    case Type::Kind::kScalar:
      return "Scalar";
    case Type::Kind::kInt:
      return "int64_t";
    case Type::Kind::kSymInt:
      return "SymInt";
    case Type::Kind::kFloat:
      return "double";
    case Type::Kind::kBool:
      return "bool";
    case Type::Kind::kString:
      return "std::string_view";
    case Type::Kind::kScalarType:
      return "DType";
    case Type::Kind::kDevice:
      return "Device";
    case Type::Kind::kLayout:
      return "Layout";
    case Type::Kind::kMemoryFormat:
      return "MemoryFormat";
    case Type::Kind::kGenerator:
      return "Generator";
    case Type::Kind::kList:
      return list_type(type);
    case Type::Kind::kOptional: {
      std::optional<std::string> element = cpp_type(type.element());
      if (!element || type.element().is_tensor()) return element;
      return fmt::format(fmt::runtime(type.element().is_list() ? "OptionalSpan<{}>" : "std::optional<{}>"),
                         *element);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace weft
