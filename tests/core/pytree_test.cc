#include "weft/core/pytree.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_set>

#include "base/json.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace weft {
namespace {

using Kind = TreeSpec::Kind;

Value list(ValueList elements) { return Value::list(std::move(elements)); }
Value tuple(ValueList elements) { return Value::tuple(std::move(elements)); }

StructTypeRef pair_type() { return register_struct("test.Pair", {"first", "second"}); }
StructTypeRef corner_type() {
  return register_struct("test.Corner", {"x", "y"}, StructType::Form::kNamedTuple);
}

Value sample_tree() {
  return Dict{{"b", list({1, make_struct(pair_type(), {2, tuple({3})})})},
              {3, make_struct(corner_type(), {4, {}})}};
}

std::vector<std::string> paths_of(const Value& tree) {
  std::vector<std::string> paths;
  for (const PathLeaf& leaf : tree_flatten_with_path(tree)) paths.push_back(to_string(leaf.path));
  return paths;
}

TEST(PyTree, LeavesComeInTheOrderTheyAreWritten) {
  const FlatTree flat = tree_flatten(sample_tree());
  EXPECT_EQ(flat.leaves, (ValueList{1, 2, 3, 4, {}}));
  EXPECT_EQ(flat.spec.num_leaves(), 5u);
  EXPECT_EQ(flat.spec.kind(), Kind::kDict);
  EXPECT_EQ(flat.spec.keys(), (ValueList{"b", 3}));
  EXPECT_EQ(tree_unflatten(flat.leaves, flat.spec), sample_tree());
}

TEST(PyTree, ALeafIsATree) {
  for (const Value& leaf : ValueList{1, {}, "text", 2.5, ones({2})}) {
    const FlatTree flat = tree_flatten(leaf);
    EXPECT_TRUE(flat.spec.is_leaf());
    EXPECT_EQ(flat.leaves, ValueList{leaf});
    EXPECT_EQ(tree_unflatten(flat.leaves, flat.spec), leaf);
  }
}

TEST(PyTree, EmptyContainersHaveNoLeaves) {
  for (const Value& empty : ValueList{list({}), tuple({}), Dict(), tuple({list({}), Dict()})}) {
    const FlatTree flat = tree_flatten(empty);
    EXPECT_TRUE(flat.leaves.empty());
    EXPECT_EQ(tree_unflatten({}, flat.spec), empty);
  }
  EXPECT_NE(tree_structure(list({})), tree_structure(tuple({})));
}

TEST(PyTree, PathsReadLikePyTorchs) {
  EXPECT_EQ(paths_of(sample_tree()),
            (std::vector<std::string>{"['b'][0]", "['b'][1].first", "['b'][1].second[0]", "[3].x", "[3].y"}));
  EXPECT_EQ(paths_of(1), std::vector<std::string>{""});
  EXPECT_EQ(paths_of(Dict{{"it's", 1}}), std::vector<std::string>{"[\"it's\"]"});
}

TEST(PyTree, StructFieldsThatAreNoneBelongToTheStructure) {
  const Value half = make_struct(pair_type(), {{}, 7});
  const FlatTree flat = tree_flatten(half);
  EXPECT_EQ(flat.leaves, ValueList{7});
  EXPECT_EQ(tree_unflatten(flat.leaves, flat.spec), half);
  EXPECT_EQ(paths_of(half), std::vector<std::string>{".second"});
  EXPECT_EQ(
      difference(tree_structure(make_struct(pair_type(), {1, 7})), flat.spec),
      "at the root: expected a struct test.Pair with ['first', 'second'] set, but got it with ['second']");
}

TEST(PyTree, ARuleMakesContainersLeaves) {
  auto is_tuple = [](const Value& value) { return value.is_tuple(); };
  const FlatTree flat = tree_flatten(list({1, tuple({2, 3}), list({tuple({})})}), is_tuple);
  EXPECT_EQ(flat.leaves, (ValueList{1, tuple({2, 3}), tuple({})}));
}

TEST(PyTree, MapKeepsTheStructure) {
  auto twice = [](const Value& leaf) -> Value { return leaf.to_int() * 2; };
  EXPECT_EQ(tree_map(twice, Dict{{"a", tuple({1, 2})}, {"b", 3}}),
            Value(Dict{{"a", tuple({2, 4})}, {"b", 6}}));
  EXPECT_EQ(tree_map_only(Value::Kind::kInt, twice, list({1, "x", {}, 2.5})), list({2, "x", {}, 2.5}));
  EXPECT_EQ(tree_map_with_path([](const KeyPath& path, const Value&) -> Value { return to_string(path); },
                               list({1, tuple({2})})),
            list({"[0]", tuple({"[1][0]"})}));
}

TEST(PyTree, MapOverTwoTreesFollowsTheFirst) {
  auto both = [](const Value& a, const Value& b) { return tuple({a, b}); };
  EXPECT_EQ(tree_map(both, list({1, 2}), list({3, list({4})})), list({tuple({1, 3}), tuple({2, list({4})})}));
  EXPECT_EQ(tree_map(both, Dict{{"a", 1}, {"b", 2}}, Dict{{"b", 3}, {"a", 4}}),
            Value(Dict{{"a", tuple({1, 4})}, {"b", tuple({2, 3})}}));
  EXPECT_ERROR(tree_map(both, list({1, 2}), list({1, 2, 3})),
               "at the root: expected a list of 2, but got a list of 3");
  EXPECT_ERROR(tree_map(both, list({1, list({2})}), list({1, tuple({2})})),
               "at [1]: expected a list of 1, but got a tuple of 1");
  EXPECT_ERROR(tree_map(both, list({Dict{{"a", 1}}}), list({Dict{{"b", 1}}})),
               "at [0]: the dictionary's keys differ; missing: ['a']; not expected: ['b']");
  EXPECT_ERROR(tree_map(both, list({list({})}), list({5})), "at [0]: expected a list of 0, but got a leaf");
}

TEST(PyTree, APrefixStandsForAllLeavesBelow) {
  const TreeSpec spec = tree_structure(tuple({list({1, 2}), Dict{{"a", 3}, {"b", 4}}}));
  EXPECT_EQ(broadcast_prefix(0, spec), (ValueList{0, 0, 0, 0}));
  EXPECT_EQ(broadcast_prefix(tuple({0, {}}), spec), (ValueList{0, 0, {}, {}}));
  EXPECT_EQ(broadcast_prefix(tuple({list({0, 1}), Dict{{"b", 5}, {"a", 6}}}), spec), (ValueList{0, 1, 6, 5}));
  EXPECT_EQ(broadcast_prefix(tuple({7, list({8})}), spec, [](const Value& value) { return value.is_list(); }),
            (ValueList{7, 7, list({8}), list({8})}));
  EXPECT_ERROR(broadcast_prefix(tuple({list({0}), 0}), spec),
               "the prefix does not fit its tree at [0]: expected a list of 2, but got a list of 1");
  EXPECT_ERROR(broadcast_prefix(tuple({0}), spec),
               "at the root: expected a tuple of 2, but got a tuple of 1");
  EXPECT_ERROR(broadcast_prefix(tuple({list({0, list({1})}), 0}), spec),
               "at [0][1]: expected a leaf, but got a list of 1");
}

TEST(PyTree, DifferencesNameThePath) {
  auto between = [](const Value& a, const Value& b) {
    return difference(tree_structure(a), tree_structure(b));
  };
  EXPECT_EQ(between(list({1, tuple({2})}), list({5, tuple({6})})), "");
  EXPECT_EQ(between(Dict{{"a", list({1, list({1, 2})})}}, Dict{{"a", list({1, tuple({1, 2, 3})})}}),
            "at ['a'][1]: expected a list of 2, but got a tuple of 3");
  EXPECT_EQ(between(Dict{{"a", 1}, {"b", 2}}, Dict{{"b", 1}, {"a", 2}}),
            "at the root: expected the keys in the order ['a', 'b'], but got ['b', 'a']");
  EXPECT_EQ(between(list({make_struct(pair_type(), {1, 2})}), list({make_struct(corner_type(), {1, 2})})),
            "at [0]: expected a struct test.Pair, but got a named tuple test.Corner");
}

TEST(PyTree, WrongNumberOfLeavesIsAnError) {
  EXPECT_ERROR(tree_unflatten(ValueList{1}, tree_structure(list({1, 2}))),
               "tree_unflatten: the tree has 2 leaves, but 1 values came");
}

TEST(PyTree, TakesTheDeepestValuesAndNoDeeperSpecs) {
  Value deep = 1;
  for (uint32_t i = 0; i < kMostNesting; ++i) deep = i % 2 ? tuple({deep}) : Value(Dict{{"k", deep}});
  const FlatTree flat = tree_flatten(deep);
  EXPECT_EQ(tree_unflatten(flat.leaves, flat.spec), deep);
  EXPECT_EQ(difference(flat.spec, tree_structure(deep)), "");
  EXPECT_EQ(tree_flatten_with_path(deep).at(0).path.size(), kMostNesting);
  EXPECT_USER_ERROR(TreeSpec::list({flat.spec}), "a tree spec is nested more than 512 deep");
  EXPECT_EQ(TreeSpec::from_json(flat.spec.to_json()), flat.spec);
}

TEST(PyTree, TextOfADeeperSpecIsAFormatError) {
  std::string text = "[1, ";
  for (int i = 0; i < 100'000; ++i)
    text += R"({"type": "builtins.list", "context": "null", "children_spec": [)";
  for (int i = 0; i < 100'000; ++i) text += "]}";
  EXPECT_ERROR_TYPE(FormatError, TreeSpec::from_json(text + "]"), "nested more than 1027 deep");
}

TEST(PyTree, EqualSpecsHashEqual) {
  std::unordered_set<TreeSpec> specs;
  for (int repeat = 0; repeat < 2; ++repeat) {
    specs.insert(tree_structure(sample_tree()));
    specs.insert(tree_structure(list({1})));
    specs.insert(tree_structure(tuple({1})));
    specs.insert(tree_structure(Dict{{"a", 1}}));
    specs.insert(tree_structure(Dict{{"b", 1}}));
    specs.insert(TreeSpec());
  }
  EXPECT_EQ(specs.size(), 6u);
}

TEST(PyTree, SpecsPrintInPyTorchsLayout) {
  EXPECT_EQ(TreeSpec().to_string(), "*");
  EXPECT_EQ(tree_structure(tuple({1, tuple({2}), list({})})).to_string(),
            "TreeSpec(tuple, None, [*,\n  TreeSpec(tuple, None, [*]),\n  TreeSpec(list, None, [])])");
  EXPECT_EQ(
      tree_structure(Dict{{"d", list({make_struct(pair_type(), {1, {}})})}}).to_string(),
      "TreeSpec(dict, ['d'], [TreeSpec(list, None, [TreeSpec(test.Pair, [['first'], ['second']], [*])])])");
}

constexpr const char* kLeafJson = R"({"type": null, "context": null, "children_spec": []})";

struct JsonCase {
  Value tree;
  std::string json;  // as PyTorch 2.13 writes it, with L for a leaf
};

std::string with_leaves(std::string text) {
  for (size_t at = 0; (at = text.find('L', at)) != text.npos; at += std::string_view(kLeafJson).size())
    text.replace(at, 1, kLeafJson);
  return text;
}

std::vector<JsonCase> json_cases() {
  return {
      {1, "[1, L]"},
      {Value(), "[1, L]"},
      {list({1, 2}), R"([1, {"type": "builtins.list", "context": "null", "children_spec": [L, L]}])"},
      {tuple({tuple({1}), list({})}),
       R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": "builtins.tuple", "context": "null", "children_spec": [L]}, {"type": "builtins.list", "context": "null", "children_spec": []}]}])"},
      {Dict{{"b", 1}, {"a", 2}},
       R"([1, {"type": "builtins.dict", "context": "[\"b\", \"a\"]", "children_spec": [L, L]}])"},
      {Dict{{true, 1}, {2.5, 3}, {Value(), 4}, {tuple({1, 2}), 5}},
       R"([1, {"type": "builtins.dict", "context": "[true, 2.5, null, [1, 2]]", "children_spec": [L, L, L, L]}])"},
      {Dict(), R"([1, {"type": "builtins.dict", "context": "[]", "children_spec": []}])"},
      {make_struct(pair_type(), {{}, 1}),
       R"([1, {"type": "test.Pair", "context": "[[\"second\"], [\"first\"]]", "children_spec": [L]}])"},
      {make_struct(corner_type(), {1, {}}),
       R"([1, {"type": "collections.namedtuple", "context": "test.Corner", "children_spec": [L, L]}])"},
  };
}

// The same JSON, also inside the strings that are contexts.
Json without_spaces_in_contexts(Json json) {
  if (json.is_array())
    for (Json& element : json.as_array()) element = without_spaces_in_contexts(std::move(element));
  if (!json.is_object()) return json;
  if (json.at("context").is_string() && json.at("type").as_string() != "collections.namedtuple")
    json["context"] = Json::parse(json.at("context").as_string()).to_text();
  json["children_spec"] = without_spaces_in_contexts(json.at("children_spec"));
  return json;
}

TEST(PyTreeJson, IsWhatPyTorchWrites) {
  for (const auto& [tree, expected] : json_cases()) {
    const std::string text = with_leaves(expected);
    const TreeSpec spec = tree_structure(tree);
    EXPECT_EQ(Json::parse(spec.to_json()), without_spaces_in_contexts(Json::parse(text))) << tree.to_string();
    EXPECT_EQ(TreeSpec::from_json(text), spec) << tree.to_string();
  }
}

TEST(PyTreeJson, ForeignContainersStayWhatTheyWere) {
  for (
      const char* json : {
          R"([1, {"type": "collections.OrderedDict", "context": "[\"b\", \"a\"]", "children_spec": [L, L]}])",
          R"([1, {"type": "collections.deque", "context": "3", "children_spec": [L, L]}])",
          R"([1, {"type": "torch.Size", "context": "null", "children_spec": [L, L]}])",
          R"([1, {"type": "torch.fx.immutable_collections.immutable_list", "context": "null", "children_spec": [L]}])",
          R"([1, {"type": "collections.defaultdict", "context": {"default_factory_module": "builtins", "default_factory_name": "list", "dict_context": ["a"]}, "children_spec": [L]}])",
      }) {
    const std::string text = with_leaves(json);
    EXPECT_EQ(Json::parse(TreeSpec::from_json(text).to_json()), Json::parse(text)) << text;
  }
  const TreeSpec ordered = TreeSpec::from_json(with_leaves(
      R"([1, {"type": "collections.OrderedDict", "context": "[\"b\", \"a\"]", "children_spec": [L, L]}])"));
  EXPECT_EQ(ordered, tree_structure(Dict{{"b", 1}, {"a", 2}}));
  EXPECT_EQ(tree_unflatten(ValueList{1, 2}, ordered), Value(Dict{{"b", 1}, {"a", 2}}));
}

