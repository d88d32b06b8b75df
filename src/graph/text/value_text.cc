#include "graph/text/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "weft/ops/operator_value.h"

namespace weft {
namespace {

// --- strings ---------------------------------------------------------------------------------------------

void append_ascii(std::string& out, char c, char quote) {
  if (c == quote || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (c == '\r') {
    out += "\\r";
  } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned>(c));
  } else {
    out += c;
  }
}

// --- numbers ---------------------------------------------------------------------------------------------

void append_int(std::string& out, int64_t v) {
  fmt::format_int digits(v);
  out.append(digits.data(), digits.size());
}

// The shortest text that reads back. A nan has no sign in Python.
void append_digits(std::string& out, double v) {
  if (std::isnan(v)) out += "nan";
  else fmt::format_to(std::back_inserter(out), "{}", v);
}

// Python's repr: always with a point or an exponent.
void append_real(std::string& out, double v) {
  const size_t begin = out.size();
  append_digits(out, v);
  if (out.find_first_of(".en", begin) == std::string::npos) out += ".0";
}

void append_complex(std::string& out, Complex<double> v) {
  // Python writes `infj` here, which is a name to whoever reads it.
  if (!std::isfinite(v.im)) {
    out += "complex(";
    append_real(out, v.re);
    out += ", ";
    append_real(out, v.im);
    out += ')';
    return;
  }
  const bool only_imaginary = v.re == 0 && !std::signbit(v.re);
  if (!only_imaginary) {
    out += '(';
    append_digits(out, v.re);
    if (!std::signbit(v.im)) out += '+';
  }
  append_digits(out, v.im);
  out += only_imaginary ? "j" : "j)";
}

// --- the rest --------------------------------------------------------------------------------------------

void append_device(std::string& out, Device device) {
  const std::string text = device.to_string();
  fmt::format_to(std::back_inserter(out), "device(type='{}'", text.substr(0, text.find(':')));
  if (device.type == DeviceType::kSim || device.index != 0)
    fmt::format_to(std::back_inserter(out), ", index={}", static_cast<int>(device.index));
  out += ')';
}

void append_tensor(std::string& out, const Tensor& tensor, ValueStyle style) {
  if (style == ValueStyle::kGraph) out += describe(tensor).str();
  else
    fmt::format_to(std::back_inserter(out), "torch.Tensor(size={}, dtype={})",
                   describe_sizes(tensor.sizes()).str(), dtype_name(tensor.dtype()));
}

void append_object(std::string& out, const Value& value, ValueStyle style) {
  if (const Node* node = node_in(value)) {
    if (style != ValueStyle::kCode) out += '%';
    out += node->name();
  } else {
    if (holds_operator(value) && style != ValueStyle::kGraph) out += "torch.ops.";
    out += value.to_string();
  }
}

void append_elements(std::string& out, const ValueList& values, ValueStyle style) {
  bool first = true;
  for (const Value& value : values) {
    if (!first) out += ", ";
    first = false;
    append_value(out, value, style);
  }
}

void append_dict(std::string& out, const Dict& dict, ValueStyle style) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : dict) {
    if (!first) out += ", ";
    first = false;
    append_value(out, key, style);
    out += ": ";
    append_value(out, value, style);
  }
  out += '}';
}

}  // namespace

