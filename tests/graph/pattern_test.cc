// Patterns found and replaced, as PyTorch's subgraph_rewriter does it; and the patterns that are none.
#include "weft/graph/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/random_graph.h"
#include "support/round_trip.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

// A graph from the lines of its code.
Graph code(std::string_view parameters, std::initializer_list<std::string_view> lines) {
  std::string text = fmt::format("def forward(self, {}):\n", parameters);
  for (std::string_view line : lines) text += fmt::format("    {}\n", line);
  return parse_code(text);
}
// And back, without what says where values end.
std::vector<std::string> lines_of(const Graph& graph) {
  graph.lint();
  std::vector<std::string> lines;
  std::string text = graph.code();
  text = text.substr(text.find(":\n") + 2);
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    std::string line = text.substr(at, end - at);
    lines.push_back(line.substr(4, line.find(";  ") - 4));
  }
  return lines;
}
std::vector<std::string> names(const std::vector<Ref<Node>>& nodes) {
  std::vector<std::string> all;
  for (const Ref<Node>& node : nodes) all.push_back(node->name());
  return all;
}

// --- finding ---------------------------------------------------------------------------------------------

TEST(FindMatches, SaysWhatStandsForWhat) {
  Graph graph = code("x, y", {"neg = -x", "add = neg + 2", "mul = add * y", "return mul"});
  const Graph pattern = code("a, b", {"c = -a", "d = c + b", "return d"});
  const std::vector<Match> matches = find_matches(graph, pattern);
  ASSERT_EQ(matches.size(), 1u);
  const Match& match = matches[0];
  EXPECT_EQ(match.node(*pattern.find("d")).name(), "add");
  EXPECT_EQ(match.node(*pattern.find("c")).name(), "neg");
  EXPECT_EQ(match.node(*pattern.find("a")).name(), "x");
  ASSERT_EQ(match.inputs.size(), 2u);
  EXPECT_EQ(match.inputs[1].to_int(), 2);
  EXPECT_THAT(names(match.outputs), ElementsAre("add"));
  EXPECT_ERROR(match.node(*pattern.find("b")), "placeholder 'b' stands for a constant here: 2");
  EXPECT_ERROR(match.node(*graph.find("neg")), "there is no node 'neg' in the pattern");
}

size_t count(Graph graph, const Graph& pattern, const MatchOptions& options = {}) {
  return find_matches(graph, pattern, options).size();
}

TEST(FindMatches, ComparesKindsTargetsAndArguments) {
  Graph graph =
      code("x", {"a = x.relu()", "b = self.m.relu(a)", "c = -b", "w = self.w", "d = c + w", "return d"});
  auto found = [&](std::initializer_list<std::string_view> lines) {
    return count(graph.copy(), code("x, y", lines));
  };
  EXPECT_EQ(count(graph.copy(), code("x", {"a = x.relu()", "return a"})), 1u);
  EXPECT_EQ(count(graph.copy(), code("x", {"a = x.relu_()", "return a"})), 0u);
  EXPECT_EQ(count(graph.copy(), code("x", {"a = self.m.relu(x)", "return a"})), 1u);
  EXPECT_EQ(count(graph.copy(), code("x", {"a = self.relu(x)", "return a"})), 0u);
  EXPECT_EQ(found({"a = x + y", "return a"}), 1u);
  EXPECT_EQ(found({"a = x - y", "return a"}), 0u);
  EXPECT_EQ(count(graph.copy(), code("x", {"w = self.w", "a = x + w", "return a"})), 1u);
  EXPECT_EQ(count(graph.copy(), code("x", {"w = self.v", "a = x + w", "return a"})), 0u);
  MatchOptions any_attribute;
  any_attribute.same_attribute = [](const Node&, const Node&) { return true; };
  EXPECT_EQ(count(graph.copy(), code("x", {"w = self.v", "a = x + w", "return a"}), any_attribute), 1u);
}

