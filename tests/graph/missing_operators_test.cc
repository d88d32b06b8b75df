// Operators that the table does not have: graphs keep them by name, and run once they are defined.
#include "weft/graph/missing_operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/graph/compare.h"
#include "weft/graph/interpreter.h"
#include "weft/graph/parse.h"
#include "weft/graph/picture.h"
#include "weft/graph/script_view.h"
#include "weft/graph/text.h"
#include "weft/ops/define.h"
#include "weft/ops/operator_value.h"
#include "weft/passes/merge_nodes.h"
#include "weft/passes/verify.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// relu(x), and on it two operators that are not there.
Graph with_missing_calls() {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& relu = graph.call_function("aten::relu", {value_of(x)});
  Node& foo = graph.call(Target::of_operator("lacking::foo"), {value_of(relu), 2}, {{"mode", "fast"}});
  Node& bar = graph.call(Target::of_operator("aten::noSuchThing.Tensor"),
                         {Value::list({value_of(foo), value_of(x)})});
  Node& again = graph.call(Target::of_operator("lacking::foo.default"), {value_of(bar), 3});
  graph.output(value_of(again));
  return graph;
}

std::vector<std::string> names_of(const std::vector<MissingOperator>& missing) {
  std::vector<std::string> names;
  for (const MissingOperator& op : missing) names.push_back(op.name);
  return names;
}
std::vector<std::string> node_names(const MissingOperator& op) {
  std::vector<std::string> names;
  for (const Ref<Node>& node : op.nodes) names.push_back(node->name());
  return names;
}

TEST(MissingOperators, ATargetKeepsTheName) {
  const Target missing = Target::of_operator("lacking::foo.default"),
               other = Target::of_operator("lacking::foo");
  EXPECT_TRUE(missing.is_missing());
  EXPECT_TRUE(missing.is_function());
  EXPECT_EQ(missing.op(), nullptr);
  EXPECT_EQ(missing.operator_name(), "lacking::foo");
  EXPECT_EQ(missing.to_string(), "torch.ops.lacking.foo.default");
  EXPECT_EQ(missing, other);
  EXPECT_NE(missing, Target::of_operator("lacking::foo.Tensor"));
  EXPECT_NE(missing, Target("lacking::foo"));  // the name of something else
  EXPECT_EQ(Target::of_operator("higher_order::lacking").to_string(), "torch.ops.higher_order.lacking");
  EXPECT_EQ(Target::of_operator("aten::relu"), Target(operator_named("aten::relu")));
  EXPECT_FALSE(Target::of_operator("aten::relu").is_missing());
  EXPECT_EQ(Target(operator_named("aten::add.Tensor")).operator_name(), "aten::add.Tensor");
  EXPECT_EQ(Target("x").operator_name(), "");
}

TEST(MissingOperators, WhatIsNoNameIsRefused) {
  for (const char* name : {"foo", "::foo", "a::", "a::b.", "a::b.c.d", "a b::c", "a::b c", "a::1b", ""})
    EXPECT_ERROR(Target::of_operator(name), "is no name of an operator");
  Graph graph;
  EXPECT_ERROR(graph.call_function("lacking::foo", {}), "no operator 'lacking::foo'");
  EXPECT_ERROR(graph.create(NodeKind::kCallModule, Target::of_operator("lacking::foo"), {}),
               "a call_module node cannot have a function for its target");
}

TEST(MissingOperators, Texts) {
  const Graph graph = with_missing_calls();
  graph.lint();
  EXPECT_EQ(graph.code(), R"(


def forward(self, x):
    relu = torch.ops.aten.relu.default(x)
    foo = torch.ops.lacking.foo.default(relu, 2, mode = 'fast');  relu = None
    no_such_thing = torch.ops.aten.noSuchThing.Tensor([foo, x]);  foo = x = None
    foo_1 = torch.ops.lacking.foo.default(no_such_thing, 3);  no_such_thing = None
    return foo_1
    )");
  EXPECT_THAT(graph.to_string(),
              HasSubstr("%foo : [num_users=1] = call_function[target=torch.ops.lacking.foo.default]"
                        "(args = (%relu, 2), kwargs = {mode: fast})"));
  EXPECT_THAT(graph.tabular(), HasSubstr("torch.ops.lacking.foo.default"));
  EXPECT_THAT(readable(graph), HasSubstr("foo = torch.ops.lacking.foo.default(relu, 2, mode = 'fast')"));
  EXPECT_THAT(dot(graph), HasSubstr("lacking.foo.default"));
  EXPECT_THAT(svg(graph), HasSubstr(">lacking.foo.default</text>"));
  EXPECT_THAT(script_text(graph), HasSubstr("lacking::foo(%"));
  EXPECT_THAT(script_text(graph), HasSubstr("aten::noSuchThing(%"));
}

