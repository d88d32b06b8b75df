#include <fmt/format.h>

#include <array>
#include <vector>

#include "base/json.h"
#include "core/tree_json.h"
#include "core/tree_level.h"
#include "weft/base/error.h"
#include "weft/core/pytree.h"

// `[1, {"type": "builtins.dict", "context": "[\"a\"]", "children_spec": [...]}]`: what PyTorch's files hold.
// A context is JSON inside a string; only a defaultdict's is an object.

namespace weft {

using Kind = TreeSpec::Kind;

// Reads and writes the files' own container types, which only it needs to know of.
class TreeSpecJson {
 public:
  static TreeSpec with_origin(const TreeSpec& spec, std::string type, std::string context) {
    TreeSpec::Node node = *spec.node_;
    node.file_type = std::move(type);
    node.file_context = std::move(context);
    return TreeSpec(Ref<const TreeSpec::Node>(new TreeSpec::Node(std::move(node))));
  }
  static const std::string& file_type(const TreeSpec& spec) { return spec.node_->file_type; }
  static const std::string& file_context(const TreeSpec& spec) { return spec.node_->file_context; }
};

namespace {

constexpr int64_t kProtocol = 1;
constexpr std::string_view kNamedTuple = "collections.namedtuple";

struct ContainerType {
  std::string_view name;
  Kind kind;
};
// The first of each kind is the one that weft writes.
constexpr std::array kContainerTypes = {
    ContainerType{"builtins.list", Kind::kList},
    ContainerType{"builtins.tuple", Kind::kTuple},
    ContainerType{"builtins.dict", Kind::kDict},
    ContainerType{"collections.OrderedDict", Kind::kDict},
    ContainerType{"collections.defaultdict", Kind::kDict},
    ContainerType{"collections.deque", Kind::kList},
    ContainerType{"torch.Size", Kind::kTuple},
    ContainerType{"torch.fx.immutable_collections.immutable_list", Kind::kList},
    ContainerType{"torch.fx.immutable_collections.immutable_dict", Kind::kDict},
};

const ContainerType* container_named(std::string_view name) {
  for (const ContainerType& type : kContainerTypes)
    if (type.name == name) return &type;
  return nullptr;
}

std::string_view own_name(Kind kind) {
  for (const ContainerType& type : kContainerTypes)
    if (type.kind == kind) return type.name;
  return "";
}

Json key_to_json(const Value& key) {
  switch (key.kind()) {
    case Value::Kind::kNone:
      return nullptr;
    case Value::Kind::kBool:
      return key.to_bool();
    case Value::Kind::kInt:
      return key.to_int();
    case Value::Kind::kDouble:
      return key.to_double();
    case Value::Kind::kString:
      return key.to_string_view();
    case Value::Kind::kTuple: {
      Json::Array parts;
      for (const Value& part : key.elements()) parts.push_back(key_to_json(part));
      return parts;
    }
    default:
      fail("a tree spec whose dictionary has the key {}, {}, cannot be written as JSON", key.to_string(),
           key.kind_name());
  }
}

Json keys_to_json(const ValueList& keys) {
  Json::Array array;
  for (const Value& key : keys) array.push_back(key_to_json(key));
  return array;
}

// Type and context as they stand in a file.
std::pair<std::string, Json> head_to_json(const TreeSpec& spec) {
  if (const std::string& type = TreeSpecJson::file_type(spec); !type.empty())
    return {type, Json::parse(TreeSpecJson::file_context(spec))};
  switch (spec.kind()) {
    case Kind::kDict:
      return {std::string(own_name(Kind::kDict)), keys_to_json(spec.keys()).to_text()};
    case Kind::kNamedTuple:
      return {std::string(kNamedTuple), spec.struct_type()->name()};
    case Kind::kStruct: {
      const auto [present, absent] = field_names(spec);
      return {spec.struct_type()->name(),
              Json(Json::Array{keys_to_json(present), keys_to_json(absent)}).to_text()};
    }
    default:
      return {std::string(own_name(spec.kind())), "null"};
  }
}

Json node_to_json(const TreeSpec& spec) {
  Json type, context;
  if (!spec.is_leaf()) std::tie(type, context) = head_to_json(spec);
  Json::Array children;
  for (const TreeSpec& child : spec.children()) children.push_back(node_to_json(child));
  return Json::Object{
      {"type", std::move(type)}, {"context", std::move(context)}, {"children_spec", std::move(children)}};
}

class Reader {
 public:
  Reader(std::string_view source, std::span<const StructTypeRef> named_tuples, bool takes_any)
      : source_(source), named_tuples_(named_tuples), takes_any_(takes_any) {}