TEST(FindMatches, ComparesConstants) {
  const Graph one = code("x", {"a = x + 1", "return a"});
  EXPECT_EQ(count(code("x", {"a = x + 1", "return a"}), one), 1u);
  EXPECT_EQ(count(code("x", {"a = x + 2", "return a"}), one), 0u);
  EXPECT_EQ(count(code("x", {"a = x + 1.0", "return a"}), one), 0u);
  EXPECT_EQ(count(code("x", {"a = x + True", "return a"}), one), 0u);
  EXPECT_EQ(count(code("x, y", {"a = x + y", "return a"}), one), 0u);
  EXPECT_EQ(count(code("x", {"a = x + 2.5", "return a"}), one, {.ignore_literals = true}), 1u);
  EXPECT_EQ(count(code("x, y", {"a = x + y", "return a"}), one, {.ignore_literals = true}), 0u);
  const Graph in_list = code("x, y", {"a = self.m([x, 1], {'k': (y,)})", "return a"});
  EXPECT_EQ(count(code("x, y", {"a = self.m((y, 1), {'k': [x]})", "return a"}), in_list), 1u);
  EXPECT_EQ(count(code("x, y", {"a = self.m((y, 2), {'k': [x]})", "return a"}), in_list), 0u);
  EXPECT_EQ(count(code("x, y", {"a = self.m((y, 1), {'l': [x]})", "return a"}), in_list), 0u);
  EXPECT_EQ(count(code("x, y", {"a = self.m((y, 1, 1), {'k': [x]})", "return a"}), in_list), 0u);
}

TEST(FindMatches, OperatorsTakeArgumentsByPositionNameOrDefault) {
  const Graph plain = code("x, y", {"a = torch.ops.aten.add.Tensor(x, y)", "return a"});
  EXPECT_EQ(count(code("x, y", {"a = torch.ops.aten.add.Tensor(x, other = y)", "return a"}), plain), 1u);
  EXPECT_EQ(count(code("x, y", {"a = torch.ops.aten.add.Tensor(x, y, alpha = 1)", "return a"}), plain), 1u);
  EXPECT_EQ(count(code("x, y", {"a = torch.ops.aten.add.Tensor(x, y, alpha = 2)", "return a"}), plain), 0u);
  EXPECT_EQ(count(code("x, y", {"a = torch.ops.aten.add.Tensor(x, y, beta = 1)", "return a"}), plain), 0u);
  EXPECT_EQ(count(code("x, y", {"a = x.add(y, alpha = 1)", "return a"}),
                  code("x, y", {"a = x.add(y)", "return a"})),
            0u);
}

TEST(FindMatches, PlaceholdersStandForOneValueEach) {
  const Graph square = code("x", {"a = x * x", "return a"}),
              product = code("x, y", {"a = x * y", "return a"});
  EXPECT_EQ(count(code("x", {"a = x * x", "return a"}), square), 1u);
  EXPECT_EQ(count(code("x, y", {"a = x * y", "return a"}), square), 0u);
  EXPECT_EQ(count(code("x, y", {"a = x * y", "return a"}), product), 1u);
  // As in PyTorch, two placeholders are two values.
  EXPECT_EQ(count(code("x", {"a = x * x", "return a"}), product), 0u);
  EXPECT_EQ(count(code("x", {"a = 2 * 2", "return a"}), product), 1u);
  EXPECT_EQ(count(code("x", {"a = 2 * 2", "return a"}), square), 1u);
  EXPECT_EQ(count(code("x", {"a = 2 * 3", "return a"}), square), 0u);
  // A placeholder may stand for a list, but for none with a node of the match in it.
  const Graph list = code("x, y", {"a = -x", "b = self.m(a, y)", "return b"});
  EXPECT_EQ(count(code("x, z", {"a = -x", "b = self.m(a, [x, z, 1])", "return b"}), list), 1u);
  EXPECT_EQ(count(code("x, z", {"a = -x", "b = self.m(a, [a])", "return b"}), list), 0u);
}

TEST(FindMatches, WhatIsInsideIsNotUsedOutside) {
  const Graph pattern = code("x", {"a = -x", "b = a + 1", "return b"});
  EXPECT_EQ(count(code("x", {"a = -x", "b = a + 1", "return b"}), pattern), 1u);
  EXPECT_EQ(count(code("x", {"a = -x", "b = a + 1", "return (a, b)"}), pattern), 0u);
  EXPECT_EQ(count(code("x", {"a = -x", "b = a + 1", "c = a * b", "return c"}), pattern), 0u);
  const Graph both = code("x", {"a = -x", "b = a + 1", "return (a, b)"});
  EXPECT_EQ(count(code("x", {"a = -x", "b = a + 1", "c = a * b", "return c"}), both), 1u);
}

