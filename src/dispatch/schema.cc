#include "weft/dispatch/schema.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft {
namespace {

std::string_view kind_text(Type::Kind kind) {
  using K = Type::Kind;
  switch (kind) {
    case K::kTensor:
      return "Tensor";
    case K::kScalar:
      return "Scalar";
    case K::kInt:
      return "int";
    case K::kSymInt:
      return "SymInt";
    case K::kFloat:
      return "float";
    case K::kSymFloat:
      return "SymFloat";
    case K::kBool:
      return "bool";
    case K::kSymBool:
      return "SymBool";
    case K::kComplex:
      return "complex";
    case K::kString:
      return "str";
    case K::kScalarType:
      return "ScalarType";
    case K::kDevice:
      return "Device";
    case K::kLayout:
      return "Layout";
    case K::kMemoryFormat:
      return "MemoryFormat";
    case K::kGenerator:
      return "Generator";
    case K::kStorage:
      return "Storage";
    case K::kStream:
      return "Stream";
    case K::kQScheme:
      return "QScheme";
    case K::kDimname:
      return "Dimname";
    case K::kAny:
      return "Any";
    case K::kNone:
      return "NoneType";
    default:
      return "";  // these have a name or elements
  }
}

template <typename Items>
std::string join(const Items& items, std::string_view separator) {
  std::string text;
  for (const auto& item : items) {
    if (&item != &items.front()) text += separator;
    if constexpr (requires { item.to_string(); }) text += item.to_string();
    else text += item;
  }
  return text;
}

// The type with its annotation in place: after the element for Tensor(a)[], at the end for Tensor[](a).
std::string annotated(const Type& type, const AliasInfo* alias, int depth) {
  if (!alias) return type.to_string();
  if (depth == 0) return type.to_string() + alias->to_string();
  std::string inner = annotated(type.element(), alias, depth - 1);
  if (type.is_optional()) return inner + "?";
  return type.list_size() ? fmt::format("{}[{}]", inner, *type.list_size()) : inner + "[]";
}

std::string annotated(const Type& type, const std::optional<AliasInfo>& alias) {
  return annotated(type, alias ? &*alias : nullptr, alias ? alias->depth : 0);
}

}  // namespace

Type Type::list(Type element, std::optional<int64_t> size) {
  Type type(Kind::kList);
  type.elements_.push_back(std::move(element));
  type.list_size_ = size;
  return type;
}
Type Type::optional(Type element) {
  Type type(Kind::kOptional);
  type.elements_.push_back(std::move(element));
  return type;
}
Type Type::tuple(std::vector<Type> elements) {
  Type type(Kind::kTuple);
  type.elements_ = std::move(elements);
  return type;
}
Type Type::dict(Type key, Type value) {
  Type type(Kind::kDict);
  type.elements_ = {std::move(key), std::move(value)};
  return type;
}
Type Type::wrapper(std::string name, Type element) {
  Type type(Kind::kWrapper, std::move(name));
  type.elements_.push_back(std::move(element));
  return type;
}

bool Type::has_tensor() const {
  return is_tensor() ||
         std::any_of(elements_.begin(), elements_.end(), [](const Type& t) { return t.has_tensor(); });
}

const Type& Type::element() const {
  invariant(elements_.size() == 1, "a type of kind {} has {} element types; only one was expected",
            static_cast<int>(kind_), elements_.size());
  return elements_.front();
}

std::string Type::to_string() const {
  switch (kind_) {
    case Kind::kList:
      return list_size_ ? fmt::format("{}[{}]", element().to_string(), *list_size_)
                        : element().to_string() + "[]";
    case Kind::kOptional:
      return element().to_string() + "?";
    case Kind::kTuple:
      return "(" + join(elements_, ", ") + ")";
    case Kind::kDict:
      return "Dict(" + join(elements_, ", ") + ")";
    case Kind::kWrapper:
      return fmt::format("{}({})", name_, element().to_string());
    default:
      return name_.empty() ? std::string(kind_text(kind_)) : name_;
  }
}

bool AliasInfo::is_wildcard() const { return std::find(before.begin(), before.end(), "*") != before.end(); }

bool AliasInfo::may_alias(const AliasInfo& other) const {
  return std::any_of(before.begin(), before.end(), [&](const std::string& name) {
    return name != "*" && std::find(other.before.begin(), other.before.end(), name) != other.before.end();
  });
}

std::string AliasInfo::to_string() const {
  std::string text = "(" + join(before, "|");
  if (is_write) text += "!";
  if (after != before) text += " -> " + join(after, "|");
  return text + ")";
}

std::string DefaultValue::to_string() const {
  return kind == Kind::kList ? "[" + join(elements, ", ") + "]" : text;
}

std::string Argument::to_string() const {
  std::string text = annotated(type, alias) + " " + name;
  if (default_value) text += "=" + default_value->to_string();
  return text;
}

std::string Return::to_string() const { return annotated(type, alias) + (name ? " " + *name : ""); }

std::string Schema::qualified_name() const {
  std::string text = ns.empty() ? name : ns + "::" + name;
  return overload.empty() ? text : text + "." + overload;
}

std::string Schema::to_string() const {
  std::vector<std::string> inputs, outputs;
  bool has_star = false;
  for (const Argument& argument : arguments) {
    if (argument.kwarg_only && !has_star) inputs.emplace_back("*");
    has_star |= argument.kwarg_only;
    inputs.push_back(argument.to_string());
  }
  if (is_vararg) inputs.emplace_back("...");
  for (const Return& result : returns) outputs.push_back(result.to_string());
  if (is_varret) outputs.emplace_back("...");
  // A single tuple gets parentheses of its own, so that it does not read as several results.
  bool is_bare = outputs.size() == 1 && !outputs[0].starts_with("(");
  std::string results = join(outputs, ", ");
  return qualified_name() + "(" + join(inputs, ", ") + ") -> " + (is_bare ? results : "(" + results + ")");
}

std::optional<size_t> Schema::argument_index(std::string_view wanted) const {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == wanted) return i;
  return std::nullopt;
}

const Argument* Schema::find_argument(std::string_view wanted) const {
  auto index = argument_index(wanted);
  return index ? &arguments[*index] : nullptr;
}

std::optional<size_t> Schema::aliased_argument(size_t index) const {
  const std::optional<AliasInfo>& result = returns.at(index).alias;
  if (!result) return std::nullopt;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].alias && result->may_alias(*arguments[i].alias)) return i;
  return std::nullopt;
}

bool Schema::is_mutable() const {
  return std::any_of(arguments.begin(), arguments.end(), [](const Argument& a) { return a.is_written(); });
}

bool Schema::is_view() const {
  return std::any_of(returns.begin(), returns.end(),
                     [](const Return& r) { return r.alias && !r.alias->is_write; });
}

bool Schema::is_out() const {
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const Argument& a) { return a.kwarg_only && a.is_written(); });
}

bool Schema::is_inplace() const { return !is_out() && !arguments.empty() && arguments[0].is_written(); }

}  // namespace weft
