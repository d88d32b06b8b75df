#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "weft/base/error.h"
#include "weft/dispatch/schema.h"

namespace weft {
namespace {

using Kind = Type::Kind;

struct NamedKind {
  std::string_view name;
  Kind kind;
};
constexpr NamedKind kTypes[] = {
    {"Tensor", Kind::kTensor},
    {"Scalar", Kind::kScalar},
    {"int", Kind::kInt},
    {"SymInt", Kind::kSymInt},
    {"float", Kind::kFloat},
    {"SymFloat", Kind::kSymFloat},
    {"bool", Kind::kBool},
    {"SymBool", Kind::kSymBool},
    {"complex", Kind::kComplex},
    {"str", Kind::kString},
    {"ScalarType", Kind::kScalarType},
    {"Device", Kind::kDevice},
    {"Layout", Kind::kLayout},
    {"MemoryFormat", Kind::kMemoryFormat},
    {"Generator", Kind::kGenerator},
    {"Storage", Kind::kStorage},
    {"Stream", Kind::kStream},
    {"QScheme", Kind::kQScheme},
    {"Dimname", Kind::kDimname},
    {"Any", Kind::kAny},
    {"NoneType", Kind::kNone},
};
// Types that weft never makes, but that PyTorch's interpreter operators mention.
constexpr std::string_view kOpaqueTypes[] = {
    "AnyEnumType", "AnyClassType", "AnyListType", "AnyTupleType",      "PyObject",  "Capsule",
    "number",      "DeviceIndex",  "Function",    "ConstQuantizerPtr", "Quantizer", "NamedTuple"};
constexpr std::string_view kWrappers[] = {"Future", "RRef", "Await"};
constexpr int kDeepest = 32;  // nested types and lists; ATen's reach 3

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
template <typename Names>
bool is_one_of(std::string_view name, const Names& names) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}
// t, t1, tVal; not "tensor", which is a mistake.
bool is_type_variable(std::string_view name) {
  return name == "t" ||
         (name.size() > 1 && name[0] == 't' && (is_digit(name[1]) || (name[1] >= 'A' && name[1] <= 'Z')));
}

// The text, the offset reached in it, and the errors that name the offset.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  bool accept(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token, std::string_view context) {
    if (!accept(token)) fail(fmt::format("'{}' {}", token, context));
  }
  // Letters, digits and underscores, not beginning with a digit; dots too if asked for.
  std::string identifier(std::string_view what, bool allows_dots = false) {
    skip_space();
    size_t start = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || (at_ > start && is_digit(text_[at_])) ||
                                  (allows_dots && at_ > start && text_[at_] == '.')))
      ++at_;
    if (at_ == start) fail(what);
    return std::string(text_.substr(start, at_ - start));
  }
  // The overload may begin with a digit.
  std::string overload() {
    size_t start = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    if (at_ == start) fail("an overload name after '.'");
    return std::string(text_.substr(start, at_ - start));
  }
  size_t offset() {
    skip_space();
    return at_;
  }
  std::string_view since(size_t start) const { return text_.substr(start, at_ - start); }
  std::string_view rest() const { return text_.substr(at_); }
  void advance(size_t count) { at_ += count; }

  [[noreturn]] void fail(std::string_view expected) {
    skip_space();
    std::string found = at_ == text_.size() ? "the end of the text" : fmt::format("'{}'", found_token());
    refuse(at_, fmt::format("expected {}, found {}", expected, found));
  }
  // For text that is well formed but cannot be meant.
  [[noreturn]] void refuse(size_t offset, std::string_view what) const {
    throw FormatError(fmt::format("not a schema: {} at column {}\n  {}\n  {:>{}}", what, offset + 1, text_,
                                  '^', offset + 1));
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  std::string_view found_token() const {
    size_t end = at_ + 1;
    if (is_letter(text_[at_]))
      while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
    return text_.substr(at_, end - at_);
  }

  std::string_view text_;
  size_t at_ = 0;
};

// ---- types
// -------------------------------------------------------------------------------------------------

struct AnnotatedType {
  Type type;
  std::optional<AliasInfo> alias;
};

