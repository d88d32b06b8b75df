#include "graph/text/value_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "graph/node_rules.h"
#include "graph/text/value_text.h"
#include "weft/base/error.h"
#include "weft/ops/operator_value.h"

namespace weft {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

// --- nodes and functions ---------------------------------------------------------------------------------

Node& ValueReader::create(Graph& graph, NodeKind kind, Target target, ValueList args, Kwargs kwargs,
                          std::string_view name, size_t offset) {
  if (find(name)) in_.fail_at(offset, "expected a new name, but there is a value '{}' already", name);
  try {
    check_arguments(kind, target, args, kwargs, "node");
  } catch (const Error& error) {
    in_.fail_at(offset, "expected a node that can be: {}", error.message());
  }
  Node& node = graph.create(kind, std::move(target), std::move(args), std::move(kwargs), name);
  if (node.name() != name) in_.fail_at(offset, "expected a name, but '{}' has a meaning of its own", name);
  define(name, node);
  return node;
}

Node& ValueReader::read_node(std::string_view name, size_t offset) const {
  if (Node* node = find(name)) return *node;
  in_.fail_at(offset, "expected a value, but nothing above has the name '{}'", name);
}

namespace {

// The operator that code calls by a name of its own; null if none is.
const Operator* operator_of_code_name(std::string_view name) {
  const Operator* op = find_operator(fmt::format("higher_order::{}", name.substr(name.rfind('.') + 1)));
  const HigherOrder* higher_order = op ? op->def().higher_order : nullptr;
  return higher_order && higher_order->code_name == name ? op : nullptr;
}

}  // namespace

Target ValueReader::function(std::string_view name, size_t offset) const {
  static constexpr std::string_view kOperators = "torch.ops.";
  // Their messages suggest near names.
  try {
    if (!name.starts_with(kOperators)) {
      if (const Operator* op = operator_of_code_name(name)) return *op;
      return python_function(name);
    }
    std::string_view rest = name.substr(kOperators.size());
    const size_t dot = rest.find('.');
    if (dot == std::string_view::npos)
      in_.fail_at(offset, "expected torch.ops.NAMESPACE.NAME.OVERLOAD but found '{}'", name);
    const std::string qualified =
        qualified_operator_name(fmt::format("{}::{}", rest.substr(0, dot), rest.substr(dot + 1)));
    if (options_.missing_operators) return Target::of_operator(qualified);
    return operator_named(qualified);
  } catch (const FormatError&) {
    throw;
  } catch (const Error& error) {
    in_.fail_at(offset, "expected a function: {}", error.message());
  }
}

bool KeywordReader::add(std::string key, Value value) {
  constexpr size_t kFew = 16;
  if (kwargs_.size() < kFew) {
    for (const auto& entry : kwargs_)
      if (entry.first == key) return false;
  } else {
    if (keys_.empty())
      for (const auto& entry : kwargs_) keys_.insert(entry.first);
    if (!keys_.insert(key).second) return false;
  }
  kwargs_.emplace_back(std::move(key), std::move(value));
  return true;
}

// --- values ----------------------------------------------------------------------------------------------

Value ValueReader::read(int depth) {
  if (depth > kDeepestValue)
    in_.fail_at(in_.offset(), "expected at most {} containers inside each other", kDeepestValue);
  const char c = in_.peek();
  if (in_.at_string()) return in_.string_literal();
  if (at_number()) return read_number();
  if (c == '(') return read_parenthesized(depth);
  if (c == '[') {
    open('[');
    return Value::list(read_elements(']', depth));
  }
  if (c == '{') return read_dict(depth);
  if (c == '%' && nodes_ == Nodes::kMarked) {
    const size_t offset = in_.offset();
    in_.expect("%");
    std::string_view name = in_.identifier();
    if (name.empty()) in_.fail_expected("the name of a node after %");
    return value_of(read_node(name, offset));
  }
  if (is_letter(c)) return read_word();
  in_.fail_expected("a value");
}

Value ValueReader::read_word() {
  const size_t offset = in_.offset();
  const std::string_view word = in_.identifier();
  if (word == "None") return {};
  if (word == "True") return true;
  if (word == "False") return false;
  if (word == "torch") {
    in_.expect(".");
    const std::string_view name = in_.identifier();
    return name == "ops" ? read_operator(offset) : read_constant(name, offset);
  }
  if (in_.peek() == '(') {
    if (word == "device") return read_device();
    if (word == "complex") return read_complex();
    if (word == "float") return read_float();
  }
  if (nodes_ == Nodes::kNamed) return value_of(read_node(word, offset));
  in_.go_to(offset);
  in_.fail_expected("a value");
}

// From after `torch.ops`: `.aten.mm.default`.
Value ValueReader::read_operator(size_t offset) {
  while (in_.accept("."))
    if (in_.identifier().empty()) in_.fail_expected("a name after '.'");
  const std::string_view name = in_.text().substr(offset, in_.offset() - offset);
  return operator_value(function(name, offset).operator_name());
}

Value ValueReader::read_constant(std::string_view name, size_t offset) {
  if (auto dtype = dtype_from_name(name)) return *dtype;
  if (name == Value(Layout::kStrided).to_string()) return Layout::kStrided;
  for (MemoryFormat format : {MemoryFormat::kContiguous, MemoryFormat::kPreserve, MemoryFormat::kChannelsLast,
                              MemoryFormat::kChannelsLast3d})
    if (name == memory_format_name(format)) return format;
  in_.fail_at(offset, "expected a dtype, layout or memory format, but 'torch.{}' is none", name);
}

// device(type='sim', index=1), device('cpu')
Value ValueReader::read_device() {
  open('(');
  if (in_.accept_word("type")) {
    in_.skip_spaces();
    in_.expect("=");
    in_.skip_spaces();
  }
  const size_t offset = in_.offset();
  const std::string text = in_.string_literal();
  Device device;
  try {
    device = Device(text);
  } catch (const Error& error) {
    in_.fail_at(offset, "expected a device: {}", error.message());
  }
  in_.skip_layout();
  if (in_.accept(",")) {
    in_.skip_layout();
    if (in_.accept_word("index")) {
      in_.skip_spaces();
      in_.expect("=");
      in_.skip_spaces();
    }
    const size_t index_offset = in_.offset();
    const Number index = at_number() ? read_real() : Number{};
    if (!index.is_integer || index.integer < 0 || index.integer > std::numeric_limits<int8_t>::max())
      in_.fail_at(index_offset, "expected the index of a device, from 0 to 127");
    device.index = static_cast<int8_t>(index.integer);
    in_.skip_layout();
  }
  in_.expect(")");
  return device;
}

// --- numbers ---------------------------------------------------------------------------------------------

bool ValueReader::at_number() const {
  const size_t sign = in_.peek() == '-' ? 1 : 0;
  const char first = in_.peek(sign);
  if (is_decimal_digit(first)) return true;
  if (first == '.') return is_decimal_digit(in_.peek(sign + 1));
  for (std::string_view word : {"inf", "nan"}) {
    const std::string_view rest = in_.text().substr(std::min(in_.offset() + sign, in_.text().size()));
    if (rest.starts_with(word) && !(rest.size() > 3 && (is_letter(rest[3]) || is_decimal_digit(rest[3]))))
      return true;
  }
  return false;
}

// A number without its complex other half; a j at its end makes it imaginary.
ValueReader::Number ValueReader::read_real() {
  const size_t begin = in_.offset();
  const bool negative = in_.accept("-");
  Number number;
  if (in_.accept("inf") || in_.accept("nan")) {
    const double magnitude = in_.text()[in_.offset() - 1] == 'f' ? std::numeric_limits<double>::infinity()
                                                                 : std::numeric_limits<double>::quiet_NaN();
    number.real = negative ? -magnitude : magnitude;
    return number;
  }
  bool is_real = false;
  auto take_digits = [&] {
    while (is_decimal_digit(in_.peek())) in_.go_to(in_.offset() + 1);
  };
  take_digits();
  if (in_.accept(".")) {
    is_real = true;
    take_digits();
  }
  if (in_.peek() == 'e' || in_.peek() == 'E') {
    const size_t sign = in_.peek(1) == '+' || in_.peek(1) == '-' ? 1 : 0;
    if (is_decimal_digit(in_.peek(1 + sign))) {
      is_real = true;
      in_.go_to(in_.offset() + 1 + sign);
      take_digits();
    }
  }
  const std::string_view digits = in_.text().substr(begin, in_.offset() - begin);
  const char* end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, number.real).ec != std::errc())
    in_.fail_at(begin, "expected a number that a double can hold");
  number.is_imaginary = in_.accept("j");
  const bool is_complex = number.is_imaginary || in_.peek() == '+' || in_.peek() == '-';
  number.is_integer = !is_real && !is_complex;
  if (number.is_integer && std::from_chars(digits.data(), end, number.integer).ec != std::errc())
    in_.fail_at(begin, "expected a number that 64 bits can hold");
  if (is_letter(in_.peek()) || is_decimal_digit(in_.peek())) in_.fail_expected("the end of the number");
  return number;
}