TEST(FindMatches, DoNotOverlapAndTheFirstOneWins) {
  Graph graph = code("x", {"a = -x", "b = -a", "c = -b", "d = -c", "e = -d", "return e"});
  const Graph twice = code("x", {"a = -x", "b = -a", "return b"});
  const std::vector<Match> matches = find_matches(graph, twice);
  ASSERT_EQ(matches.size(), 2u);
  EXPECT_THAT(names(matches[0].outputs), ElementsAre("b"));
  EXPECT_THAT(names(matches[1].outputs), ElementsAre("d"));
  MatchOptions options;
  options.accept = [](const Match& match) { return match.outputs[0]->name() != "b"; };
  const std::vector<Match> others = find_matches(graph, twice, options);
  ASSERT_EQ(others.size(), 2u);
  EXPECT_THAT(names(others[0].outputs), ElementsAre("c"));
  EXPECT_THAT(names(others[1].outputs), ElementsAre("e"));
}

TEST(FindMatches, SeveralResults) {
  Graph graph =
      code("x", {"a = -x", "b = a + 1", "c = a * 2", "d = b - c", "e = -d", "f = e + 1", "return f"});
  const Graph pattern = code("x", {"a = -x", "b = a + 1", "c = a * 2", "return (b, c)"});
  const std::vector<Match> matches = find_matches(graph, pattern);
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_THAT(names(matches[0].outputs), ElementsAre("b", "c"));
  // The parts share a placeholder, or nothing.
  EXPECT_EQ(count(graph.copy(), code("x", {"b = x + 1", "c = x * 2", "return (b, c)"})), 1u);
  EXPECT_EQ(count(graph.copy(), code("x, y", {"b = x + 1", "c = y * 2", "return (b, c)"})), 0u);
  EXPECT_EQ(count(code("x, y", {"a = x + 1", "b = y * 2", "return (a, b)"}),
                  code("x, y", {"b = x + 1", "c = y * 2", "return (b, c)"})),
            1u);
  // What they share may be a constant.
  EXPECT_EQ(count(code("x", {"a = 1 * x", "b = x - 1", "return (a, b)"}),
                  code("x, y", {"a = x * y", "b = y - x", "return (a, b)"})),
            1u);
}

// One of its results is needed for one of its inputs: it cannot be computed in one go.
TEST(FindMatches, ThatWouldNeedThemselvesAreNone) {
  const Graph pattern = code("x, y", {"a = -x", "b = a + y", "return (a, b)"});
  EXPECT_EQ(count(code("x, y", {"a = -x", "b = a + y", "return (a, b)"}), pattern), 1u);
  EXPECT_EQ(count(code("x", {"a = -x", "y = a * 2", "z = y * 2", "b = a + z", "return b"}), pattern), 0u);
  // Alone each of them could be, but not both: each needs a result of the other one.
  const Graph pair = code("x, y", {"a = x * 2", "b = y + 1", "return (a, b)"});
  Graph crossed = code("x, y", {"a = x * 2", "b = a + 1", "c = y * 2", "d = c + 1", "return (b, d)"});
  const std::vector<Match> matches = find_matches(crossed, pair);
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_THAT(names(matches[0].outputs), ElementsAre("a", "d"));
}

TEST(FindMatches, PatternsThatAreNone) {
  Graph graph = code("x", {"a = -x", "return a"});
  EXPECT_ERROR(find_matches(graph, Graph()), "the pattern has no output");
  EXPECT_ERROR(find_matches(graph, code("x", {"a = -x"})), "the pattern has no output");
  EXPECT_ERROR(find_matches(graph, code("x", {"return x"})), "the pattern returns its placeholder 'x'");
  EXPECT_ERROR(find_matches(graph, code("x", {"a = -x", "return (x, a)"})), "returns its placeholder 'x'");
  EXPECT_ERROR(find_matches(graph, code("x", {"return 1"})), "the pattern returns no node: return 1");
  EXPECT_ERROR(find_matches(graph, code("x", {"a = -x", "b = -x", "return a"})),
               "the pattern's node 'b' is not needed for what it returns");
  EXPECT_ERROR(find_matches(graph, code("x, y", {"a = -x", "return a"})), "node 'y' is not needed");
}

