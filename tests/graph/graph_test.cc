// The graph: nodes and their users, order, names, the refusals, and its plain texts, which are PyTorch's.
#include "weft/graph/graph.h"
#include "weft/graph/annotation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/support/nodes.h"
#include "support/expect_error.h"
#include "weft/core/from_data.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

using testing::op;
using testing::v;
std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> all;
  for (const Node& node : graph) all.push_back(node.name());
  return all;
}
template <typename Nodes>
  requires std::same_as<typename Nodes::value_type, Node*>
std::vector<std::string> names(const Nodes& nodes) {
  std::vector<std::string> all;
  for (const Node* node : nodes) all.push_back(node->name());
  return all;
}

// relu(x + y), and x + 1 which nobody uses.
struct Small {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
  Node& sum = graph.call(op("aten::add.Tensor"), {v(x), v(y)});
  Node& dead = graph.call(op("aten::add.Scalar"), {v(x), 1});
  Node& relu = graph.call(op("aten::relu"), {v(sum)});
  Node& out = graph.output(v(relu));
};

// --- users and arguments ---------------------------------------------------------------------------------

TEST(GraphUsers, FollowArguments) {
  Small g;
  EXPECT_THAT(names(g.x.users().list()), ElementsAre("add", "add_1"));
  EXPECT_THAT(names(g.sum.inputs()), ElementsAre("x", "y"));
  g.sum.set_arg(0, v(g.y));
  EXPECT_THAT(names(g.x.users().list()), ElementsAre("add_1"));
  EXPECT_THAT(names(g.sum.inputs()), ElementsAre("y"));
  g.sum.set_kwarg("alpha", v(g.x));
  EXPECT_TRUE(g.x.users().contains(&g.sum));
  g.sum.set_kwargs({});
  EXPECT_FALSE(g.x.users().contains(&g.sum));
}

TEST(GraphUsers, NodesInsideContainersCount) {
  Small g;
  Dict dict;
  dict.set("k", Value::list({v(g.x), Value::tuple({v(g.sum), 3})}));
  g.out.set_args({dict});
  EXPECT_THAT(names(g.out.inputs()), ElementsAre("x", "add"));
  EXPECT_TRUE(g.relu.users().empty());
}

TEST(GraphUsers, ReplaceAllUses) {
  Small g;
  EXPECT_THAT(names(g.x.replace_all_uses_with(g.y, [&](const Node& user) { return &user == &g.dead; })),
              ElementsAre("add"));
  EXPECT_THAT(names(g.sum.inputs()), ElementsAre("y"));
  EXPECT_THAT(names(g.x.users().list()), ElementsAre("add_1"));
}

// A node with very many users: adding and removing them in any order is linear, and the order stays.
TEST(GraphUsers, ManyOfThem) {
  Graph graph;
  Node& x = graph.placeholder("x");
  std::vector<Node*> users;
  for (int i = 0; i < 20000; ++i) users.push_back(&graph.call(op("aten::neg"), {v(x)}));
  EXPECT_EQ(x.users().size(), 20000u);
  for (size_t i = 0; i < users.size(); i += 2) graph.erase(*users[i]);
  EXPECT_EQ(x.users().size(), 10000u);
  EXPECT_EQ(x.users().list().front(), users[1]);
  EXPECT_EQ(x.users().list().back(), users.back());
  EXPECT_TRUE(graph.eliminate_dead_code());
  EXPECT_EQ(graph.size(), 1u);
}

// --- names -----------------------------------------------------------------------------------------------

TEST(GraphNames, FollowPyTorchsRules) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.placeholder("**kwargs");
  graph.call(op("aten::sum"), {v(x)});
  graph.call(op("aten::sum"), {v(x)});
  graph.call(op("aten::add.Tensor"), {v(x), v(x)});
  graph.call(op("aten::add_.Tensor"), {v(x), v(x)});
  graph.call(op("aten::add_.Tensor"), {v(x), v(x)});
  graph.call_module("layer1.0.conv1", {v(x)});
  graph.call(python_function("operator.getitem"), {v(x), 0});
  graph.output(v(x));
  EXPECT_THAT(names(graph), ElementsAre("x", "_kwargs", "sum_1", "sum_2", "add", "add_", "add__1",
                                        "layer1_0_conv1", "getitem", "output"));
}