TEST(PyTreeJson, UnregisteredStructsDescribeThemselves) {
  const TreeSpec spec = TreeSpec::from_json(
      with_leaves(R"([1, {"type": "other.Thing", "context": "[[\"a\"], [\"b\"]]", "children_spec": [L]}])"));
  EXPECT_EQ(tree_unflatten(ValueList{5}, spec).to_string(), "other.Thing(a=5, b=None)");
}

TEST(PyTreeJson, NamedTuplesTakeTheirFieldsFromTheReader) {
  const std::string text = with_leaves(
      R"([1, {"type": "collections.namedtuple", "context": "reference.Point", "children_spec": [L, L]}])");
  EXPECT_ERROR_TYPE(FormatError, TreeSpec::from_json(text, "in_spec"),
                    "in_spec: the fields of named tuple reference.Point are not known; register_struct(");
  const std::vector<StructTypeRef> known = {make_ref<StructType>(
      "reference.Point", std::vector<std::string>{"x", "y"}, StructType::Form::kNamedTuple)};
  const TreeSpec spec = TreeSpec::from_json(text, "in_spec", known);
  EXPECT_EQ(tree_unflatten(ValueList{1, 2}, spec).to_string(), "reference.Point(x=1, y=2)");
  EXPECT_EQ(Json::parse(spec.to_json()), Json::parse(text));
}

TEST(PyTreeJson, BadTextIsAFormatErrorThatSaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"[1", "line 1"},
      {"{}", "expected [protocol, spec]"},
      {"[1]", "expected [protocol, spec]"},
      {"[2, L]", "protocol 2 is unknown; weft reads protocol 1"},
      {"[1, null]", "a node has no \"type\""},
      {R"([1, {"type": null, "children_spec": []}])", "a node has no \"context\""},
      {R"([1, {"type": null, "context": null, "children_spec": [L]}])", "a leaf has children"},
      {R"([1, {"type": null, "context": null, "children_spec": 3}])", "\"children_spec\" is no list"},
      {R"([1, {"type": 7, "context": null, "children_spec": []}])", "\"type\" is no string"},
      {R"([1, {"type": "foo.Bar", "context": "null", "children_spec": []}])",
       "unknown container type foo.Bar"},
      {R"([1, {"type": "builtins.dict", "context": null, "children_spec": []}])",
       "context of builtins.dict is no string"},
      {R"([1, {"type": "builtins.dict", "context": "[", "children_spec": []}])",
       "spec: context of builtins.dict"},
      {R"([1, {"type": "builtins.dict", "context": "[\"a\"]", "children_spec": []}])",
       "1 keys or fields, but 0 children"},
      {R"([1, {"type": "builtins.dict", "context": "[1, 1]", "children_spec": [L, L]}])",
       "has the key 1 twice"},
      {R"([1, {"type": "builtins.dict", "context": "[{}]", "children_spec": [L]}])", "key is an object"},
      {R"([1, {"type": "T", "context": "[[\"a\", \"a\"], []]", "children_spec": [L, L]}])",
       "two fields named a"},
      {R"([1, {"type": "T", "context": "[[1], []]", "children_spec": [L]}])", "whose name is no string"},
      {R"([1, {"type": "test.Pair", "context": "[[\"z\"], []]", "children_spec": [L]}])",
       "other fields than the registered"},
  };
  pair_type();
  for (const auto& [text, words] : cases)
    EXPECT_ERROR_TYPE(FormatError, TreeSpec::from_json(with_leaves(text), "spec"), words) << text;
  std::string deep = kLeafJson;
  for (int i = 0; i < 2000; ++i)
    deep = R"({"type": "builtins.list", "context": "null", "children_spec": [)" + deep + "]}";
  EXPECT_ERROR_TYPE(FormatError, TreeSpec::from_json("[1, " + deep + "]"), "nested more than");
}

