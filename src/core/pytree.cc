#include "weft/core/pytree.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/tree_level.h"
#include "weft/base/error.h"

namespace weft {

using Kind = TreeSpec::Kind;

std::string to_string(const KeyPath& path) {
  std::string text;
  for (const PathKey& step : path) {
    if (step.kind == PathKey::Kind::kField) text += "." + std::string(step.key.to_string_view());
    else text += "[" + step.key.to_string() + "]";
  }
  return text;
}

bool no_container(const Value&) { return false; }

namespace {

void mix(size_t& hash, size_t more) { hash ^= more + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2); }

size_t hash_of(const std::string& text) { return std::hash<std::string>()(text); }

}  // namespace

TreeSpec::TreeSpec(Ref<const Node> node) noexcept : node_(std::move(node)) {}

TreeSpec TreeSpec::make(Node node) {
  mix(node.hash, static_cast<size_t>(node.kind));
  for (const Value& key : node.keys) mix(node.hash, hash_of(key.to_string()));
  if (node.type) mix(node.hash, hash_of(node.type->name()));
  for (const size_t field : node.present) mix(node.hash, hash_of(node.type->fields()[field]));
  for (const TreeSpec& child : node.children) {
    node.num_leaves += child.num_leaves();
    if (child.node_) node.nesting = std::max(node.nesting, child.node_->nesting);
    mix(node.hash, child.hash());
  }
  require(node.nesting < kMostNesting, "a tree spec is nested more than {} deep, as no value can be",
          kMostNesting);
  ++node.nesting;
  return TreeSpec(Ref<const Node>(new Node(std::move(node))));
}

TreeSpec TreeSpec::list(std::vector<TreeSpec> children) {
  Node node;
  node.kind = Kind::kList;
  node.children = std::move(children);
  return make(std::move(node));
}

TreeSpec TreeSpec::tuple(std::vector<TreeSpec> children) {
  Node node;
  node.kind = Kind::kTuple;
  node.children = std::move(children);
  return make(std::move(node));
}

TreeSpec TreeSpec::dict(ValueList keys, std::vector<TreeSpec> children) {
  require(keys.size() == children.size(), "a dictionary's tree spec has {} keys, but {} children",
          keys.size(), children.size());
  Node node;
  node.kind = Kind::kDict;
  node.keys = std::move(keys);
  node.children = std::move(children);
  return make(std::move(node));
}

TreeSpec TreeSpec::record(StructTypeRef type, std::vector<size_t> present, std::vector<TreeSpec> children) {
  require(present.size() == children.size(), "the tree spec of struct {} has {} fields, but {} children",
          type->name(), present.size(), children.size());
  for (size_t i = 0; i < present.size(); ++i)
    require(present[i] < type->fields().size() && (i == 0 || present[i - 1] < present[i]),
            "the tree spec of struct {} names its field {}, of {}, out of order", type->name(), present[i],
            type->fields().size());
  Node node;
  node.kind = type->form() == StructType::Form::kNamedTuple ? Kind::kNamedTuple : Kind::kStruct;
  node.type = std::move(type);
  node.present = std::move(present);
  node.children = std::move(children);
  return make(std::move(node));
}

Kind TreeSpec::kind() const noexcept { return node_ ? node_->kind : Kind::kLeaf; }
size_t TreeSpec::num_leaves() const noexcept { return node_ ? node_->num_leaves : 1; }
size_t TreeSpec::hash() const noexcept { return node_ ? node_->hash : 0; }
std::span<const TreeSpec> TreeSpec::children() const noexcept {
  return node_ ? std::span<const TreeSpec>(node_->children) : std::span<const TreeSpec>();
}
std::span<const size_t> TreeSpec::present_fields() const noexcept {
  return node_ ? std::span<const size_t>(node_->present) : std::span<const size_t>();
}
const ValueList& TreeSpec::keys() const noexcept {
  static const ValueList none;
  return node_ ? node_->keys : none;
}
const StructTypeRef& TreeSpec::struct_type() const noexcept {
  static const StructTypeRef none;
  return node_ ? node_->type : none;
}

PathKey TreeSpec::child_key(size_t i) const {
  invariant(i < children().size(), "a tree spec with {} children has no child {}", children().size(), i);
  if (kind() == Kind::kDict) return {PathKey::Kind::kKey, keys()[i]};
  if (struct_type()) return {PathKey::Kind::kField, struct_type()->fields()[present_fields()[i]]};
  return {PathKey::Kind::kIndex, i};
}