// Each as torch.fx names the nodes that are made of these targets.
TEST(GraphNames, ComeFromTargetsInSmallLetters) {
  Graph graph;
  Node& x = graph.placeholder("x");
  auto placeholder = [&](const char* target) { return graph.placeholder(target).name(); };
  EXPECT_EQ(placeholder("fooBar"), "foo_bar");
  EXPECT_EQ(placeholder("T"), "t");
  EXPECT_EQ(placeholder("*args"), "_args");
  EXPECT_EQ(placeholder("**keywordArgs"), "_keyword_args");
  EXPECT_EQ(placeholder("__doc__"), "doc");
  EXPECT_EQ(placeholder("____"), "_unnamed");
  EXPECT_EQ(placeholder("__"), "_unnamed_1");
  EXPECT_EQ(placeholder("__x"), "__x");
  EXPECT_EQ(placeholder("_"), "_");
  EXPECT_EQ(placeholder("a\u00c9"), "a_");
  EXPECT_EQ(placeholder("Exception"), "exception");
  EXPECT_EQ(placeholder("None"), "none");
  EXPECT_EQ(placeholder("HTTPServer"), "httpserver");
  EXPECT_EQ(placeholder("dtypeID2X"), "dtype_id2x");
  EXPECT_EQ(graph.call_module("Foo.BarBaz", {v(x)}).name(), "foo_bar_baz");
  EXPECT_EQ(graph.call_module("layerNorm2D", {v(x)}).name(), "layer_norm2d");
  EXPECT_EQ(graph.call_module("Layer_1", {v(x)}).name(), "layer_1");
  EXPECT_EQ(graph.call_module("layer_1", {v(x)}).name(), "layer_2");
  EXPECT_EQ(graph.get_attr("encLayers.0.W").name(), "enc_layers_0_w");
  EXPECT_EQ(graph.call_method("__len__", {v(x)}).name(), "len_1");
  EXPECT_EQ(graph.call_method("relu_", {v(x)}).name(), "relu_");
  EXPECT_EQ(graph.call_method("isNan", {v(x)}).name(), "is_nan");
  EXPECT_EQ(graph.call_method("Sum", {v(x)}).name(), "sum_1");
  EXPECT_EQ(graph.call_function("round", {v(x)}).name(), "round_1");
}

// A name that is asked for stays as it is, where Python can have it.
TEST(GraphNames, ThatAreGivenStayAsTheyAre) {
  Graph graph;
  Node& x = graph.placeholder("x");
  auto named = [&](const char* name) {
    return graph.create(NodeKind::kCallFunction, op("aten::neg"), {v(x)}, {}, name).name();
  };
  EXPECT_EQ(named("Sum"), "Sum");
  EXPECT_EQ(named("fooBar"), "fooBar");
  EXPECT_EQ(named("__len__"), "__len__");
  EXPECT_EQ(named("a-b  c"), "a_b_c");
  EXPECT_EQ(named("print"), "print_1");
  EXPECT_EQ(named("Exception"), "Exception_1");
  EXPECT_EQ(named("__doc__"), "__doc___1");
}

// Each list as torch.fx.graph._Namespace gives it for the same requests.
TEST(GraphNames, NumbersAreTakenAsTheyCome) {
  auto made = [](std::initializer_list<const char*> wanted) {
    Names taken;
    std::vector<std::string> all;
    for (const char* name : wanted) all.push_back(taken.make(name));
    for (const std::string& name : all) EXPECT_TRUE(taken.is_taken(name)) << name;
    return all;
  };
  EXPECT_THAT(made({"a_3", "a", "a", "a", "a", "a"}), ElementsAre("a_3", "a", "a_4", "a_5", "a_6", "a_7"));
  EXPECT_THAT(made({"a", "a_2", "a", "a", "a"}), ElementsAre("a", "a_2", "a_3", "a_4", "a_5"));
  EXPECT_THAT(made({"a_3", "a_1", "a", "a", "a"}), ElementsAre("a_3", "a_1", "a", "a_2", "a_4"));
  EXPECT_THAT(made({"a_5", "a_5", "a_5", "a"}), ElementsAre("a_5", "a_6", "a_7", "a"));
  EXPECT_THAT(made({"a_012", "a_012", "a_12", "a"}), ElementsAre("a_012", "a_13", "a_12", "a"));
  EXPECT_THAT(made({"a_0", "a_0", "a", "a"}), ElementsAre("a_0", "a_1", "a", "a_2"));
  EXPECT_THAT(made({"sum", "sum", "sum_1", "sum_1"}), ElementsAre("sum_1", "sum_2", "sum_3", "sum_4"));
}

