// The walk over what Values hold, and dictionaries, whose keys are found by hash.
#include "weft/core/value_walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "weft/core/from_data.h"
#include "weft/core/struct.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

// [1, (2, {"k": Walked(a=3, b=[4])})]
Value walked_tree() {
  Value record = make_struct(register_struct("test.Walked", {"a", "b"}), {3, Value::list({4})});
  return Value::list({1, Value::tuple({2, Dict{{"k", record}}})});
}

std::vector<int64_t> walked_integers(const Value& value) {
  std::vector<int64_t> found;
  for_each_leaf(value, [&](const Value& leaf) { found.push_back(leaf.to_int()); });
  return found;
}

TEST(ValueWalk, EntersEveryContainerInOrder) {
  EXPECT_THAT(walked_integers(walked_tree()), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(walked_integers(7), ElementsAre(7));
  EXPECT_THAT(walked_integers(Value::list({})), ElementsAre());
}

TEST(ValueWalk, MapsLeavesAndKeepsContainers) {
  Value tree = walked_tree();
  Value mapped = map_leaves(tree, [](const Value& leaf) { return Value(leaf.to_int() * 10); });
  EXPECT_EQ(mapped.to_string(), "[10, (20, {'k': test.Walked(a=30, b=[40])})]");
  EXPECT_EQ(tree, walked_tree());
  EXPECT_EQ(map_leaves(tree, [](const Value& leaf) { return leaf; }), tree);
  Value empty = Value::tuple({Value::list({}), Dict()});
  EXPECT_EQ(map_leaves(empty, [](const Value& leaf) { return leaf; }), empty);
}

TEST(ValueWalk, FindsTensorsInsideStructs) {
  Tensor x = from_data<float>({1, 2}), y = from_data<float>({3});
  Value record = make_struct(register_struct("test.Walked", {"a", "b"}), {x, Value::list({y, 5})});
  std::vector<Tensor> found;
  for_each_tensor(record, [&](const Tensor& tensor) { found.push_back(tensor); });
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].is_same(x) && found[1].is_same(y));
  Value swapped = map_tensors(record, [&](const Tensor& t) { return Value(t.is_same(x) ? y : x); });
  EXPECT_TRUE(struct_in(swapped)->field("a").tensor_ref().is_same(y));
  EXPECT_EQ(struct_in(swapped)->field("b").elements()[1], Value(5));
}

TEST(ValueWalk, StructsAreToldApartFromOtherObjects) {
  EXPECT_EQ(struct_in(3), nullptr);
  EXPECT_EQ(struct_in(Value::list({})), nullptr);
  EXPECT_NE(struct_in(make_struct(register_struct("test.Walked", {"a", "b"}), {1, 2})), nullptr);
}

// --- dictionaries ----------------------------------------------------------------------------------------

TEST(DictKeys, BehaveAsAListOfEntriesWould) {
  std::mt19937 random(7);
  auto key = [&]() -> Value {
    const auto n = static_cast<int64_t>(random() % 60);
    switch (random() % 4) {
      case 0:
        return n;
      case 1:
        return static_cast<double>(n) / 2;
      case 2:
        return n % 2 == 0;
      default:
        return fmt::format("k{}", n);
    }
  };
  Dict dict;
  std::vector<std::pair<Value, Value>> list;
  auto in_list = [&](const Value& k) {
    return std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == k; });
  };
  for (int64_t step = 0; step < 4000; ++step) {
    const Value k = key();
    auto at = in_list(k);
    if (random() % 3 == 0) {
      EXPECT_EQ(dict.erase(k), at != list.end());
      if (at != list.end()) list.erase(at);
    } else {
      dict.set(k, step);
      if (at != list.end()) at->second = step;
      else list.emplace_back(k, step);
    }
    const Value other = key();
    const Value* found = dict.find(other);
    ASSERT_EQ(found != nullptr, in_list(other) != list.end());
    if (found) {
      ASSERT_EQ(*found, in_list(other)->second);
    }
  }
  EXPECT_TRUE(std::equal(dict.begin(), dict.end(), list.begin(), list.end()));
  const Dict copy = dict;
  EXPECT_EQ(copy, dict);
}

TEST(DictKeys, EqualNumbersOfAKindAreOneKey) {
  Dict dict;
  for (int64_t i = 0; i < 20; ++i) dict.set(i, i);
  dict.set(0.0, "zero");
  dict.set(-0.0, "the same");
  EXPECT_EQ(dict.size(), 21u);
  EXPECT_EQ(dict.at(0.0), Value("the same"));
  EXPECT_EQ(dict.at(0), Value(0));
  EXPECT_FALSE(dict.contains(true));
}

TEST(DictKeys, TensorsAreKeysByIdentity) {
  std::vector<Tensor> tensors;
  Dict dict;
  for (int64_t i = 0; i < 30; ++i) {
    tensors.push_back(from_data<float>({1}));
    dict.set(tensors.back(), i);
  }
  for (int64_t i = 0; i < 30; ++i) EXPECT_EQ(dict.at(tensors[static_cast<size_t>(i)]), Value(i));
  EXPECT_FALSE(dict.contains(from_data<float>({1})));
}

}  // namespace
}  // namespace weft