Value ValueReader::read_number() {
  const Number first = read_real();
  if (first.is_imaginary) return Complex<double>(0, first.real);
  const char sign = in_.peek();
  if (sign != '+' && sign != '-') return first.is_integer ? Value(first.integer) : Value(first.real);
  if (sign == '+') in_.expect("+");
  const size_t offset = in_.offset();
  if (!at_number() || (sign == '+' && in_.peek() == '-')) in_.fail_expected("an imaginary number");
  const Number second = read_real();
  if (!second.is_imaginary) in_.fail_at(offset, "expected an imaginary number, like 2j");
  return Complex<double>(first.real, second.real);
}

// complex(0.0, inf)
Value ValueReader::read_complex() {
  auto part = [&] {
    if (!at_number()) in_.fail_expected("a number");
    const size_t offset = in_.offset();
    const Number number = read_real();
    if (number.is_imaginary) in_.fail_at(offset, "expected a real number");
    in_.skip_layout();
    return number.real;
  };
  open('(');
  const double re = part();
  in_.expect(",");
  in_.skip_layout();
  const double im = part();
  in_.expect(")");
  return Complex<double>(re, im);
}

// float('inf'), as people write it
Value ValueReader::read_float() {
  open('(');
  const size_t offset = in_.offset();
  const std::string text = in_.string_literal();
  const bool negative = text.starts_with('-');
  const std::string_view word = std::string_view(text).substr(negative ? 1 : 0);
  if (word != "inf" && word != "nan") in_.fail_at(offset, "expected 'inf', '-inf' or 'nan'");
  const double value =
      word == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  in_.skip_layout();
  in_.expect(")");
  return negative ? -value : value;
}