bool TreeSpec::operator==(const TreeSpec& other) const {
  if (node_ == other.node_) return true;
  if (!node_ || !other.node_ || node_->hash != other.node_->hash) return false;
  return has_same_head(*this, other) && node_->children == other.node_->children;
}

namespace {

std::string python_list(const ValueList& keys) { return Value::list(keys).to_string(); }

std::string context_text(const TreeSpec& spec) {
  switch (spec.kind()) {
    case Kind::kDict:
      return python_list(spec.keys());
    case Kind::kNamedTuple:
      return spec.struct_type()->name();
    case Kind::kStruct: {
      const auto [present, absent] = field_names(spec);
      return fmt::format("[{}, {}]", python_list(present), python_list(absent));
    }
    default:
      return "None";
  }
}

std::string type_text(const TreeSpec& spec) {
  switch (spec.kind()) {
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kNamedTuple:
      return "namedtuple";
    default:
      return spec.struct_type()->name();
  }
}

std::string spec_text(const TreeSpec& spec, size_t indent) {
  if (spec.is_leaf()) return "*";
  std::string text = fmt::format("TreeSpec({}, {}, [", type_text(spec), context_text(spec));
  const auto children = spec.children();
  for (size_t i = 0; i < children.size(); ++i) {
    if (i > 0) text += ",\n" + std::string(indent + 2, ' ');
    text += spec_text(children[i], indent + 2);
  }
  return text + "])";
}

// The steps to where a walk stands, kept up to date by the scope of each step.
class Trail {
 public:
  class Step {
   public:
    Step(Trail& trail, PathKey key) : trail_(trail) { trail.path_.push_back(std::move(key)); }
    ~Step() { trail_.path_.pop_back(); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    Trail& trail_;
  };

  const KeyPath& path() const { return path_; }
  std::string text() const { return path_.empty() ? "at the root" : "at " + to_string(path_); }