// --- replacing -------------------------------------------------------------------------------------------

TEST(ReplacePattern, OneNodeByMany) {
  Graph graph = code("x, y", {"add = x + y", "mul = add * y", "add_1 = mul + x", "return add_1"});
  const Graph pattern = code("a, b", {"c = a + b", "return c"});
  const Graph replacement = code("a, b", {"n = -b", "s = a - n", "return s"});
  const std::vector<Replacement> done = replace_pattern(graph, pattern, replacement);
  EXPECT_THAT(lines_of(graph),
              ElementsAre("n = -y", "s = x - n", "mul = s * y", "n_1 = -x", "s_1 = mul - n_1", "return s_1"));
  ASSERT_EQ(done.size(), 2u);
  EXPECT_THAT(names(done[0].added), ElementsAre("n", "s"));
  EXPECT_THAT(names(done[1].added), ElementsAre("n_1", "s_1"));
  EXPECT_EQ(done[0].match.node(*pattern.find("c")).graph(), nullptr);
  testing::expect_round_trips(graph);
}

TEST(ReplacePattern, ThatIsTheWholeGraph) {
  Graph graph = code("x", {"a = -x", "b = a + 1", "return b"});
  replace_pattern(graph, graph.copy(), code("x", {"c = 1 - x", "return c"}));
  EXPECT_THAT(lines_of(graph), ElementsAre("c = 1 - x", "return c"));
}

// The second match has the result of the first one for its input.
TEST(ReplacePattern, MatchesThatFeedOneAnother) {
  Graph graph = code("x", {"a = -x", "b = -a", "c = -b", "d = -c", "return d"});
  const Graph twice = code("x", {"a = -x", "b = -a", "return b"});
  const std::vector<Replacement> done = replace_pattern(graph, twice, code("x", {"e = x + 0", "return e"}));
  EXPECT_THAT(lines_of(graph), ElementsAre("e = x + 0", "e_1 = e + 0", "return e_1"));
  EXPECT_EQ(node_in(done[1].match.inputs[0])->name(), "e");
  EXPECT_EQ(done[1].match.node(*twice.find("x")).name(), "e");
}

TEST(ReplacePattern, ByAnInputOrAConstant) {
  const Graph twice = code("x", {"a = -x", "b = -a", "return b"});
  Graph graph = code("x", {"a = -x", "b = -a", "c = -b", "d = -c", "e = d + 1", "return e"});
  replace_pattern(graph, twice, code("x", {"return x"}));
  EXPECT_THAT(lines_of(graph), ElementsAre("e = x + 1", "return e"));
  Graph zero = code("x", {"a = x - x", "b = a + 1", "c = self.m([a], k = a)", "return (b, c)"});
  replace_pattern(zero, code("x", {"a = x - x", "return a"}), code("x", {"return 0"}));
  EXPECT_THAT(lines_of(zero), ElementsAre("b = 0 + 1", "c = self.m([0], k = 0)", "return (b, c)"));
  EXPECT_TRUE(zero.find("x")->users().empty());
  Graph constants = code("x", {"a = 2 * x", "return a"});
  replace_pattern(constants, code("x, y", {"a = x * y", "return a"}),
                  code("x, y", {"b = y * x", "return b"}));
  EXPECT_THAT(lines_of(constants), ElementsAre("b = x * 2", "return b"));
}

TEST(ReplacePattern, SeveralResults) {
  Graph graph = code("x", {"a = -x", "b = a + 1", "c = a * 2", "d = b - c", "return (d, b)"});
  const Graph pattern = code("x", {"a = -x", "b = a + 1", "c = a * 2", "return (b, c)"});
  replace_pattern(graph, pattern, code("x", {"p = x * 3", "q = p + 4", "return [q, p]"}));
  EXPECT_THAT(lines_of(graph), ElementsAre("p = x * 3", "q = p + 4", "d = q - p", "return (d, q)"));
}