TEST(PyTreeJson, KeysThatJsonCannotHoldAreAnError) {
  EXPECT_ERROR(tree_structure(Dict{{ones({2}), 1}}).to_json(), "cannot be written as JSON");
}

class RandomTree {
 public:
  explicit RandomTree(unsigned seed) : random_(seed) {}

  Value make(int depth) {
    const int count = static_cast<int>(random_() % 4);
    switch (random_() % (depth > 0 ? 8 : 3)) {
      case 0:
        return static_cast<int64_t>(random_() % 100);
      case 1:
        return "text";
      case 2:
        return Value();
      case 3:
        return list(children(count, depth));
      case 4:
        return tuple(children(count, depth));
      case 5:
        return make_struct(pair_type(), children(2, depth));
      case 6:
        return make_struct(corner_type(), children(2, depth));
      default:
        return dictionary(count, depth);
    }
  }

 private:
  ValueList children(int count, int depth) {
    ValueList values;
    for (int i = 0; i < count; ++i) values.push_back(make(depth - 1));
    return values;
  }
  Value dictionary(int count, int depth) {
    Dict dict;
    for (int i = 0; i < count; ++i) {
      const int64_t key = static_cast<int64_t>(random_() % 9);
      dict.set(random_() % 2 ? Value(key) : Value("key" + std::to_string(key)), make(depth - 1));
    }
    return dict;
  }