std::vector<std::string> parse_alias_set(Scanner& in) {
  std::vector<std::string> names;
  do {
    names.push_back(in.accept("*") ? "*" : in.identifier("the name of an alias set, or '*'"));
  } while (in.accept("|"));
  return names;
}

// After its '('.
AliasInfo parse_alias(Scanner& in) {
  AliasInfo alias;
  alias.before = parse_alias_set(in);
  alias.is_write = in.accept("!");
  alias.after = in.accept("->") ? parse_alias_set(in) : alias.before;
  in.expect(")", "to end the alias annotation");
  return alias;
}

AnnotatedType parse_annotated(Scanner& in, int depth);

Type parse_plain(Scanner& in, int depth) {
  size_t start = in.offset();
  AnnotatedType parsed = parse_annotated(in, depth);
  if (parsed.alias) in.refuse(start, "an alias annotation inside another type");
  return std::move(parsed.type);
}

std::vector<Type> parse_type_list(Scanner& in, int depth) {
  std::vector<Type> types;
  do {
    types.push_back(parse_plain(in, depth));
  } while (in.accept(","));
  in.expect(")", "or ',' after a type");
  return types;
}

Type parse_named_type(Scanner& in, int depth) {
  size_t start = in.offset();
  std::string name = in.identifier("a type", true);
  for (const NamedKind& known : kTypes)
    if (known.name == name) return Type(known.kind);
  if (name == "Dict") {
    in.expect("(", "after Dict");
    std::vector<Type> types = parse_type_list(in, depth);
    if (types.size() != 2)
      in.refuse(start, fmt::format("Dict has {} types; expected a key and a value,", types.size()));
    return Type::dict(std::move(types[0]), std::move(types[1]));
  }
  if (is_one_of(name, kWrappers)) {
    in.expect("(", "after " + name);
    Type element = parse_plain(in, depth);
    in.expect(")", fmt::format("after the type in {}", name));
    return Type::wrapper(std::move(name), std::move(element));
  }
  if (is_one_of(name, kOpaqueTypes)) return Type(Kind::kOpaque, std::move(name));
  if (is_type_variable(name)) return Type(Kind::kTypeVar, std::move(name));
  if (name.find('.') == std::string::npos || name.back() == '.')
    in.refuse(start,
              fmt::format("unknown type '{}'; expected one such as Tensor, Scalar, int, SymInt, float, bool, "
                          "str, ScalarType, Device, or a class with a dotted name,",
                          name));
  return Type(Kind::kClass, std::move(name));
}

Type parse_list_suffix(Scanner& in, Type element) {
  if (in.accept("]")) return Type::list(std::move(element));
  int64_t size = 0;
  std::string_view rest = in.rest();
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
  if (error != std::errc() || size < 0) in.fail("']' or a list size");
  in.advance(static_cast<size_t>(end - rest.data()));
  in.expect("]", "after the list size");
  return Type::list(std::move(element), size);
}

AnnotatedType parse_annotated(Scanner& in, int depth) {
  if (depth == kDeepest) in.refuse(in.offset(), fmt::format("types nested more than {} deep", kDeepest));
  AnnotatedType result{
      in.accept("(") ? Type::tuple(parse_type_list(in, depth + 1)) : parse_named_type(in, depth + 1),
      std::nullopt};
  int suffixes = 0;
  for (;;) {
    size_t start = in.offset();
    if (in.accept("[")) {
      result.type = parse_list_suffix(in, std::move(result.type));
    } else if (in.accept("?")) {
      result.type = Type::optional(std::move(result.type));
    } else if (in.accept("(")) {
      if (result.alias) in.refuse(start, "a second alias annotation of one type");
      result.alias = parse_alias(in);
      continue;
    } else {
      return result;
    }
    if (++suffixes > kDeepest) in.refuse(start, fmt::format("types nested more than {} deep", kDeepest));
    if (result.alias) ++result.alias->depth;
  }
}

// ---- default values
// ----------------------------------------------------------------------------------------

char unescaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case '\\':
    case '\'':
    case '"':
      return c;
    default:
      return '\0';
  }
}