TEST(GraphNames, AreMadeValidAndUnique) {
  Names names;
  EXPECT_EQ(names.make("a"), "a");
  EXPECT_EQ(names.make("a"), "a_1");
  EXPECT_EQ(names.make("a_1"), "a_2");
  EXPECT_EQ(names.make("a_7"), "a_7");
  EXPECT_EQ(names.make("a"), "a_8");
  EXPECT_EQ(names.make("0"), "_0");
  EXPECT_EQ(names.make("x.y::z"), "x_y_z");
  EXPECT_EQ(names.make(""), "_unnamed");
  EXPECT_EQ(names.make("lambda"), "lambda_1");
  EXPECT_EQ(names.make("None"), "None_1");
}

// --- order -----------------------------------------------------------------------------------------------

TEST(GraphOrder, InsertionPoints) {
  Small g;
  {
    auto scope = g.graph.inserting_before(g.relu);
    g.graph.call(op("aten::exp"), {v(g.sum)});
    g.graph.call(op("aten::log"), {v(g.sum)});
  }
  {
    auto scope = g.graph.inserting_after(g.relu);
    g.graph.call(op("aten::sin"), {v(g.relu)});
  }
  EXPECT_THAT(names(g.graph), ElementsAre("x", "y", "add", "add_1", "exp", "log", "relu", "sin", "output"));
  EXPECT_TRUE(g.graph.is_before(g.x, g.relu));
  g.dead.move_before(g.sum);
  EXPECT_TRUE(g.graph.is_before(g.dead, g.sum));
}

TEST(GraphOrder, LegalizeSortsAndKeepsTheRest) {
  Small g;
  g.relu.move_before(g.x);
  EXPECT_ERROR(g.graph.lint(), "node 'relu' uses 'add' before it is defined");
  g.graph.legalize();
  g.graph.lint();
  EXPECT_THAT(names(g.graph), ElementsAre("x", "y", "add", "relu", "add_1", "output"));
}

// Dead code is found from a list of the nodes that nobody uses, which every change keeps.
TEST(GraphDeadCode, IsFoundAfterEveryKindOfChange) {
  Graph g;
  Node &x = g.placeholder("x"), &y = g.placeholder("y");
  Node& a = g.call(op("aten::relu"), {v(x)});
  Node& b = g.call(op("aten::add.Tensor"), {v(a), v(y)});
  Node& c = g.call(op("aten::relu"), {v(b)});
  Node& out = g.output(v(b));
  EXPECT_TRUE(g.eliminate_dead_code());
  EXPECT_THAT(names(g), ElementsAre("x", "y", "relu", "add", "output"));
  (void)c;
  EXPECT_FALSE(g.eliminate_dead_code());
  b.set_arg(0, v(y));  // a is dead now
  Graph moved = std::move(g);
  Node& d = moved.call(op("aten::relu"), {v(x)});
  d.move_before(out);
  EXPECT_TRUE(moved.eliminate_dead_code());
  EXPECT_THAT(names(moved), ElementsAre("x", "y", "add", "output"));
  out.set_args({v(x)});
  Graph copied = moved.copy();
  EXPECT_TRUE(copied.eliminate_dead_code());
  EXPECT_THAT(names(copied), ElementsAre("x", "y", "output"));
  EXPECT_THAT(names(moved), ElementsAre("x", "y", "add", "output"));
  EXPECT_TRUE(moved.eliminate_dead_code());
  EXPECT_EQ(moved.size(), 3u);
}

TEST(GraphOrder, CyclesAreNamed) {
  Small g;
  g.sum.set_arg(1, v(g.relu));
  EXPECT_ERROR(g.graph.legalize(), "these nodes wait for each other: add, relu, output");
}