TEST(ReplacePattern, ResultsThatNobodyUses) {
  Graph graph = code("x", {"a = -x", "b = x + 1", "return x"});
  replace_pattern(graph, code("x", {"a = -x", "return a"}), code("x", {"c = x * 2", "return c"}));
  EXPECT_THAT(lines_of(graph), ElementsAre("c = x * 2", "b = x + 1", "return x"));
  Graph last = code("x", {"a = -x"});
  replace_pattern(last, code("x", {"a = -x", "return a"}), code("x", {"c = x * 2", "return c"}));
  EXPECT_THAT(lines_of(last), ElementsAre("c = x * 2"));
}

// A result is used before another input is there: PyTorch leaves the nodes in a wrong order here.
TEST(ReplacePattern, PutsNodesInOrder) {
  Graph graph = code("x, z", {"a = -x", "u = a - 5", "y = z * 2", "b = a + y", "return (u, b)"});
  const Graph pattern = code("x, y", {"a = -x", "b = a + y", "return (a, b)"});
  replace_pattern(graph, pattern, code("x, y", {"p = x - y", "q = y - x", "return (p, q)"}));
  EXPECT_THAT(lines_of(graph),
              ElementsAre("y = z * 2", "p = x - y", "q = y - x", "u = p - 5", "return (u, q)"));
}

TEST(ReplacePattern, MadeForEachMatch) {
  Graph graph = code("x", {"a = x + 2", "b = a + 3", "return b"});
  const Graph pattern = code("x, y", {"a = x + y", "return a"});
  replace_pattern(graph, pattern, [](const Match& match) {
    Graph made = code("x, y", {"s = x - y", "return s"});
    made.find("s")->set_arg(1, -match.inputs[1].to_int());
    return made;
  });
  EXPECT_THAT(lines_of(graph), ElementsAre("s = x - -2", "s_1 = s - -3", "return s_1"));
}

TEST(ReplacePattern, OfOperatorsAndModules) {
  Graph graph = code("x", {"w = self.layer.weight", "t = torch.ops.aten.t.default(w)",
                           "mm = torch.ops.aten.mm.default(x, t)", "relu = self.act(mm)", "return relu"});
  replace_pattern(
      graph,
      code("x, w", {"t = torch.ops.aten.t.default(w)", "mm = torch.ops.aten.mm.default(x, t)", "return mm"}),
      code("x, w", {"linear = torch.ops.aten.linear.default(x, w)", "return linear"}));
  replace_pattern(graph, code("x", {"y = self.act(x)", "return y"}),
                  code("x", {"y = torch.ops.aten.relu.default(x)", "return y"}));
  EXPECT_THAT(lines_of(graph),
              ElementsAre("w = self.layer.weight", "linear = torch.ops.aten.linear.default(x, w)",
                          "y = torch.ops.aten.relu.default(linear)", "return y"));
}

TEST(ReplacePattern, Errors) {
  Graph graph = code("x", {"a = -x", "return a"});
  const Graph pattern = code("x", {"a = -x", "return a"});
  EXPECT_ERROR(replace_pattern(graph, pattern, code("x", {"a = -x"})), "the replacement has no output");
  EXPECT_ERROR(replace_pattern(graph, pattern, code("x, y", {"return x"})),
               "the pattern has 1 placeholders and the replacement 2");
  EXPECT_ERROR(replace_pattern(graph, pattern, code("x", {"return (x, x)"})),
               "the pattern returns 1 nodes and the replacement 2 values: return (x, x)");
  EXPECT_ERROR(replace_pattern(graph, graph, pattern), "the graph cannot be its own pattern");
  EXPECT_ERROR(replace_pattern(graph, Graph(), pattern), "the pattern has no output");
  EXPECT_THAT(lines_of(graph), ElementsAre("a = -x", "return a"));
}