TEST(MissingOperators, TextsReadBackWhereTheyAreAllowed) {
  const Graph graph = with_missing_calls();
  const ParseOptions keep{.missing_operators = true};
  const Graph from_code = parse_code(graph.code(), keep), from_text = parse_graph(quoted_text(graph), keep);
  EXPECT_EQ(difference(graph, from_code), "");
  EXPECT_EQ(difference(graph, from_text), "");
  EXPECT_EQ(from_code.code(), graph.code());
  EXPECT_EQ(quoted_text(from_text), quoted_text(graph));
  EXPECT_ERROR(parse_code(graph.code()), "expected a function: no operator 'lacking::foo'");
  EXPECT_ERROR(parse_graph(quoted_text(graph)), "expected a function: no operator 'lacking::foo'");
  EXPECT_ERROR(parse_code("def forward(self, x):\n    y = torch.ops.a.b.c.d(x)", keep),
               "is no name of an operator");
}

TEST(MissingOperators, CopiesAndInlinedGraphsKeepThem) {
  const Graph graph = with_missing_calls();
  EXPECT_EQ(difference(graph, graph.copy()), "");
  Graph outer;
  outer.output(outer.inline_graph(graph));
  EXPECT_EQ(difference(graph, outer), "");
  const GraphModule module(graph.copy());
  EXPECT_EQ(difference(graph, Transformer(module).transform().graph()), "");
  EXPECT_EQ(difference(graph, module.deep_copy().graph()), "");
}

TEST(MissingOperators, AreListedWithTheirNodes) {
  const Graph graph = with_missing_calls();
  const std::vector<MissingOperator> missing = missing_operators(graph);
  EXPECT_THAT(names_of(missing), ElementsAre("lacking::foo", "aten::noSuchThing.Tensor"));
  EXPECT_THAT(node_names(missing[0]), ElementsAre("foo", "foo_1"));
  EXPECT_THAT(node_names(missing[1]), ElementsAre("no_such_thing"));
  EXPECT_TRUE(missing_operators(parse_code("def forward(self, x):\n    return x")).empty());
}

// A cond whose branches call what is missing, in a module.
GraphModule with_missing_branches() {
  auto branch = [](const char* name) {
    Graph graph;
    Node& x = graph.placeholder("x");
    graph.output(Value::tuple({value_of(graph.call(Target::of_operator(name), {value_of(x)}))}));
    return Value(Ref<ValueObject>(GraphModule(std::move(graph)).callable()));
  };
  Graph graph;
  Node &p = graph.placeholder("p"), &x = graph.placeholder("x");
  Node &yes = graph.get_attr("yes"), &no = graph.get_attr("no");
  Node& own = graph.call(Target::of_operator("lacking::own"), {value_of(x)});
  Node& cond = graph.call(operator_named("higher_order::cond"),
                          {value_of(p), value_of(yes), value_of(no), Value::list({value_of(own)})});
  graph.output(value_of(cond));
  return GraphModule({{"yes", branch("lacking::yes")}, {"no", branch("lacking::no")}}, std::move(graph));
}

TEST(MissingOperators, OfBranchesAreListedToo) {
  const GraphModule module = with_missing_branches();
  EXPECT_THAT(names_of(missing_operators(module)),
              ElementsAre("lacking::yes", "lacking::no", "lacking::own"));
  EXPECT_EQ(names_of(missing_operators(module.graph())), names_of(missing_operators(module)));
  EXPECT_THROW(module.call({full({}, true), ones({2})}), UnsupportedError);
  EXPECT_ERROR(module.call({full({}, true), ones({2})}), "it calls 3 operators that weft does not have");
  // A branch may do anything, so that the call of it stays.
  module.graph().output_node()->set_args({value_of(*module.graph().find("x"))});
  EXPECT_FALSE(module.graph().eliminate_dead_code());
}

