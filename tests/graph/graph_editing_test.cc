// Graphs while they are edited: nodes that use later ones, outputs without a value, methods that write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "weft/graph/graph_module.h"
#include "weft/graph/parse.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

Graph chain() {
  return parse_code(
      "def forward(self, x):\n    a = torch.ops.aten.relu.default(x)\n"
      "    b = torch.ops.aten.neg.default(a)\n    return b\n");
}

Graph out_of_order() {
  Graph graph = chain();
  graph.find("b")->move_before(*graph.find("a"));
  return graph;
}

TEST(GraphCopy, OfAGraphThatIsOutOfOrderIsTheSame) {
  Graph graph = out_of_order();
  Graph copy = graph.copy();
  EXPECT_EQ(copy.to_string(), graph.to_string());
  EXPECT_EQ(copy.find("b")->inputs()[0], copy.find("a"));
  EXPECT_TRUE(copy.find("a")->users().contains(copy.find("b")));
  EXPECT_ERROR(copy.lint(), "node 'b' uses 'a' before it is defined");
  copy.legalize();
  copy.lint();
  EXPECT_EQ(copy.to_string(), chain().to_string());
  EXPECT_FALSE(copy.eliminate_dead_code());
}

TEST(GraphCopy, KeepsACycleAndNestedLaterUses) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& first = graph.call_function("aten::cat", {Value::list({value_of(x)})});
  Node& second = graph.call_method("foo", {value_of(first)}, {{"k", Dict{{"a", value_of(x)}}}});
  graph.output(value_of(second));
  first.set_args({Value::list({value_of(x), value_of(second)})});
  first.set_kwargs({{"dim", value_of(second)}});
  Graph copy = graph.copy();
  EXPECT_EQ(copy.to_string(), graph.to_string());
  EXPECT_ERROR(copy.legalize(), "these nodes wait for each other: cat, foo");
}

TEST(GraphInline, SaysWhatItCannotTake) {
  Graph outer;
  Node& x = outer.placeholder("x");
  const Value inputs[] = {value_of(x), 2, 3};
  EXPECT_ERROR(outer.inline_graph(out_of_order()), "inline_graph: node 'b' uses 'a' before it is defined");
  EXPECT_ERROR(outer.inline_graph(chain(), inputs),
               "inline_graph: 3 inputs were given for a graph that has 1 placeholders");
  EXPECT_ERROR(outer.inline_graph(outer, std::span(inputs, 1)), "a graph cannot be copied into itself");
  EXPECT_ERROR(outer.inline_graph(outer), "a graph cannot be copied into itself");
  EXPECT_EQ(outer.size(), 1u);  // nothing came of these
  Value twice = outer.inline_graph(chain(), std::span(inputs, 1));
  twice = outer.inline_graph(chain(), std::span(&twice, 1));
  outer.output(twice);
  outer.lint();
  EXPECT_EQ(outer.size(), 6u);
}

TEST(GraphInline, TooFewInputsAreAnError) {
  Graph outer, inner = parse_code("def forward(self, x, y):\n    return x\n");
  const Value one[] = {1};
  EXPECT_ERROR(outer.inline_graph(inner, one), "1 inputs were given for a graph that has 2 placeholders");
}

TEST(GraphOutput, WithoutAValueReturnsNone) {
  Graph graph = chain();
  graph.output_node()->set_args({});
  EXPECT_THAT(graph.to_string(), HasSubstr("return None"));
  EXPECT_THAT(graph.code(), HasSubstr("return None"));
  Graph outer;
  EXPECT_TRUE(outer.inline_graph(graph).is_none());
  EXPECT_TRUE(GraphModule(std::move(graph)).call({ones({2})}).is_none());
}

TEST(GraphDeadCode, MethodsThatWriteStay) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.call_method("add_", {value_of(x), 1});
  graph.call_method("add", {value_of(x), 1});
  graph.call_method("transpose_", {value_of(x), 0, 1});
  graph.call_method("update_", {value_of(x)});  // of whatever x is: the name says that it writes
  graph.call_method("__len__", {value_of(x)});
  graph.call_method("size", {value_of(x), 0});
  graph.output(value_of(x));
  EXPECT_TRUE(graph.find("add_")->writes_in_place());
  EXPECT_TRUE(graph.find("add_")->is_impure());
  EXPECT_FALSE(graph.find("add")->writes_in_place());
  EXPECT_TRUE(graph.eliminate_dead_code());
  std::vector<std::string> kept;
  for (const Node& node : graph) kept.push_back(node.name());
  EXPECT_THAT(kept, ::testing::ElementsAre("x", "add_", "transpose_", "update_", "output"));
}

}  // namespace
}  // namespace weft
