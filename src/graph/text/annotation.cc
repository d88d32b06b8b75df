#include "weft/graph/annotation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "graph/text/value_text.h"
#include "weft/graph/node.h"

namespace weft {
namespace {

using TypeKind = Type::Kind;

struct TypeSpelling {
  TypeKind kind;
  std::string_view text;
};
// Of the kinds that need nothing else to be said; the first of a kind is how it is written.
constexpr TypeSpelling kTypeSpellings[] = {
    {TypeKind::kTensor, "torch.Tensor"},
    {TypeKind::kTensor, "Tensor"},
    {TypeKind::kInt, "int"},
    {TypeKind::kFloat, "float"},
    {TypeKind::kBool, "bool"},
    {TypeKind::kComplex, "complex"},
    {TypeKind::kString, "str"},
    {TypeKind::kScalar, "number"},
    {TypeKind::kSymInt, "torch.SymInt"},
    {TypeKind::kSymFloat, "torch.SymFloat"},
    {TypeKind::kSymBool, "torch.SymBool"},
    {TypeKind::kScalarType, "torch.dtype"},
    {TypeKind::kDevice, "torch.device"},
    {TypeKind::kDevice, "Device"},
    {TypeKind::kLayout, "torch.layout"},
    {TypeKind::kMemoryFormat, "torch.memory_format"},
    {TypeKind::kGenerator, "torch.Generator"},
    {TypeKind::kGenerator, "Generator"},
    {TypeKind::kStorage, "torch.Storage"},
    {TypeKind::kStream, "torch.Stream"},
    {TypeKind::kQScheme, "torch.qscheme"},
    {TypeKind::kDimname, "Dimname"},
    {TypeKind::kAny, "typing.Any"},
    {TypeKind::kAny, "Any"},
    {TypeKind::kNone, "NoneType"},
    {TypeKind::kNone, "None"},
};

std::string joined_annotations(const std::vector<Type>& types) {
  std::string text;
  for (const Type& type : types) text += (text.empty() ? "" : ", ") + annotation(type);
  return text;
}

// --- reading ---------------------------------------------------------------------------------------------

// Types inside each other that are looked into; deeper ones stay text.
constexpr int kDeepestType = 64;

std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

bool is_class_name(std::string_view text) {
  for (size_t dot = text.find('.'); dot != std::string_view::npos; dot = text.find('.')) {
    if (!is_identifier(text.substr(0, dot))) return false;
    text.remove_prefix(dot + 1);
  }
  return is_identifier(text);
}

// What stands between the commas outside of brackets; nothing where brackets do not match.
std::optional<std::vector<std::string_view>> split_types(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '(') ++depth;
    if ((text[i] == ']' || text[i] == ')') && --depth < 0) return std::nullopt;
    if (text[i] != ',' || depth > 0) continue;
    parts.push_back(without_blanks(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  if (depth != 0) return std::nullopt;
  parts.push_back(without_blanks(text.substr(begin)));
  return parts;
}

std::optional<Type> read_type(std::string_view text, int depth);

std::optional<Type> read_container_type(std::string_view name, std::string_view inside, int depth) {
  const auto parts = split_types(inside);
  if (!parts) return std::nullopt;
  std::vector<Type> elements;
  if (without_blanks(inside) != "()")
    for (std::string_view part : *parts) {
      std::optional<Type> element = read_type(part, depth + 1);
      if (!element) return std::nullopt;
      elements.push_back(*std::move(element));
    }
  constexpr std::string_view kTyping = "typing.";
  if (name.starts_with(kTyping)) name.remove_prefix(kTyping.size());
  if (name == "Tuple" || name == "tuple") return Type::tuple(std::move(elements));
  if (elements.size() == 2 && (name == "Dict" || name == "dict")) return Type::dict(elements[0], elements[1]);
  if (elements.size() != 1) return std::nullopt;
  if (name == "List" || name == "list") return Type::list(elements[0]);
  if (name == "Optional") return Type::optional(elements[0]);
  if (name == "Future" || name == "RRef" || name == "Await")
    return Type::wrapper(std::string(name), elements[0]);
  return std::nullopt;
}

// Nothing for what is no type to us.
std::optional<Type> read_type(std::string_view text, int depth) {
  if (depth > kDeepestType) return std::nullopt;
  for (const TypeSpelling& spelling : kTypeSpellings)
    if (spelling.text == text) return Type(spelling.kind);
  if (is_class_name(text)) return Type(TypeKind::kClass, std::string(text));
  const size_t bracket = text.find('[');
  if (bracket == std::string_view::npos || !text.ends_with(']')) return std::nullopt;
  return read_container_type(text.substr(0, bracket), text.substr(bracket + 1, text.size() - bracket - 2),
                             depth);
}

}  // namespace

std::string annotation(const Type& type) {
  switch (type.kind()) {
    case TypeKind::kList:
      return fmt::format("typing.List[{}]", annotation(type.element()));
    case TypeKind::kOptional:
      return fmt::format("typing.Optional[{}]", annotation(type.element()));
    case TypeKind::kTuple:
      return type.elements().empty() ? "typing.Tuple[()]"
                                     : fmt::format("typing.Tuple[{}]", joined_annotations(type.elements()));
    case TypeKind::kDict:
      return fmt::format("typing.Dict[{}]", joined_annotations(type.elements()));
    case TypeKind::kWrapper:
      return fmt::format("{}[{}]", type.name(), annotation(type.element()));
    case TypeKind::kClass:
    case TypeKind::kOpaque:
    case TypeKind::kTypeVar:
      return type.name();
    default:
      return std::string(std::ranges::find(kTypeSpellings, type.kind(), &TypeSpelling::kind)->text);
  }
}

Type parse_annotation(std::string_view text) {
  std::optional<Type> type = read_type(without_blanks(text), 0);
  return type ? *std::move(type) : Type(TypeKind::kOpaque, std::string(text));
}

// --- of nodes --------------------------------------------------------------------------------------------

namespace {
constexpr const char* kSpellingNote = "type_spelling";  // in NodeMeta::extra, where it is not the annotation
}

std::string type_text(const Node& node) {
  const NodeMeta* meta = node.meta_or_null();
  if (!meta || !meta->type) return {};
  const Value* spelling = meta->extra.find(Value(kSpellingNote));
  // Whoever changed the type since did not mean the spelling.
  if (spelling && parse_annotation(spelling->to_string_view()) == *meta->type)
    return std::string(spelling->to_string_view());
  return annotation(*meta->type);
}

void set_type(Node& node, std::string_view text) {
  NodeMeta& meta = node.meta();
  meta.type = parse_annotation(text);
  if (annotation(*meta.type) != text) meta.extra.set(Value(kSpellingNote), Value(text));
}

}  // namespace weft