// --- changes ---------------------------------------------------------------------------------------------

TEST(GraphChanges, DeadCodeGoesAndWhatMattersStays) {
  Small g;
  Node& write = [&]() -> Node& {
    auto scope = g.graph.inserting_before(g.out);
    g.graph.call(op("aten::rand"), {Value::list({2})});
    return g.graph.call(op("aten::add_.Tensor"), {v(g.y), v(g.x)});
  }();
  EXPECT_TRUE(g.graph.eliminate_dead_code());
  EXPECT_THAT(names(g.graph), ElementsAre("x", "y", "add", "relu", "rand", "add_", "output"));
  EXPECT_FALSE(g.graph.eliminate_dead_code());
  EXPECT_TRUE(g.graph.eliminate_dead_code(false));
  EXPECT_EQ(write.graph(), &g.graph);
}

TEST(GraphChanges, CopiesAreIndependent) {
  Small g;
  g.sum.meta().type = parse_annotation("Tensor");
  Graph copy = g.graph.copy();
  EXPECT_EQ(copy.to_string(), g.graph.to_string());
  copy.lint();
  copy.find("relu")->set_arg(0, v(*copy.find("x")));
  EXPECT_NE(copy.to_string(), g.graph.to_string());
  Graph moved = std::move(copy);
  EXPECT_EQ(moved.find("relu")->graph(), &moved);
  EXPECT_EQ(copy.size(), 0u);  // NOLINT(bugprone-use-after-move)
}

TEST(GraphChanges, InliningTakesInputsAndGivesOutputs) {
  Small inner;
  Graph outer;
  Node &a = outer.placeholder("a"), &b = outer.placeholder("b");
  const Value inputs[] = {v(a), v(b)};
  Value result = outer.inline_graph(inner.graph, inputs);
  outer.output(result);
  outer.lint();
  EXPECT_EQ(node_in(result)->name(), "relu");
  EXPECT_THAT(names(node_in(result)->inputs()[0]->inputs()), ElementsAre("a", "b"));
}

TEST(GraphChanges, AHandleOutlivesItsGraph) {
  Ref<Node> kept;
  {
    Small g;
    kept = Ref<Node>(&g.relu);
  }
  EXPECT_EQ(kept->name(), "relu");
  EXPECT_EQ(kept->graph(), nullptr);
  EXPECT_TRUE(kept->inputs().empty());
  EXPECT_TRUE(kept->users().empty());
  EXPECT_TRUE(kept->users().list().empty());
  EXPECT_ERROR(kept->rename("other"), "was erased");
}

TEST(GraphErrors, KindsHaveTheirTargetsAndArguments) {
  Small g;
  const char* needs = "a call_function node needs a function for its target, but 'relu' was given";
  EXPECT_ERROR(g.relu.set_target("relu"), std::string("set_target: ") + needs);
  EXPECT_EQ(g.relu.target(), Target(op("aten::relu")));
  auto before_output = g.graph.inserting_before(g.out);
  Node& method = g.graph.call_method("neg", {v(g.relu)});
  EXPECT_ERROR(method.set_target(op("aten::neg")),
               "a call_method node cannot have a function for its target");
  using K = NodeKind;
  EXPECT_ERROR(g.graph.create(K::kOutput, "output", {1, 2}),
               "create: output 'output' takes nothing but the result, but has 2 arguments and 0 by name");
  EXPECT_ERROR(g.graph.create(K::kOutput, "output", {1}, {{"a", 1}}), "but has 1 arguments and 1 by name");
  EXPECT_ERROR(g.graph.create(K::kPlaceholder, "p", {1, 2}), "placeholder 'p' takes nothing but a default");
  EXPECT_ERROR(g.graph.create(K::kPlaceholder, "p", {}, {{"a", 1}}), "takes nothing but a default");
  EXPECT_ERROR(g.graph.placeholder("p", v(g.relu)),
               "the default of placeholder 'p' must be a constant, but is made of 'relu'");
  EXPECT_ERROR(g.graph.create(K::kGetAttr, "w", {1}), "get_attr 'w' takes no arguments");
  EXPECT_ERROR(g.graph.create(K::kCallMethod, "neg", {}), "the value that it is called on");
  g.graph.lint();
  // While a graph is edited arguments may be missing; lint says so.
  method.set_args({});
  EXPECT_ERROR(g.graph.lint(), "lint: call_method 'neg' takes the value that it is called on");
}

