#include "graph/node_table.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

#include "weft/graph/graph.h"

namespace weft {
namespace {

TEST(NumberedName, HasABaseAndANumber) {
  auto parts = [](std::string_view name) {
    const NumberedName numbered(name);
    return std::tuple(numbered.base, numbered.number.value_or(-1), numbered.is_plain);
  };
  EXPECT_EQ(parts("add_12"), std::tuple("add", 12, true));
  EXPECT_EQ(parts("add_0"), std::tuple("add", 0, true));
  EXPECT_EQ(parts("add_012"), std::tuple("add", 12, false));
  EXPECT_EQ(parts("add"), std::tuple("add", -1, true));
  EXPECT_EQ(parts("add_"), std::tuple("add_", -1, true));
  EXPECT_EQ(parts("add12"), std::tuple("add12", -1, true));
  EXPECT_EQ(parts("_12"), std::tuple("_12", -1, true));
  EXPECT_EQ(parts("add_1_2"), std::tuple("add_1", 2, true));
  EXPECT_EQ(parts("add_123456789012345678"), std::tuple("add_123456789012345678", -1, true));
}

// As a map, for names in order, out of order, far apart and with zeros before their numbers.
TEST(NodeTable, FindsWhatWasAdded) {
  Graph graph;
  Node& x = graph.placeholder("x");
  std::mt19937 random(3);
  NodeTable table;
  std::map<std::string, Node*> expected;
  std::deque<std::string> names;  // which the table looks at
  const char* bases[] = {"add", "mul", "a_1", "_"};
  for (int i = 0; i < 3000; ++i) {
    std::string name = bases[random() % 4];
    switch (random() % 5) {
      case 0:
        break;
      case 1:
        name += "_0" + std::to_string(random() % 50);
        break;
      case 2:
        name += "_" + std::to_string(random());
        break;
      default:
        name += "_" + std::to_string(random() % (1 + i));
    }
    names.push_back(name);
    Node& node = i % 50 == 0 ? graph.call_function("aten::relu", {value_of(x)}) : x;
    EXPECT_EQ(table.find(name), expected.contains(name) ? expected[name] : nullptr) << name;
    EXPECT_EQ(table.add(names.back(), node), expected.emplace(name, &node).second) << name;
  }
  for (const auto& [name, node] : expected) EXPECT_EQ(table.find(name), node) << name;
}

}  // namespace
}  // namespace weft