  TreeSpec read(const Json& json) const {
    check(json.is_array() && json.size() == 2 && json.at(0).is_int(),
          "expected [protocol, spec], as PyTorch's treespec_dumps writes it");
    check(json.at(0).as_int() == kProtocol,
          fmt::format("protocol {} is unknown; weft reads protocol {}", json.at(0).as_int(), kProtocol));
    return read_node(json.at(1));
  }

 private:
  void check(bool ok, std::string_view what) const {
    if (!ok) throw FormatError(fmt::format("{}: {}", source_, what));
  }
  void check_count(std::string_view type, size_t expected, size_t got) const {
    check(expected == got, fmt::format("{} has {} keys or fields, but {} children", type, expected, got));
  }

  TreeSpec read_node(const Json& json) const {
    for (const char* member : {"type", "context", "children_spec"})
      check(json.contains(member), fmt::format("a node has no \"{}\"", member));
    std::vector<TreeSpec> children;
    check(json.at("children_spec").is_array(), "a node's \"children_spec\" is no list");
    for (const Json& child : json.at("children_spec").as_array()) children.push_back(read_node(child));
    const Json& type = json.at("type");
    check(type.is_null() || type.is_string(), "a node's \"type\" is no string");
    if (!type.is_null()) return read_container(type.as_string(), json.at("context"), std::move(children));
    check(children.empty(), "a leaf has children");
    return {};
  }

  TreeSpec read_container(const std::string& type, const Json& context,
                          std::vector<TreeSpec> children) const {
    const ContainerType* container = container_named(type);
    if (!container && takes_any_ && !is_known(type, context))
      return TreeSpecJson::with_origin(TreeSpec::tuple(std::move(children)), type, context.to_text());
    if (type == kNamedTuple) return read_named_tuple(context, std::move(children));
    if (!container) return read_struct(type, inner(type, context), std::move(children));
    TreeSpec spec;
    if (container->kind == Kind::kList) spec = TreeSpec::list(std::move(children));
    if (container->kind == Kind::kTuple) spec = TreeSpec::tuple(std::move(children));
    if (container->kind == Kind::kDict) spec = read_dict(type, context, std::move(children));
    const bool is_own = type == own_name(container->kind);
    return is_own ? spec : TreeSpecJson::with_origin(spec, type, context.to_text());
  }

  // Whether a named tuple or struct can be made of it.
  bool is_known(const std::string& type, const Json& context) const {
    if (!context.is_string()) return false;
    if (type == kNamedTuple) return static_cast<bool>(named_tuple(context.as_string()));
    try {
      const Json fields = Json::parse(context.as_string());
      return fields.is_array() && fields.size() == 2 && fields.at(0).is_array() && fields.at(1).is_array();
    } catch (const FormatError&) {
      return false;
    }
  }

  // The JSON inside the context's string.
  Json inner(const std::string& type, const Json& context) const {
    check(context.is_string(), fmt::format("the context of {} is no string", type));
    return Json::parse(context.as_string(), fmt::format("{}: context of {}", source_, type));
  }

  TreeSpec read_dict(const std::string& type, const Json& context, std::vector<TreeSpec> children) const {
    const Json* const inside = context.find("dict_context");
    const Json keys = inside ? *inside : inner(type, context);
    check(keys.is_array(), fmt::format("the context of {} is no list of keys", type));
    check_count(type, keys.size(), children.size());
    Dict distinct;
    ValueList list;
    for (const Json& key : keys.as_array()) {
      list.push_back(read_key(key));
      check(!distinct.contains(list.back()),
            fmt::format("{} has the key {} twice", type, list.back().to_string()));
      distinct.set(list.back(), {});
    }
    return TreeSpec::dict(std::move(list), std::move(children));
  }

  Value read_key(const Json& key) const {
    if (key.is_null()) return {};
    if (key.is_bool()) return key.as_bool();
    if (key.is_int()) return key.as_int();
    if (key.is_double()) return key.as_double();
    if (key.is_string()) return key.as_string();
    check(key.is_array(), "a dictionary's key is an object");
    ValueList parts;
    for (const Json& part : key.as_array()) parts.push_back(read_key(part));
    return Value::tuple(std::move(parts));
  }