TEST(GraphChanges, AMillionNodesInAChain) {
  Graph graph;
  Node* last = &graph.placeholder("x");
  for (int i = 0; i < 1000000; ++i) last = &graph.call(op("aten::neg"), {v(*last)});
  graph.output(v(*last));
  EXPECT_EQ(graph.size(), 1000002u);
  EXPECT_EQ(last->name(), "neg_999999");
  EXPECT_FALSE(graph.eliminate_dead_code());
}

TEST(GraphErrors, NameTheNodes) {
  Small g, other;
  EXPECT_ERROR(g.graph.erase(g.sum), "node 'add' still has 1 users in the graph: relu");
  EXPECT_ERROR(g.graph.call(op("aten::relu"), {v(other.x)}),
               "cannot take 'x' as an argument: it belongs to another graph");
  EXPECT_ERROR(g.sum.set_arg(0, v(g.sum)), "node 'add' cannot be its own argument");
  EXPECT_ERROR(g.sum.set_arg(2, 1), "node 'add' has 2 arguments; there is no argument 2");
  EXPECT_ERROR(g.graph.output(v(g.x)), "the graph has an output already");
  EXPECT_ERROR(g.graph.erase(other.dead), "node 'add_1' belongs to another graph");
  EXPECT_ERROR(g.x.replace_all_uses_with(other.x), "they are not in one graph");
  EXPECT_ERROR(g.graph.call_method("relu", {}), "needs the value that it is called on");
  EXPECT_ERROR(python_function("operator.ad"), "there is no function 'operator.ad'");
  EXPECT_ERROR(g.graph.create(NodeKind::kCallModule, op("aten::relu"), {}),
               "a call_module node cannot have a function");
  Ref<Node> dead(&g.dead);
  g.graph.erase(g.dead);
  EXPECT_ERROR(g.graph.call(op("aten::relu"), {v(*dead)}), "it was erased");
  g.graph.lint();
}

// --- texts: what PyTorch 2.13 prints for the same graphs -------------------------------------------------

TEST(GraphText, Code) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y", Value(3));
  Node& sum = graph.call(op("aten::sum"), {v(x)});
  Node& add = graph.call(python_function("operator.add"), {v(sum), v(y)});
  Node& relu = graph.call_method("relu", {v(x)});
  Node& reshape = graph.call_method("reshape", {v(add), 1});
  Node& cat = graph.call(op("aten::cat"), {Value::list({v(reshape), v(relu)})}, {{"dim", 0}});
  Node& item = graph.call(python_function("operator.getitem"), {v(cat), 0});
  graph.call_module("layer1.0.conv1", {v(item)});
  Dict result;
  result.set("a", v(item));
  result.set("b", Value::tuple({v(add), Value::list({v(relu)})}));
  graph.output(result);
  EXPECT_EQ(graph.code(), R"(


def forward(self, x, y = 3):
    sum_1 = torch.ops.aten.sum.default(x)
    add = sum_1 + y;  sum_1 = y = None
    relu = x.relu();  x = None
    reshape = add.reshape(1)
    cat = torch.ops.aten.cat.default([reshape, relu], dim = 0);  reshape = None
    getitem = cat[0];  cat = None
    layer1_0_conv1 = getattr(self.layer1, "0").conv1(getitem);  layer1_0_conv1 = None
    return {'a': getitem, 'b': (add, [relu])}
    )");
  EXPECT_EQ(graph.to_string(), R"(graph():
    %x : [num_users=2] = placeholder[target=x]
    %y : [num_users=1] = placeholder[target=y](default=3)
    %sum_1 : [num_users=1] = call_function[target=torch.ops.aten.sum.default](args = (%x,), kwargs = {})
    %add : [num_users=2] = call_function[target=operator.add](args = (%sum_1, %y), kwargs = {})
    %relu : [num_users=2] = call_method[target=relu](args = (%x,), kwargs = {})
    %reshape : [num_users=1] = call_method[target=reshape](args = (%add, 1), kwargs = {})
    %cat : [num_users=1] = call_function[target=torch.ops.aten.cat.default](args = ([%reshape, %relu],), kwargs = {dim: 0})
    %getitem : [num_users=2] = call_function[target=operator.getitem](args = (%cat, 0), kwargs = {})
    %layer1_0_conv1 : [num_users=0] = call_module[target=layer1.0.conv1](args = (%getitem,), kwargs = {})
    return {'a': getitem, 'b': (add, [relu])})");
}