 private:
  KeyPath path_;
};

TreeSpec flatten(const Value& tree, LeafRule is_leaf, Trail& trail,
                 FunctionRef<void(const Value&, const Trail&)> leaf) {
  std::optional<TreeLevel> level = is_leaf(tree) ? std::nullopt : level_of(tree);
  if (!level) {
    leaf(tree, trail);
    return {};
  }
  std::vector<TreeSpec> children;
  children.reserve(level->children.size());
  for (size_t i = 0; i < level->children.size(); ++i) {
    Trail::Step step(trail, level->head.child_key(i));
    children.push_back(flatten(level->children[i], is_leaf, trail, leaf));
  }
  return with_children(level->head, std::move(children));
}

Value unflatten(std::span<const Value>& leaves, const TreeSpec& spec) {
  if (spec.is_leaf()) {
    Value leaf = leaves.front();
    leaves = leaves.subspan(1);
    return leaf;
  }
  ValueList children;
  children.reserve(spec.children().size());
  for (const TreeSpec& child : spec.children()) children.push_back(unflatten(leaves, child));
  return build_level(spec, std::move(children));
}

std::string first_difference(const TreeSpec& expected, const TreeSpec& got, Trail& trail) {
  if (expected == got) return "";
  if (!has_same_head(expected, got)) return trail.text() + ": " + head_difference(expected, got);
  for (size_t i = 0; i < expected.children().size(); ++i) {
    Trail::Step step(trail, expected.child_key(i));
    std::string found = first_difference(expected.children()[i], got.children()[i], trail);
    if (!found.empty()) return found;
  }
  return "";
}

// The children of `level` in the order of the spec's; an error if they are not those of the spec.
ValueList children_like(const TreeSpec& spec, const Value& tree, const Trail& trail, const char* what) {
  const std::optional<TreeLevel> level = level_of(tree);
  const TreeSpec head = level ? level->head : TreeSpec();
  if (has_same_head(spec, head)) return level->children;
  if (spec.kind() == Kind::kDict && head.kind() == Kind::kDict) {
    ValueList ordered;
    for (const Value& key : spec.keys())
      if (const Value* value = tree.to_dict().find(key)) ordered.push_back(*value);
    if (ordered.size() == spec.keys().size() && ordered.size() == head.keys().size()) return ordered;
  }
  fail("{}{}: {}", what, trail.text(), head_difference(spec, head));
}

void flatten_up_to(const TreeSpec& spec, const Value& tree, Trail& trail, ValueList& parts) {
  if (spec.is_leaf()) {
    parts.push_back(tree);
    return;
  }
  const ValueList children = children_like(spec, tree, trail, "");
  for (size_t i = 0; i < children.size(); ++i) {
    Trail::Step step(trail, spec.child_key(i));
    flatten_up_to(spec.children()[i], children[i], trail, parts);
  }
}

void broadcast(const Value& prefix, const TreeSpec& spec, LeafRule is_leaf, Trail& trail, ValueList& values) {
  if (is_leaf(prefix) || !is_container(prefix)) {
    values.insert(values.end(), spec.num_leaves(), prefix);
    return;
  }
  const ValueList children = children_like(spec, prefix, trail, "the prefix does not fit its tree ");
  for (size_t i = 0; i < children.size(); ++i) {
    Trail::Step step(trail, spec.child_key(i));
    broadcast(children[i], spec.children()[i], is_leaf, trail, values);
  }
}

}  // namespace

std::string TreeSpec::to_string() const { return spec_text(*this, 0); }

std::string difference(const TreeSpec& expected, const TreeSpec& got) {
  Trail trail;
  return first_difference(expected, got, trail);
}

FlatTree tree_flatten(const Value& tree, LeafRule is_leaf) {
  FlatTree flat;
  Trail trail;
  flat.spec =
      flatten(tree, is_leaf, trail, [&](const Value& leaf, const Trail&) { flat.leaves.push_back(leaf); });
  return flat;
}

Value tree_unflatten(std::span<const Value> leaves, const TreeSpec& spec) {
  require(leaves.size() == spec.num_leaves(), "tree_unflatten: the tree has {} leaves, but {} values came",
          spec.num_leaves(), leaves.size());
  return unflatten(leaves, spec);
}

ValueList tree_leaves(const Value& tree, LeafRule is_leaf) { return tree_flatten(tree, is_leaf).leaves; }
TreeSpec tree_structure(const Value& tree, LeafRule is_leaf) { return tree_flatten(tree, is_leaf).spec; }

std::vector<PathLeaf> tree_flatten_with_path(const Value& tree, LeafRule is_leaf) {
  std::vector<PathLeaf> leaves;
  Trail trail;
  flatten(tree, is_leaf, trail,
          [&](const Value& leaf, const Trail& here) { leaves.push_back({here.path(), leaf}); });
  return leaves;
}

Value tree_map(FunctionRef<Value(const Value&)> f, const Value& tree, LeafRule is_leaf) {
  FlatTree flat = tree_flatten(tree, is_leaf);
  for (Value& leaf : flat.leaves) leaf = f(leaf);
  return tree_unflatten(flat.leaves, flat.spec);
}

Value tree_map(FunctionRef<Value(const Value&, const Value&)> f, const Value& tree, const Value& other,
               LeafRule is_leaf) {
  FlatTree flat = tree_flatten(tree, is_leaf);
  const ValueList others = flatten_up_to(flat.spec, other);
  for (size_t i = 0; i < others.size(); ++i) flat.leaves[i] = f(flat.leaves[i], others[i]);
  return tree_unflatten(flat.leaves, flat.spec);
}

Value tree_map_only(Value::Kind kind, FunctionRef<Value(const Value&)> f, const Value& tree) {
  return tree_map([&](const Value& leaf) { return leaf.kind() == kind ? f(leaf) : leaf; }, tree);
}

Value tree_map_with_path(FunctionRef<Value(const KeyPath&, const Value&)> f, const Value& tree,
                         LeafRule is_leaf) {
  ValueList leaves;
  Trail trail;
  const TreeSpec spec = flatten(tree, is_leaf, trail, [&](const Value& leaf, const Trail& here) {
    leaves.push_back(f(here.path(), leaf));
  });
  return tree_unflatten(leaves, spec);
}

ValueList flatten_up_to(const TreeSpec& spec, const Value& tree) {
  ValueList parts;
  Trail trail;
  flatten_up_to(spec, tree, trail, parts);
  return parts;
}

ValueList broadcast_prefix(const Value& prefix, const TreeSpec& spec, LeafRule is_leaf) {
  ValueList values;
  Trail trail;
  broadcast(prefix, spec, is_leaf, trail, values);
  return values;
}

}  // namespace weft