size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto continues = [&](size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {
    const bool overlong = first == 0xe0 && second < 0xa0, surrogate = first == 0xed && second >= 0xa0;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first < 0xf5) {
    const bool overlong = first == 0xf0 && second < 0x90, too_large = first == 0xf4 && second >= 0x90;
    return continues(1) && continues(2) && continues(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

void append_quoted(std::string& out, std::string_view text) {
  const bool double_quotes =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = double_quotes ? '"' : '\'';
  out += quote;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (length == 1) append_ascii(out, text[0], quote);
    else if (length == 0) fmt::format_to(std::back_inserter(out), "\\udc{:02x}", first);
    else if (first == 0xc2 && static_cast<unsigned char>(text[1]) <= 0xa0)  // control characters, wide space
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(text[1]));
    else out.append(text, 0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  out += quote;
}

void append_tuple(std::string& out, const ValueList& values, ValueStyle style) {
  out += '(';
  append_elements(out, values, style);
  out += values.size() == 1 ? ",)" : ")";
}

void append_value(std::string& out, const Value& value, ValueStyle style) {
  using Kind = Value::Kind;
  switch (value.kind()) {
    case Kind::kObject:
      return append_object(out, value, style);
    case Kind::kInt:
      return append_int(out, value.to_int());
    case Kind::kDouble:
      return append_real(out, value.to_double());
    case Kind::kComplex:
      return append_complex(out, value.to_complex());
    case Kind::kString:
      if (style == ValueStyle::kGraph) out += value.to_string_view();
      else append_quoted(out, value.to_string_view());
      return;
    case Kind::kList:
      out += '[';
      append_elements(out, value.elements(), style);
      out += ']';
      return;
    case Kind::kTuple:
      return append_tuple(out, value.elements(), style);
    case Kind::kDict:
      return append_dict(out, value.to_dict(), style);
    case Kind::kDType:
      out += "torch.";
      out += dtype_name(value.to_dtype());
      return;
    case Kind::kLayout:
    case Kind::kMemoryFormat:
      out += "torch.";
      out += value.to_string();
      return;
    case Kind::kDevice:
      if (style == ValueStyle::kGraph) out += value.to_string();
      else append_device(out, value.to_device());
      return;
    case Kind::kTensor:
      return append_tensor(out, value.tensor_ref(), style);
    default:
      out += value.to_string();
  }
}

void append_target(std::string& out, const Target& target) {
  const Operator* op = target.op();
  if (!op) {
    if (const PythonFunction* function = target.function()) out += function->name;
    else out += target.to_string();  // a name, or an operator that is missing
    return;
  }
  const HigherOrder* higher_order = op->def().higher_order;
  if (higher_order && !higher_order->code_name.empty()) {
    out += higher_order->code_name;
    return;
  }
  const Schema& schema = op->schema();
  out += "torch.ops.";
  out += schema.ns;
  out += '.';
  out += schema.name;
  if (higher_order) return;  // such operators have no overloads
  out += '.';
  out += schema.overload.empty() ? std::string_view("default") : std::string_view(schema.overload);
}

bool is_identifier(std::string_view text) {
  auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
  });
}

// --- types -----------------------------------------------------------------------------------------------

namespace {

// Names, brackets, commas and |, without anything that ends an annotation: `typing.Dict[str, torch.Tensor]`.
bool is_plain_type(std::string_view type) {
  int depth = 0;
  for (char c : type) {
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    const bool separates = c == ',' || c == ' ';
    const bool named = is_identifier({&c, 1}) || (c >= '0' && c <= '9') || c == '.' || c == '|';
    if (depth < 0 || (separates && depth == 0)) return false;
    if (!separates && !named && c != '[' && c != ']' && c != '(' && c != ')') return false;
  }
  return !type.empty() && depth == 0 && type[0] != '[' && type[0] != '(';
}

}  // namespace

void append_type(std::string& out, std::string_view type) {
  if (is_plain_type(type)) out += type;
  else append_quoted(out, type);
}

// --- signs -----------------------------------------------------------------------------------------------

std::span<const SignedFunction> unary_functions() {
  static constexpr SignedFunction functions[] = {
      {"-", "operator.neg"}, {"+", "operator.pos"}, {"~", "operator.invert"}};
  return functions;
}

std::span<const SignedFunction> binary_functions() {
  static constexpr SignedFunction functions[] = {
      {"+", "operator.add"},     {"-", "operator.sub"},       {"**", "operator.pow"},
      {"*", "operator.mul"},     {"//", "operator.floordiv"}, {"/", "operator.truediv"},
      {"%", "operator.mod"},     {"@", "operator.matmul"},    {"<<", "operator.lshift"},
      {">>", "operator.rshift"}, {"==", "operator.eq"},       {"!=", "operator.ne"},
      {"<=", "operator.le"},     {">=", "operator.ge"},       {"<", "operator.lt"},
      {">", "operator.gt"},      {"&", "operator.and_"},      {"|", "operator.or_"},
      {"^", "operator.xor"}};
  return functions;
}

}  // namespace weft