  std::mt19937 random_;
};

TEST(PyTreeProperty, RandomTreesGoThroughFlatteningAndJson) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Value tree = RandomTree(seed).make(4), other = RandomTree(seed + 10'000).make(4);
    const FlatTree flat = tree_flatten(tree);
    ASSERT_EQ(tree_unflatten(flat.leaves, flat.spec), tree) << tree.to_string();
    ASSERT_EQ(flat.leaves.size(), flat.spec.num_leaves());
    ASSERT_EQ(flatten_up_to(flat.spec, tree), flat.leaves);
    ASSERT_EQ(broadcast_prefix(tree, flat.spec), flat.leaves);
    ASSERT_EQ(broadcast_prefix("all", flat.spec), ValueList(flat.leaves.size(), "all"));
    const TreeSpec read = TreeSpec::from_json(flat.spec.to_json());
    ASSERT_EQ(read, flat.spec) << tree.to_string();
    ASSERT_EQ(read.hash(), flat.spec.hash());
    ASSERT_EQ(read.to_json(), flat.spec.to_json());
    const TreeSpec another = tree_structure(other);
    ASSERT_EQ(difference(flat.spec, another).empty(), flat.spec == another);
    ASSERT_EQ(flat.spec == another, flat.spec.to_json() == another.to_json());
  }
}

}  // namespace
}  // namespace weft