DefaultValue parse_string(Scanner& in) {
  size_t start = in.offset();
  std::string_view rest = in.rest();
  char quote = rest[0];
  DefaultValue value{.kind = DefaultValue::Kind::kString};
  for (size_t i = 1; i < rest.size(); ++i) {
    char c = rest[i];
    if (c == quote) {
      in.advance(i + 1);
      value.text = in.since(start);
      return value;
    }
    if (c == '\\' && i + 1 < rest.size()) {
      c = unescaped(rest[++i]);
      if (c == '\0') in.refuse(start + i, fmt::format("unknown escape '\\{}' in a string", rest[i]));
    }
    value.as_string += c;
  }
  in.refuse(start, "a string without its closing quote");
}

// -inf, 1, 1., 1e-05; the longest run of characters that numbers are made of.
std::string_view scan_number(Scanner& in) {
  std::string_view rest = in.rest();
  size_t end = rest[0] == '-' ? 1 : 0;
  if (rest.substr(end).starts_with("inf")) return rest.substr(0, end + 3);
  while (end < rest.size()) {
    bool is_exponent_sign =
        (rest[end] == '-' || rest[end] == '+') && (rest[end - 1] == 'e' || rest[end - 1] == 'E');
    if (!is_digit(rest[end]) && rest[end] != '.' && rest[end] != 'e' && rest[end] != 'E' &&
        !(end > 0 && is_exponent_sign))
      break;
    ++end;
  }
  return rest.substr(0, end);
}

DefaultValue parse_number(Scanner& in) {
  size_t start = in.offset();
  std::string_view text = scan_number(in);
  const char* end = text.data() + text.size();
  DefaultValue value{.text = std::string(text)};
  auto [int_end, int_error] = std::from_chars(text.data(), end, value.as_int);
  auto [float_end, float_error] = std::from_chars(text.data(), end, value.as_float);
  if (float_error == std::errc::result_out_of_range || (int_end == end && int_error != std::errc()))
    in.refuse(start, fmt::format("the number {} is out of range", text));
  if (float_error != std::errc() || float_end != end) in.fail("a number");
  bool is_int = int_error == std::errc() && int_end == end;
  value.kind = is_int ? DefaultValue::Kind::kInt : DefaultValue::Kind::kFloat;
  if (!is_int) value.as_int = 0;
  in.advance(text.size());
  return value;
}

DefaultValue parse_word(Scanner& in) {
  std::string word = in.identifier("a default value", true);
  DefaultValue value{.text = word};
  if (word == "None") return value;
  if (word == "True" || word == "False") {
    value.kind = DefaultValue::Kind::kBool;
    value.as_bool = word == "True";
  } else if (word == "inf" || word == "nan") {
    value.kind = DefaultValue::Kind::kFloat;
    value.as_float = word == "inf" ? std::numeric_limits<double>::infinity() : std::nan("");
  } else {
    value.kind = DefaultValue::Kind::kWord;
    value.as_string = std::move(word);
  }
  return value;
}

DefaultValue parse_default(Scanner& in, int depth) {
  char c = in.peek();
  if (c == '"' || c == '\'') return parse_string(in);
  if (is_digit(c) || c == '-' || c == '.') return parse_number(in);
  if (depth == kDeepest) in.refuse(in.offset(), fmt::format("lists nested more than {} deep", kDeepest));
  if (!in.accept("[")) return parse_word(in);
  DefaultValue list{.kind = DefaultValue::Kind::kList};
  if (in.accept("]")) return list;
  do {
    list.elements.push_back(parse_default(in, depth + 1));
  } while (in.accept(","));
  in.expect("]", "or ',' in a list");
  return list;
}

