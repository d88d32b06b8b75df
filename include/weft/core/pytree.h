#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/core/struct.h"
#include "weft/core/value.h"

namespace weft {

// A tree of containers with values at its leaves. Lists, tuples, dictionaries and registered structs are
// containers, in any nesting; everything else, None too, is a leaf. Leaves come in the order they are
// written.

// One step from a container to something in it, and the steps from a root: `['a'][0].field`.
struct PathKey {
  enum class Kind : uint8_t { kIndex, kKey, kField };
  Kind kind;
  Value key;  // the position, the dictionary's key, or the field's name
  bool operator==(const PathKey&) const = default;
};
using KeyPath = std::vector<PathKey>;
std::string to_string(const KeyPath& path);

// What is left of a tree without its leaves: small, immutable, reference-counted. Two are equal when they
// describe the same values: kinds, dictionary keys with their order, struct names and fields, children.
class TreeSpec {
 public:
  enum class Kind : uint8_t { kLeaf, kList, kTuple, kDict, kNamedTuple, kStruct };

  TreeSpec() noexcept = default;  // a leaf
  static TreeSpec list(std::vector<TreeSpec> children);
  static TreeSpec tuple(std::vector<TreeSpec> children);
  static TreeSpec dict(ValueList keys, std::vector<TreeSpec> children);
  // One child for every position in `present`, which ascends; the other fields are None.
  static TreeSpec record(StructTypeRef type, std::vector<size_t> present, std::vector<TreeSpec> children);

  Kind kind() const noexcept;
  bool is_leaf() const noexcept { return !node_; }
  size_t num_leaves() const noexcept;
  std::span<const TreeSpec> children() const noexcept;
  // Of a dictionary; empty for others.
  const ValueList& keys() const noexcept;
  // Of a struct or a named tuple; null for others.
  const StructTypeRef& struct_type() const noexcept;
  std::span<const size_t> present_fields() const noexcept;
  // How the container's i-th child is reached.
  PathKey child_key(size_t i) const;

  bool operator==(const TreeSpec& other) const;
  size_t hash() const noexcept;
  // PyTorch's layout: `TreeSpec(list, None, [*,\n  *])`, or `*` for a leaf.
  std::string to_string() const;

  // The text that PyTorch's `treespec_dumps` writes (protocol 1) and `treespec_loads` reads. Container types
  // that weft has no value for (OrderedDict, defaultdict, deque, torch.Size, ...) are read as their plain
  // relatives and written back as what they were.
  std::string to_json() const;
  // A FormatError that names `source` for anything else. Named tuples are stored without their fields: they
  // are looked up in `named_tuples`, then among the registered structs.
  static TreeSpec from_json(std::string_view text, std::string_view source = "tree spec",
                            std::span<const StructTypeRef> named_tuples = {});

 private:
  friend class TreeSpecJson;
  struct Node;
  explicit TreeSpec(Ref<const Node> node) noexcept;
  static TreeSpec make(Node node);

  Ref<const Node> node_;
};

struct TreeSpec::Node : RefCounted {
  Kind kind = Kind::kList;
  ValueList keys;
  StructTypeRef type;
  std::vector<size_t> present;
  std::vector<TreeSpec> children;
  // A file's own container type and its context, as JSON; empty for the types that weft writes itself.
  std::string file_type, file_context;
  size_t num_leaves = 0, hash = 0;
  uint32_t nesting = 0;  // as of the values it describes
};

// Says where and how two trees differ: `at ['a'][1]: expected a list of 2, but got a tuple of 3`. Empty if
// they are equal.
std::string difference(const TreeSpec& expected, const TreeSpec& got);

// Containers for which it is true are leaves. By default none are.
using LeafRule = FunctionRef<bool(const Value&)>;
bool no_container(const Value&);

struct FlatTree {
  ValueList leaves;
  TreeSpec spec;
};
struct PathLeaf {
  KeyPath path;
  Value value;
};

FlatTree tree_flatten(const Value& tree, LeafRule is_leaf = no_container);
// An error if the number of leaves is not the spec's.
Value tree_unflatten(std::span<const Value> leaves, const TreeSpec& spec);
ValueList tree_leaves(const Value& tree, LeafRule is_leaf = no_container);
TreeSpec tree_structure(const Value& tree, LeafRule is_leaf = no_container);
std::vector<PathLeaf> tree_flatten_with_path(const Value& tree, LeafRule is_leaf = no_container);

Value tree_map(FunctionRef<Value(const Value&)> f, const Value& tree, LeafRule is_leaf = no_container);
// Walks both; where the first has a leaf, `f` gets whatever the second has there.
Value tree_map(FunctionRef<Value(const Value&, const Value&)> f, const Value& tree, const Value& other,
               LeafRule is_leaf = no_container);
// `f` for the leaves of one kind; the others stay: tree_map_only(Value::Kind::kTensor, to_meta, inputs).
Value tree_map_only(Value::Kind kind, FunctionRef<Value(const Value&)> f, const Value& tree);
Value tree_map_with_path(FunctionRef<Value(const KeyPath&, const Value&)> f, const Value& tree,
                         LeafRule is_leaf = no_container);

// The parts of `tree` that stand at the leaves of `spec`. Dictionaries match by key, in any order. An error
// that says where they differ if `tree` has another structure above those leaves.
ValueList flatten_up_to(const TreeSpec& spec, const Value& tree);
// One value for every leaf of `spec`, from a tree that may stop above its leaves: each value of `prefix`
// stands for all leaves of its subtree. `{0, None}` for two arguments is 0 for all of the first, None for
// the second's.
ValueList broadcast_prefix(const Value& prefix, const TreeSpec& spec, LeafRule is_leaf = no_container);

}  // namespace weft

template <>
struct std::hash<weft::TreeSpec> {
  size_t operator()(const weft::TreeSpec& spec) const noexcept { return spec.hash(); }
};