TEST(MissingOperators, AmongArgumentsAreListedToo) {
  const char* code =
      "def forward(self, x):\n"
      "    y = torch.ops.higher_order.out_dtype(torch.ops.lacking.mm.default, torch.int32, x, x)\n"
      "    return y";
  const Graph graph = parse_code(code, {.missing_operators = true});
  EXPECT_THAT(graph.code(), HasSubstr("out_dtype(torch.ops.lacking.mm.default, torch.int32, x, x)"));
  EXPECT_THAT(names_of(missing_operators(graph)), ElementsAre("lacking::mm"));
  EXPECT_EQ(operator_in(operator_value("lacking::mm")), nullptr);
  EXPECT_EQ(operator_in(operator_value("aten::mm.default")), &operator_named("aten::mm"));
  EXPECT_EQ(operator_value("lacking::mm"), operator_value("lacking::mm.default"));
}

TEST(MissingOperators, RunningIsOneErrorThatListsThemAll) {
  const GraphModule module(with_missing_calls());
  for (bool interpreted : {false, true}) {
    auto run = [&] { return interpreted ? Interpreter(module).run({ones({2})}) : module.call({ones({2})}); };
    EXPECT_THROW(run(), UnsupportedError);
    EXPECT_ERROR(run(), "it calls 2 operators that weft does not have:");
    EXPECT_ERROR(run(), "\n  lacking::foo (node foo, foo_1)");
    EXPECT_ERROR(run(), "\n  aten::noSuchThing.Tensor (node no_such_thing)");
    EXPECT_ERROR(run(), "define_operator(\"lacking::foo(Tensor x) -> Tensor\", {.kernel = ...})");
  }
  EXPECT_ERROR(call_target(Target::of_operator("lacking::foo"), {}), "lacking::foo cannot be called");
}

TEST(MissingOperators, AnInterpreterMayGiveThemAMeaning) {
  struct Doubles : Interpreter {
    using Interpreter::Interpreter;
    Value call_function(const Target& target, Args args, const Kwargs& kwargs) override {
      if (!target.is_missing()) return Interpreter::call_function(target, args, kwargs);
      return (args[0].is_tensor() ? args[0] : args[0].elements()[0]).to_tensor() * 2;
    }
  };
  const Value result = Doubles(GraphModule(with_missing_calls())).run({ones({2})});
  testing::expect_equal(result.to_tensor(), full({2}, 8.0));
}

TEST(MissingOperators, MayDoAnything) {
  Graph graph = with_missing_calls();
  const Node& foo = *graph.find("foo");
  EXPECT_TRUE(foo.is_impure());
  EXPECT_TRUE(foo.is_impure(false));
  EXPECT_TRUE(foo.writes_in_place());
  graph.output_node()->set_args({value_of(*graph.find("x"))});
  EXPECT_FALSE(graph.eliminate_dead_code(false));
  GraphModule module(std::move(graph));
  EXPECT_FALSE(merge_common_subexpressions(module, [](const Node&) { return false; }));
  verify(module, Stage::kCaptured);
  EXPECT_ERROR(verify(module, Stage::kFunctional), "'foo' calls lacking::foo, which weft does not have");
}

TEST(MissingOperators, AreRetraced) {
  const GraphModule module(with_missing_calls());
  GraphModule again = symbolic_trace(module);
  EXPECT_EQ(again.code(), module.code());
}

TEST(MissingOperators, AGraphRunsOnceTheyAreDefined) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& late = graph.call(Target::of_operator("lacking_at_first::late"), {value_of(x)}, {{"by", 3.0}});
  graph.output(value_of(late));
  const GraphModule module(std::move(graph));
  EXPECT_ERROR(module(ones({2})), "it calls an operator that weft does not have");
  const Operator& op = define_operator("lacking_at_first::late(Tensor x, *, float by=2.0) -> Tensor",
                                       {.kernel = [](const Tensor& t, double by) { return t * by; }});
  EXPECT_FALSE(late.target().is_missing());
  EXPECT_EQ(late.target().op(), &op);
  EXPECT_EQ(late.target(), Target(op));
  EXPECT_FALSE(late.is_impure());
  EXPECT_TRUE(missing_operators(module).empty());
  testing::expect_equal(module(ones({2})), full({2}, 3.0));
  testing::expect_equal(Interpreter(module).run({ones({2})}).to_tensor(), full({2}, 3.0));
  EXPECT_EQ(difference(parse_code(module.code()), module.graph()), "");
}

}  // namespace
}  // namespace weft