TEST(GraphText, Literals) {
  Graph graph;
  Node& x = graph.get_attr("weight");
  graph.call(op("aten::to.dtype"), {v(x), kFloat64});
  graph.call(op("aten::full"), {Value::list({2}), std::numeric_limits<double>::infinity()},
             {{"device", kCpu}, {"pin_memory", false}});
  graph.call(op("aten::gelu"), {v(x)}, {{"approximate", "tanh"}});
  graph.call(op("aten::add.Scalar"), {v(x), 1e-5});
  graph.output(Value::tuple({v(x)}));
  EXPECT_EQ(graph.code(), R"(


def forward(self):
    weight = self.weight
    to = torch.ops.aten.to.dtype(weight, torch.float64);  to = None
    full = torch.ops.aten.full.default([2], inf, device = device(type='cpu'), pin_memory = False);  full = None
    gelu = torch.ops.aten.gelu.default(weight, approximate = 'tanh');  gelu = None
    add = torch.ops.aten.add.Scalar(weight, 1e-05);  add = None
    return (weight,)
    )");
}

TEST(GraphText, Table) {
  Small g;
  EXPECT_EQ(g.graph.tabular(), R"(opcode         name    target                       args     kwargs
-------------  ------  ---------------------------  -------  ------
placeholder    x       x                            ()       {}
placeholder    y       y                            ()       {}
call_function  add     torch.ops.aten.add.Tensor    (x, y)   {}
call_function  add_1   torch.ops.aten.add.Scalar    (x, 1)   {}
call_function  relu    torch.ops.aten.relu.default  (add,)   {}
output         output  output                       (relu,)  {})");
}

TEST(GraphText, AnEmptyGraph) {
  Graph graph;
  EXPECT_EQ(graph.to_string(), "graph():");
  EXPECT_EQ(graph.code(), "\n\n\ndef forward(self):\n    pass\n    ");
}

// --- functions on values ---------------------------------------------------------------------------------

TEST(PythonFunctions, WorkOnNumbersTensorsAndContainers) {
  auto run = [](std::string_view name, ValueList args) { return python_function(name).run(args); };
  EXPECT_EQ(run("operator.add", {2, 3}).to_int(), 5);
  EXPECT_EQ(run("operator.truediv", {1, 2}).to_double(), 0.5);
  EXPECT_EQ(run("operator.floordiv", {-7, 2}).to_int(), -4);
  EXPECT_EQ(run("operator.mod", {-7, 2}).to_int(), 1);
  EXPECT_EQ(run("operator.mul", {2, 1.5}).to_double(), 3.0);
  EXPECT_TRUE(run("operator.lt", {1, 2}).to_bool());
  EXPECT_TRUE(run("operator.eq", {"a", "a"}).to_bool());
  EXPECT_EQ(run("operator.add", {Value::list({1}), Value::list({2})}).elements().size(), 2u);
  EXPECT_EQ(run("operator.getitem", {Value::tuple({1, 2, 3}), -1}).to_int(), 3);
  Tensor x = from_data(std::vector<double>{1, 2});
  EXPECT_EQ(run("operator.sub", {x, 1}).to_tensor().data<double>()[1], 1.0);
  EXPECT_EQ(run("operator.getitem", {x, 1}).to_tensor().data<double>()[0], 2.0);
  EXPECT_ERROR(run("operator.getitem", {Value::tuple({1}), 1}), "index 1 is out of range for 1 elements");
  EXPECT_ERROR(run("operator.add", {"a", 1}), "expected numbers or tensors");
  EXPECT_ERROR(run("operator.neg", {1, 2}), "operator.neg takes 1 arguments, but got 2");
}

}  // namespace
}  // namespace weft