// --- containers ------------------------------------------------------------------------------------------

// From after the opening bracket to after the closing one.
ValueList ValueReader::read_elements(char end, int depth) {
  ValueList elements;
  const std::string_view closing(&end, 1);
  while (!in_.accept(closing)) {
    elements.push_back(read(depth + 1));
    in_.skip_layout();
    if (in_.accept(",")) in_.skip_layout();
    else if (in_.peek() != end) in_.fail_expected(fmt::format("',' or '{}'", end));
  }
  return elements;
}

Value ValueReader::read_parenthesized(int depth) {
  open('(');
  if (in_.accept(")")) return Value::tuple({});
  Value first = read(depth + 1);
  in_.skip_layout();
  if (in_.accept(")")) return first;
  if (in_.peek() != ',') in_.fail_expected("',' or ')'");
  in_.expect(",");
  in_.skip_layout();
  ValueList elements = read_elements(')', depth);
  elements.insert(elements.begin(), std::move(first));
  return Value::tuple(std::move(elements));
}

Value ValueReader::read_dict(int depth) {
  open('{');
  Dict dict;
  while (!in_.accept("}")) {
    const size_t offset = in_.offset();
    Value key = read(depth + 1);
    bool has_node = false;
    for_each_node(key, [&](Node&) { has_node = true; });
    if (has_node) in_.fail_at(offset, "expected a constant: a node cannot be the key of a dictionary");
    in_.skip_layout();
    in_.expect(":");
    in_.skip_layout();
    const size_t before = dict.size();
    dict.set(std::move(key), read(depth + 1));
    if (dict.size() == before) in_.fail_at(offset, "expected a new key, but the dictionary has this one");
    in_.skip_layout();
    if (in_.accept(",")) in_.skip_layout();
    else if (in_.peek() != '}') in_.fail_expected("',' or '}'");
  }
  return dict;
}

}  // namespace weft
