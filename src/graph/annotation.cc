#include "weft/graph/annotation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "graph/value_text.h"
#include "weft/graph/node.h"

namespace weft {
namespace {

using Kind = Type::Kind;

struct Spelling {
  Kind kind;
  std::string_view text;
};
// Of the kinds that need nothing else to be said; the first of a kind is how it is written.
constexpr Spelling kSpellings[] = {
    {Kind::kTensor, "torch.Tensor"},
    {Kind::kTensor, "Tensor"},
    {Kind::kInt, "int"},
    {Kind::kFloat, "float"},
    {Kind::kBool, "bool"},
    {Kind::kComplex, "complex"},
    {Kind::kString, "str"},
    {Kind::kScalar, "number"},
    {Kind::kSymInt, "torch.SymInt"},
    {Kind::kSymFloat, "torch.SymFloat"},
    {Kind::kSymBool, "torch.SymBool"},
    {Kind::kScalarType, "torch.dtype"},
    {Kind::kDevice, "torch.device"},
    {Kind::kDevice, "Device"},
    {Kind::kLayout, "torch.layout"},
    {Kind::kMemoryFormat, "torch.memory_format"},
    {Kind::kGenerator, "torch.Generator"},
    {Kind::kGenerator, "Generator"},
    {Kind::kStorage, "torch.Storage"},
    {Kind::kStream, "torch.Stream"},
    {Kind::kQScheme, "torch.qscheme"},
    {Kind::kDimname, "Dimname"},
    {Kind::kAny, "typing.Any"},
    {Kind::kAny, "Any"},
    {Kind::kNone, "NoneType"},
    {Kind::kNone, "None"},
};

std::string joined(const std::vector<Type>& types) {
  std::string text;
  for (const Type& type : types) text += (text.empty() ? "" : ", ") + annotation(type);
  return text;
}

// --- reading ---------------------------------------------------------------------------------------------

// Types inside each other that are looked into; deeper ones stay text.
constexpr int kDeepestType = 64;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

bool is_dotted_name(std::string_view text) {
  for (size_t dot = text.find('.'); dot != std::string_view::npos; dot = text.find('.')) {
    if (!is_identifier(text.substr(0, dot))) return false;
    text.remove_prefix(dot + 1);
  }
  return is_identifier(text);
}

// What stands between the commas outside of brackets; nothing where brackets do not match.
std::optional<std::vector<std::string_view>> split(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '(') ++depth;
    if ((text[i] == ']' || text[i] == ')') && --depth < 0) return std::nullopt;
    if (text[i] != ',' || depth > 0) continue;
    parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  if (depth != 0) return std::nullopt;
  parts.push_back(trimmed(text.substr(begin)));
  return parts;
}

std::optional<Type> read(std::string_view text, int depth);

std::optional<Type> read_container(std::string_view name, std::string_view inside, int depth) {
  const auto parts = split(inside);
  if (!parts) return std::nullopt;
  std::vector<Type> elements;
  if (trimmed(inside) != "()")
    for (std::string_view part : *parts) {
      std::optional<Type> element = read(part, depth + 1);
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
std::optional<Type> read(std::string_view text, int depth) {
  if (depth > kDeepestType) return std::nullopt;
  for (const Spelling& spelling : kSpellings)
    if (spelling.text == text) return Type(spelling.kind);
  if (is_dotted_name(text)) return Type(Kind::kClass, std::string(text));
  const size_t bracket = text.find('[');
  if (bracket == std::string_view::npos || !text.ends_with(']')) return std::nullopt;
  return read_container(text.substr(0, bracket), text.substr(bracket + 1, text.size() - bracket - 2), depth);
}

}  // namespace

std::string annotation(const Type& type) {
  switch (type.kind()) {
    case Kind::kList:
      return fmt::format("typing.List[{}]", annotation(type.element()));
    case Kind::kOptional:
      return fmt::format("typing.Optional[{}]", annotation(type.element()));
    case Kind::kTuple:
      return type.elements().empty() ? "typing.Tuple[()]"
                                     : fmt::format("typing.Tuple[{}]", joined(type.elements()));
    case Kind::kDict:
      return fmt::format("typing.Dict[{}]", joined(type.elements()));
    case Kind::kWrapper:
      return fmt::format("{}[{}]", type.name(), annotation(type.element()));
    case Kind::kClass:
    case Kind::kOpaque:
    case Kind::kTypeVar:
      return type.name();
    default:
      return std::string(std::ranges::find(kSpellings, type.kind(), &Spelling::kind)->text);
  }
}

Type parse_annotation(std::string_view text) {
  std::optional<Type> type = read(trimmed(text), 0);
  return type ? *std::move(type) : Type(Kind::kOpaque, std::string(text));
}

std::string type_text(const Node& node) {
  const NodeMeta* meta = node.meta_or_null();
  if (!meta || !meta->type) return {};
  // Whoever changed the type since did not mean the spelling.
  const bool is_spelled = !meta->spelling.empty() && parse_annotation(meta->spelling) == *meta->type;
  return is_spelled ? meta->spelling : annotation(*meta->type);
}

void set_type(Node& node, std::string_view text) {
  NodeMeta& meta = node.meta();
  meta.type = parse_annotation(text);
  meta.spelling = annotation(*meta.type) == text ? "" : text;
}

}  // namespace weft