// Whether a value can stand for the type. Only plain mistakes are refused: ATen itself writes `int[2]
// stride=1` and `float p=1`.
bool fits(const DefaultValue& value, const Type& type) {
  using D = DefaultValue::Kind;
  if (type.is_optional()) return value.is_none() || fits(value, type.element());
  switch (value.kind) {
    case D::kNone:
      return type.is_tensor() || type.is(Kind::kAny) || type.is(Kind::kNone);
    case D::kBool:
      return type.is(Kind::kBool) || type.is(Kind::kSymBool) || type.is(Kind::kScalar) || type.is_list();
    case D::kFloat:
      return type.is(Kind::kFloat) || type.is(Kind::kSymFloat) || type.is(Kind::kScalar) ||
             type.is(Kind::kComplex) || type.is_list();
    case D::kString:
      return type.is(Kind::kString);
    case D::kList:
      return type.is_list() && std::all_of(value.elements.begin(), value.elements.end(),
                                           [&](const DefaultValue& e) { return fits(e, type.element()); });
    case D::kInt:
      return !type.is(Kind::kString) && !type.is(Kind::kBool) && !type.is_tensor();
    case D::kWord:
      return !type.is(Kind::kBool) && !type.is(Kind::kFloat) && !type.is(Kind::kString) && !type.is_tensor();
  }
  return false;
}

// ---- schemas
// -----------------------------------------------------------------------------------------------

class SchemaParser {
 public:
  explicit SchemaParser(std::string_view text) : in_(text) {}

  Schema parse() {
    parse_name();
    parse_arguments();
    in_.expect("->", "before the results");
    parse_returns();
    if (!in_.at_end()) in_.fail("the end of the schema");
    return std::move(schema_);
  }

 private:
  void parse_name() {
    schema_.name = in_.identifier("the operator's name");
    if (in_.accept("::")) {
      schema_.ns = std::move(schema_.name);
      schema_.name = in_.identifier("the operator's name after '::'");
    }
    if (in_.accept(".")) schema_.overload = in_.overload();
  }

  void parse_arguments() {
    in_.expect("(", "after the operator's name");
    if (in_.accept(")")) return;
    bool after_star = false;
    do {
      size_t start = in_.offset();
      if (schema_.is_vararg) in_.refuse(start, "something after '...'; it must come last,");
      if (in_.accept("...")) {
        schema_.is_vararg = true;
      } else if (in_.accept("*")) {
        if (after_star) in_.refuse(start, "a second '*' among the arguments");
        after_star = true;
        if (in_.peek() == ')') in_.fail("',' and keyword-only arguments after '*'");
      } else {
        parse_argument(after_star);
      }
    } while (in_.accept(","));
    in_.expect(")", "or ',' after an argument");
  }

  void parse_argument(bool kwarg_only) {
    auto [type, alias] = parse_annotated(in_, 0);
    size_t start = in_.offset();
    Argument argument{.name = in_.identifier("an argument name"),
                      .type = std::move(type),
                      .alias = std::move(alias),
                      .default_value = std::nullopt,
                      .kwarg_only = kwarg_only};
    if (schema_.find_argument(argument.name))
      in_.refuse(start, fmt::format("a second argument named '{}'", argument.name));
    if (in_.accept("=")) {
      size_t value_start = in_.offset();
      argument.default_value = parse_default(in_, 0);
      if (!fits(*argument.default_value, argument.type))
        in_.refuse(value_start, fmt::format("the default {} does not fit the type {}",
                                            argument.default_value->to_string(), argument.type.to_string()));
    }
    schema_.arguments.push_back(std::move(argument));
  }

  void parse_returns() {
    if (!in_.accept("(")) return parse_return();
    if (in_.accept(")")) return;
    do {
      if (schema_.is_varret) in_.refuse(in_.offset(), "a result after '...'; it must come last,");
      parse_return();
    } while (in_.accept(","));
    in_.expect(")", "or ',' after a result");
  }

  void parse_return() {
    if (in_.accept("...")) {
      schema_.is_varret = true;
      return;
    }
    auto [type, alias] = parse_annotated(in_, 0);
    Return result{.name = std::nullopt, .type = std::move(type), .alias = std::move(alias)};
    if (is_letter(in_.peek())) result.name = in_.identifier("a result name");
    schema_.returns.push_back(std::move(result));
  }

  Scanner in_;
  Schema schema_;
};

}  // namespace

Schema parse_schema(std::string_view text) { return SchemaParser(text).parse(); }

Type parse_type(std::string_view text) {
  Scanner in(text);
  Type type = parse_plain(in, 0);
  if (!in.at_end()) in.fail("the end of the type");
  return type;
}

}  // namespace weft