  TreeSpec read_named_tuple(const Json& context, std::vector<TreeSpec> children) const {
    check(context.is_string(), "the context of collections.namedtuple is no name");
    const StructTypeRef type = named_tuple(context.as_string());
    check(static_cast<bool>(type),
          fmt::format("the fields of named tuple {} are not known; register_struct(\"{}\", "
                      "{{...}}, StructType::Form::kNamedTuple) makes them known",
                      context.as_string(), context.as_string()));
    check_count(type->name(), type->fields().size(), children.size());
    std::vector<size_t> all(children.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    return TreeSpec::record(type, std::move(all), std::move(children));
  }

  StructTypeRef named_tuple(const std::string& name) const {
    for (const StructTypeRef& type : named_tuples_)
      if (type->name() == name && type->form() == StructType::Form::kNamedTuple) return type;
    const StructTypeRef type = find_struct(name);
    return type && type->form() == StructType::Form::kNamedTuple ? type : nullptr;
  }

  // The context of a struct is [fields that have leaves, fields that are None].
  TreeSpec read_struct(const std::string& name, const Json& context, std::vector<TreeSpec> children) const {
    check(context.is_array() && context.size() == 2, fmt::format("unknown container type {}", name));
    std::vector<std::string> fields = read_names(name, context.at(0));
    check_count(name, fields.size(), children.size());
    const std::vector<std::string> absent = read_names(name, context.at(1));
    const StructTypeRef type = struct_with(name, fields, absent);
    // In the type's order, which the file's fields need not have.
    std::vector<std::pair<size_t, TreeSpec>> placed;
    for (size_t i = 0; i < fields.size(); ++i) placed.emplace_back(*type->position(fields[i]), children[i]);
    std::vector<size_t> present;
    children.clear();
    for (auto& [position, child] : placed) {
      check(present.empty() || present.back() < position,
            fmt::format("the fields of {} are not in the order they were registered in", name));
      present.push_back(position);
      children.push_back(std::move(child));
    }
    return TreeSpec::record(type, std::move(present), std::move(children));
  }

  std::vector<std::string> read_names(const std::string& type, const Json& names) const {
    check(names.is_array(), fmt::format("the context of {} is no pair of lists of fields", type));
    std::vector<std::string> result;
    for (const Json& name : names.as_array()) {
      check(name.is_string(), fmt::format("the context of {} has a field whose name is no string", type));
      result.push_back(name.as_string());
    }
    return result;
  }

  // The registered type, or one made of what the file says: fields with leaves before the others.
  StructTypeRef struct_with(const std::string& name, const std::vector<std::string>& fields,
                            const std::vector<std::string>& absent) const {
    std::vector<std::string> all = fields;
    all.insert(all.end(), absent.begin(), absent.end());
    if (StructTypeRef type = find_struct(name)) {
      bool fits = type->form() != StructType::Form::kNamedTuple && type->fields().size() == all.size();
      for (const std::string& field : all) fits = fits && type->position(field);
      check(fits, fmt::format("struct {} has other fields than the registered one", name));
      return type;
    }
    try {
      return StructTypeRef(new StructType(name, std::move(all)));
    } catch (const UserError& error) {
      throw FormatError(fmt::format("{}: {}", source_, error.message()));
    }
  }

  std::string_view source_;
  std::span<const StructTypeRef> named_tuples_;
  bool takes_any_;
};

}  // namespace

std::string TreeSpec::to_json() const { return Json(Json::Array{kProtocol, node_to_json(*this)}).to_text(); }

namespace {

TreeSpec read_tree(std::string_view text, std::string_view source,
                   std::span<const StructTypeRef> named_tuples, bool takes_any) {
  // A level of a tree is an object with a list in it, and so is a leaf; the whole is in a list.
  constexpr int kDeepest = 2 * int{kMostNesting} + 3;
  return Reader(source, named_tuples, takes_any).read(Json::parse(text, source, {.max_depth = kDeepest}));
}

}  // namespace

TreeSpec TreeSpec::from_json(std::string_view text, std::string_view source,
                             std::span<const StructTypeRef> named_tuples) {
  return read_tree(text, source, named_tuples, false);
}

TreeSpec tree_of_any_types(std::string_view text, std::string_view source,
                           std::span<const StructTypeRef> named_tuples) {
  return read_tree(text, source, named_tuples, true);
}

}  // namespace weft