TEST(ReplacePattern, ManyTimesAndInWideGraphs) {
  constexpr int kCount = 20000;
  Graph graph;
  Node* last = &graph.placeholder("x");
  for (int i = 0; i < kCount; ++i) last = &graph.call(python_function("operator.neg"), {value_of(*last)});
  graph.output(value_of(*last));
  const Graph twice = code("x", {"a = -x", "b = -a", "return b"});
  EXPECT_EQ(replace_pattern(graph, twice, code("x", {"c = x + 0", "return c"})).size(), kCount / 2u);
  EXPECT_EQ(graph.size(), kCount / 2u + 2);
  Graph wide;
  Node& x = wide.placeholder("x");
  ValueList all;
  for (int i = 0; i < kCount; ++i)
    all.push_back(value_of(wide.call(python_function(i % 2 ? "operator.neg" : "operator.add"),
                                     i % 2 ? ValueList{value_of(x)} : ValueList{value_of(x), 1})));
  wide.output(Value::list(std::move(all)));
  EXPECT_EQ(count(std::move(wide), code("x", {"a = -x", "b = x + 1", "return (a, b)"})), kCount / 2u);
}

// --- the same results ------------------------------------------------------------------------------------

// Runs a graph of functions on numbers.
ValueList run(const Graph& graph, double input) {
  std::unordered_map<const Node*, Value> values;
  auto current = [&](Node& node) { return values.at(&node); };
  ValueList result;
  for (const Node& node : graph) {
    ValueList args;
    for (const Value& arg : node.args()) args.push_back(map_nodes(arg, current));
    if (node.kind() == NodeKind::kPlaceholder) values[&node] = input++;
    else if (node.kind() == NodeKind::kOutput) result = args[0].elements();
    else values[&node] = node.target().function()->run(args);
  }
  return result;
}

Graph random_arithmetic(testing::RandomGraph& random, size_t nodes) {
  Graph graph;
  std::vector<Node*> all{&graph.placeholder("x"), &graph.placeholder("y")};
  auto any = [&] { return value_of(*all[all.size() - 1 - random.below(std::min<size_t>(all.size(), 4))]); };
  for (size_t i = 0; i < nodes; ++i) {
    switch (random.below(4)) {
      case 0:
        all.push_back(&graph.call(python_function("operator.add"), {any(), any()}));
        break;
      case 1:
        all.push_back(&graph.call(python_function("operator.sub"), {any(), random.below(3)}));
        break;
      default:
        all.push_back(&graph.call(python_function("operator.neg"), {any()}));
    }
  }
  ValueList results;
  for (Node* node : all)
    if (node->users().empty()) results.push_back(value_of(*node));
  graph.output(Value::tuple(std::move(results)));
  return graph;
}

// Rules that change no result, of one or more results that hang together or do not.
TEST(ReplacePattern, KeepsWhatRandomGraphsCompute) {
  const std::pair<Graph, Graph> rules[] = {
      {code("x", {"a = -x", "b = -a", "return b"}), code("x", {"return x"})},
      {code("x, y", {"a = x + y", "return a"}), code("x, y", {"n = -y", "s = x - n", "return s"})},
      {code("x, y", {"a = -x", "b = a + y", "return (a, b)"}),
       code("x, y", {"b = y - x", "a = 0 - x", "return (a, b)"})},
      {code("x", {"a = -x", "b = x - 1", "return (b, a)"}),
       code("x", {"p = 0 - x", "q = x + -1", "return (q, p)"})},
      {code("x, y", {"a = -x", "b = y - 1", "return (a, b)"}),
       code("x, y", {"p = y + -1", "q = 0 - x", "return (q, p)"})},
  };
  size_t replaced = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    testing::RandomGraph random(seed);
    const Graph graph = random_arithmetic(random, 2 + seed % 40);
    for (const auto& [pattern, replacement] : rules) {
      Graph changed = graph.copy();
      replaced += replace_pattern(changed, pattern, replacement).size();
      changed.lint();
      const ValueList before = run(graph, 3), after = run(changed, 3);
      ASSERT_EQ(before.size(), after.size());
      for (size_t i = 0; i < before.size(); ++i)
        ASSERT_EQ(before[i].to_double(), after[i].to_double())
            << "seed " << seed << graph.code() << changed.code();
    }
  }
  EXPECT_GT(replaced, 2000u);
}

}  // namespace
}  // namespace weft
