// Texts of graphs read back: by hand, at random, and what is refused.
#include "weft/graph/parse.h"
#include "weft/graph/annotation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/support/nodes.h"
#include "support/expect_error.h"
#include "support/random_graph.h"
#include "support/round_trip.h"
#include "weft/core/from_data.h"
#include "weft/dispatch/operator.h"
#include "weft/graph/graph_module.h"

namespace weft {
namespace {

using testing::expect_round_trips;
using ::testing::HasSubstr;

using testing::op;
using testing::v;

// --- both ways -------------------------------------------------------------------------------------------

TEST(RoundTrip, EveryKindOfNode) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y", Value(1));
  graph.placeholder("*args");
  graph.placeholder("self");
  graph.placeholder("**kwargs");
  x.meta().type = parse_annotation("torch.Tensor");
  Node& weight = graph.get_attr("layer1.0.weight");
  Node& conv = graph.call_module("layer1.0.conv", {v(x)}, {{"stride", 2}});
  Node& method = graph.call_method("relu_", {v(conv)});
  Node& sum = graph.call(python_function("operator.add"), {v(method), v(y)});
  Node& item = graph.call(python_function("operator.getitem"), {v(sum), 0});
  Node& neg = graph.call(python_function("operator.neg"), {v(item)});
  graph.call(op("aten::add_.Tensor"), {v(neg), v(weight)}, {{"alpha", 2}});
  graph.output(Value::tuple({v(neg), Dict{{"k", Value::list({v(x)})}}})).meta().type =
      parse_annotation("tuple");
  expect_round_trips(graph);
}

TEST(RoundTrip, EveryKindOfValue) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  Graph graph;
  Node& x = graph.placeholder("x");
  const ValueList values = {
      Value(),
      true,
      false,
      0,
      -5,
      std::numeric_limits<int64_t>::min(),
      0.0,
      -0.0,
      0.1,
      1e300,
      5e-324,
      inf,
      -inf,
      nan,
      Complex<double>(1, 2),
      Complex<double>(0, -0.0),
      Complex<double>(-0.0, 3),
      Complex<double>(nan, 1),
      Complex<double>(1, -inf),
      "",
      "it's",
      "\"",
      "%x",
      bytes,
      "\u00e9\u2028",
      kFloat32,
      kBool,
      kComplex128,
      kCpu,
      kMeta,
      Device("sim:3"),
      Layout::kStrided,
      MemoryFormat::kChannelsLast3d,
      Value::list({}),
      Value::tuple({}),
      Dict(),
      Value::list({1}),
      Value::tuple({1}),
      Value::tuple({1, v(x)}),
      Value::tuple({Value::tuple({Value::tuple({})})}),
      Dict{{"a b", v(x)}, {1, Value::list({v(x)})}, {2.5, Dict{{"", 1}}}, {true, Value()}}};
  for (const Value& value : values) {
    graph.call(op("aten::relu"), {v(x), value}, {{"k", value}, {"not a name", value}});
    graph.call(python_function("operator.add"), {value, value});
    graph.call(python_function("operator.neg"), {value});
    graph.call(python_function("operator.getitem"), {value, value});
    graph.call_method("up.0", {value, value});
  }
  graph.placeholder("late", Value(inf));
  graph.output(Value::list(values));
  expect_round_trips(graph);
  graph.erase(*graph.find("late"));
  expect_round_trips(graph);
}

TEST(RoundTrip, NamesThatAreNotTheOnesAGraphWouldChoose) {
  Graph graph;
  Node &a = graph.placeholder("a"), &b = graph.placeholder("b");
  a.rename("c");
  b.rename("a_7");
  Node& inf = graph.call(op("aten::relu"), {v(a)});
  inf.rename("info");
  Node& neg = graph.call(python_function("operator.neg"), {v(inf)});
  graph.call(python_function("operator.neg"), {v(neg)}).rename("output");
  graph.output(v(neg));
  expect_round_trips(graph);
  EXPECT_EQ(parse_code(graph.code()).back()->name(), "output_1");
}

// Each takes the other's name: in the code `b = a` means the parameter.
TEST(RoundTrip, ParametersThatSwapNames) {
  Graph graph;
  Node &a = graph.placeholder("a"), &b = graph.placeholder("b");
  graph.create(NodeKind::kPlaceholder, "c", {}, {}, "d");
  const std::string text = "graph():\n    %b = placeholder[target=a]\n    %a = placeholder[target=b]\n";
  expect_round_trips(parse_graph(text));
  expect_round_trips(graph);
  EXPECT_NE(&a, &b);
}

TEST(RoundTrip, EmptyGraphs) {
  Graph graph;
  expect_round_trips(graph);
  EXPECT_EQ(parse_code("def forward(self):\n    pass").size(), 0u);
  graph.placeholder("x");
  expect_round_trips(graph);
  graph.output(Value());
  expect_round_trips(graph);
}

TEST(RoundTrip, Random) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    testing::RandomGraph random(seed);
    Graph graph = random.make(1 + seed % 40);
    expect_round_trips(graph);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(RoundTrip, ALongChain) {
  Graph graph;
  Node* last = &graph.placeholder("x");
  for (int i = 0; i < 30000; ++i) last = &graph.call(op("aten::add.Tensor"), {v(*last), i});
  graph.output(v(*last));
  expect_round_trips(graph);
}

TEST(RoundTrip, ALongListAndALongPath) {
  Graph graph;
  Node& x = graph.placeholder("x");
  std::string path = "layer";
  for (int i = 0; i < 2000; ++i) path += "." + std::to_string(i % 10);
  graph.call_module(path, {Value::list(ValueList(20000, v(x)))});
  expect_round_trips(graph);
}

TEST(RoundTrip, ValuesInsideEachOther) {
  Graph graph;
  Value nested = v(graph.placeholder("x"));
  for (int i = 0; i < 500; ++i) nested = i % 2 ? Value::list({nested}) : Value::tuple({nested});
  graph.output(nested);
  expect_round_trips(graph);
  graph.output_node()->set_arg(0, Value::list({nested}));
  EXPECT_ERROR(quoted_text(graph), "node 'output' has more than 500 containers inside each other");
  EXPECT_ERROR(parse_code(graph.code()), "expected at most 500 containers inside each other");
}

TEST(QuotedText, IsTheGraphTextWithExactValues) {
  Graph graph;
  Node& x = graph.placeholder("x", Value("a"));
  x.meta().type = parse_annotation("torch.Tensor");
  graph.get_attr("a b");
  Node& to = graph.call(op("aten::to.device"), {v(x), kCpu}, {{"non blocking", "%x"}});
  graph.output(Value::list({v(to)}));
  EXPECT_EQ(quoted_text(graph), R"(graph():
    %x : torch.Tensor [num_users=1] = placeholder[target=x](default='a')
    %a_b : [num_users=0] = get_attr[target='a b']
    %to : [num_users=1] = call_function[target=torch.ops.aten.to.device](args = (%x, device(type='cpu')), kwargs = {'non blocking': '%x'})
    return [%to])");
}

TEST(QuotedText, NamesTheNodeWhoseArgumentsHaveNoText) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& add = graph.call(op("aten::add.Tensor"), {v(x), Value::list({from_data(std::vector<float>{1})})});
  EXPECT_ERROR(quoted_text(graph), "node 'add' has a tensor among its arguments (f32[1]), which has no text");
  add.set_arg(1, Generator());
  EXPECT_ERROR(quoted_text(graph), "node 'add' has a generator among its arguments");
}

// --- texts written by hand -------------------------------------------------------------------------------

TEST(ParseCode, WhatPyTorchPrintsReadably) {
  const Graph graph = parse_code(R"py(
class GraphModule(torch.nn.Module):
    def forward(self, x_1: "f32[3, 4]", y: "Sym(s0)" = float('-inf'), *rest):
        args = rest

        # File: m.py:7 in forward, code: return x + 1
        conv : torch.Tensor = getattr(getattr(self.layers, "0"), '1').conv(
            x_1,  # the input
            bias = None,
        );  x_1 = None
        w = getattr(self, "0")
        return (conv, w)
)py");
  EXPECT_EQ(graph.to_string(), R"(graph():
    %x_1 : f32[3, 4] [num_users=1] = placeholder[target=x_1]
    %y : Sym(s0) [num_users=0] = placeholder[target=y](default=-inf)
    %args : [num_users=0] = placeholder[target=*rest]
    %conv : torch.Tensor [num_users=1] = call_module[target=layers.0.1.conv](args = (%x_1,), kwargs = {bias: None})
    %w : [num_users=1] = get_attr[target=0]
    return (conv, w))");
}

// One line of code with the values x and y.
std::string parsed_line(std::string_view line) {
  const Graph graph = parse_code(fmt::format("def forward(self, x, y):\n    z = {}\n", line));
  return graph.back()->line().substr(std::string_view("%z : [num_users=0] = ").size());
}

TEST(ParseCode, Calls) {
  EXPECT_EQ(parsed_line("x.a.b(y)"), "call_method[target=a.b](args = (%x, %y), kwargs = {})");
  EXPECT_EQ(parsed_line("self.a.b(y)"), "call_module[target=a.b](args = (%y,), kwargs = {})");
  EXPECT_EQ(parsed_line("self.a.b"), "get_attr[target=a.b]");
  EXPECT_EQ(parsed_line("getattr(x, \"0\")(y)"), "call_method[target=0](args = (%x, %y), kwargs = {})");
  EXPECT_EQ(parsed_line("(3).up()"), "call_method[target=up](args = (3,), kwargs = {})");
  EXPECT_EQ(parsed_line("torch.ops.aten.add.Tensor(x, y, alpha=2)"),
            "call_function[target=torch.ops.aten.add.Tensor](args = (%x, %y), kwargs = {alpha: 2})");
  EXPECT_EQ(parsed_line("torch.ops.aten.relu(x)"),
            "call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {})");
  EXPECT_EQ(parsed_line("operator.sub(x)"), "call_function[target=operator.sub](args = (%x,), kwargs = {})");
  EXPECT_EQ(parsed_line("torch.ops.aten.relu.default(**{'a': 1, 'b': x})"),
            "call_function[target=torch.ops.aten.relu.default](args = (), kwargs = {a: 1, b: %x})");
}

TEST(ParseCode, Signs) {
  auto function = [](std::string_view name, std::string_view args) {
    return fmt::format("call_function[target=operator.{}](args = ({}), kwargs = {{}})", name, args);
  };
  EXPECT_EQ(parsed_line("x+y"), function("add", "%x, %y"));
  EXPECT_EQ(parsed_line("x // -1"), function("floordiv", "%x, -1"));
  EXPECT_EQ(parsed_line("-x"), function("neg", "%x,"));
  EXPECT_EQ(parsed_line("-3"), function("neg", "3,"));
  EXPECT_EQ(parsed_line("-inf;  x = None"), function("neg", "inf,"));
  EXPECT_EQ(parsed_line("--3"), function("neg", "-3,"));
  EXPECT_EQ(parsed_line("-3 - x"), function("sub", "-3, %x"));
  EXPECT_EQ(parsed_line("-2j - x"), function("sub", "-2j, %x"));
  EXPECT_EQ(parsed_line("-2j"), function("neg", "2j,"));
  EXPECT_EQ(parsed_line("-3[x]"), function("getitem", "-3, %x"));
  EXPECT_EQ(parsed_line("x[(1, 2)]"), function("getitem", "%x, (1, 2)"));
  EXPECT_EQ(parsed_line("[x, y][0]"), function("getitem", "[%x, %y], 0"));
  EXPECT_EQ(parsed_line("torch.float32 == device(type='cpu')"), function("eq", "torch.float32, cpu"));
  EXPECT_EQ(parsed_line("x <= y"), function("le", "%x, %y"));
}

TEST(ParseCode, Strings) {
  auto text = [](std::string_view literal) {
    const Graph graph = parse_code(fmt::format("def forward(self):\n    return {}\n", literal));
    return std::string(graph.back()->args()[0].to_string_view());
  };
  EXPECT_EQ(text(R"("a\"b\'c\\")"), "a\"b'c\\");
  EXPECT_EQ(text(R"('\a\b\f\n\r\t\v\0\101')"), std::string("\a\b\f\n\r\t\v\0A", 9));
  EXPECT_EQ(text(R"('\x41\xe9\u20ac\U0001F600')"), "A\u00e9\u20ac\U0001f600");
  EXPECT_EQ(text(R"('\udcff')"), "\xff");
  EXPECT_ERROR(text(R"('\q')"), "line 2, column 14: expected an escape");
  EXPECT_ERROR(text(R"('\x4')"), "expected 2 hexadecimal digits but found '''");
  EXPECT_ERROR(text(R"('\ud800')"), "0xd800 is none");
  EXPECT_ERROR(text(R"('\U00110000')"), "0x110000 is none");
  EXPECT_ERROR(text("'a\nb'"),
               "line 2, column 12: expected the string that begins here to end with ' on its line");
}

TEST(ParseCode, ErrorsNamePlaceAndWhatWasExpected) {
  auto body = [](std::string_view lines) {
    return parse_code(fmt::format("def forward(self, x):\n{}", lines));
  };
  EXPECT_ERROR_TYPE(FormatError, parse_code(""),
                    "parse_code: line 1, column 1: expected 'def' but found the end of the text");
  EXPECT_ERROR(parse_code("def forward(self"), "line 1, column 17: expected ',' or ')'");
  EXPECT_ERROR(parse_code("def forward(self, 1):"),
               "column 19: expected the name of a parameter but found '1'");
  EXPECT_ERROR(parse_code("def forward(self, x, x):"),
               "column 22: expected a new name, but there is a parameter 'x'");
  EXPECT_ERROR(parse_code("def forward(self, x, y = x):"), "nothing above has the name 'x'");
  EXPECT_ERROR(parse_code("def forward(self, torch):"), "'torch' has a meaning of its own");
  EXPECT_ERROR(parse_code("def forward(self)\n    pass"),
               "line 1, column 18: expected ':' but found the end of the line");
  EXPECT_ERROR(parse_code("def forward(self) -> :"), "expected a type");
  EXPECT_ERROR(body("y = x.a()"), "line 2, column 1: expected a statement that is indented but found 'y'");
  EXPECT_ERROR(body("    y = x\n    z = x"),
               "line 3, column 9: expected a value, but nothing above has the name 'x'");
  EXPECT_ERROR(body("    y = x.a()\n    z = y"), "line 3, column 9: expected a call");
  EXPECT_ERROR(body("    y = z.a()"), "line 2, column 9: expected a function: there is no function 'z.a'");
  EXPECT_ERROR(body("    y = z + 1"),
               "line 2, column 9: expected a value, but nothing above has the name 'z'");
  EXPECT_ERROR(body("    x = x.a()"),
               "line 2, column 5: expected a new name, but there is a value 'x' already");
  EXPECT_ERROR(body("    lambda = x.a()"), "'lambda' has a meaning of its own");
  EXPECT_ERROR(body("    y = x.a.b"), "column 14: expected '(' and the arguments of the method");
  EXPECT_ERROR(body("    y = x + x + x"), "column 15: expected the end of the statement but found '+'");
  EXPECT_ERROR(body("    y = x ? 1"), "column 11: expected a sign like '+', '.', '[' or '(' but found '?'");
  EXPECT_ERROR(body("    y = torch.ops.aten.rellu.default(x)"), "line 2, column 9: expected a function");
  EXPECT_ERROR(body("    y = torch.ops.relu(x)"), "expected torch.ops.NAMESPACE.NAME.OVERLOAD");
  EXPECT_ERROR(body("    y = torch.relu(x)"), "there is no function 'torch.relu'");
  EXPECT_ERROR(body("    y = torch.float33 + x"), "'torch.float33' is none");
  EXPECT_ERROR(body("    y = self(x)"), "expected '.' and the name of an attribute but found '('");
  EXPECT_ERROR(body("    y = self.(x)"), "expected the name of an attribute after '.' but found '('");
  EXPECT_ERROR(body("    y = getattr(self, 'a.b')"), "column 23: expected the name of one attribute");
  EXPECT_ERROR(body("    y = self.f(a = 1, x)"), "column 23: expected an argument with a name");
  EXPECT_ERROR(body("    y = self.f(a = 1, a = 2)"), "column 23: expected a new name");
  EXPECT_ERROR(body("    y = self.f(x x)"), "expected ',' or ')' but found 'x'");
  EXPECT_ERROR(body("    y = self.f(**x)"), "expected '{'");
  EXPECT_ERROR(body("    y = self.f(**{1: x})"), "expected the names of arguments to be strings");
  EXPECT_ERROR(body("    y = self.f(x);  x"), "expected '=' but found the end of the text");
  EXPECT_ERROR(body("    return x\n    y = x.a()"),
               "line 3, column 5: expected nothing after the return but found 'y'");
  EXPECT_ERROR(body("    return"), "expected a value but found the end of the text");
  EXPECT_ERROR(body("    return \x01"), "expected a value but found the byte 0x01");
}

TEST(ParseCode, ParametersAreInTheOrderThatPythonHas) {
  auto heading = [](std::string_view parameters) {
    return parse_code(fmt::format("def forward(self, {}):\n    pass", parameters));
  };
  EXPECT_EQ(heading("a, b = 1, *c, d, e = 2, f, **g").placeholders().size(), 7u);
  EXPECT_ERROR_TYPE(
      FormatError, heading("*a, *b"),
      "line 1, column 23: expected a parameter without '*', since there is one with it already");
  EXPECT_ERROR(heading("**a, b"), "column 24: expected ')', since nothing comes after a parameter with '**'");
  EXPECT_ERROR(heading("**a, **b"), "column 24: expected ')'");
  EXPECT_ERROR(heading("**a, *b"), "column 24: expected ')'");
  EXPECT_ERROR(heading("***a"), "column 19: expected one or two stars before a parameter");
  EXPECT_ERROR(heading("a = 1, b"),
               "column 26: expected 'b' to have a default, since a parameter before it has one");
  EXPECT_ERROR(heading("*a = 1"), "column 19: expected no default: '*a' takes what is left");
  EXPECT_ERROR(heading("**a = {}"), "column 19: expected no default: '**a' takes what is left");
}

TEST(ParseCode, StatementsAreIndentedAlike) {
  EXPECT_EQ(parse_code("def f(self, x):\n  y = -x\n# a comment\n\n      # another\n  return y\n ").size(),
            3u);
  EXPECT_EQ(parse_code("class A:\n  def f(self, x):\n    y = -x\n    return y").size(), 3u);
  EXPECT_EQ(parse_code("def f(self, x):\n  y = self.f(x,\nx)\n  return y").size(), 3u);
  EXPECT_ERROR_TYPE(
      FormatError, parse_code("def f(self, x):\n    y = -x\n      z = -y\n    return z"),
      "line 3, column 7: expected a statement that is indented like the first one, by 4 but found 'z'");
  EXPECT_ERROR(
      parse_code("def f(self, x):\n    y = -x\n  return y"),
      "line 3, column 3: expected a statement that is indented like the first one, by 4 but found 'return'");
  EXPECT_ERROR(parse_code("def f(self, x):\n    y = -x\n\treturn y"),
               "line 3, column 2: expected a statement");
  EXPECT_ERROR(parse_code("class A:\n  def f(self, x):\n  return x"),
               "line 3, column 3: expected a statement that is indented but found 'return'");
}

// --- functions over trees --------------------------------------------------------------------------------

// def forward(self, d, n): d is {"a": x, "b": [y, z]}
GraphModule with_trees() {
  Graph graph;
  Node &x = graph.placeholder("d_1"), &y = graph.placeholder("d_2");
  graph.placeholder("d_3");
  graph.placeholder("n_1");
  Node& add = graph.call(op("aten::add.Tensor"), {v(x), v(y)});
  graph.output(Value::list({v(add), v(x)}));
  GraphModule module(std::move(graph));
  const TreeSpec dict = TreeSpec::dict({"a", "b"}, {TreeSpec(), TreeSpec::list({TreeSpec(), TreeSpec()})});
  module.set_call_spec({{"d", "n"},
                        TreeSpec::tuple({dict, TreeSpec()}),
                        TreeSpec::dict({"s", "t"}, {TreeSpec(), TreeSpec()})});
  return module;
}

void expect_reads_back(const GraphModule& module) {
  const CallSpec& spec = *module.call_spec();
  const GraphModule read = parse_module(module.code(), spec.arguments, spec.result);
  EXPECT_EQ(difference(module.graph(), read.graph()), "");
  EXPECT_EQ(read.code(), module.code());
  ASSERT_TRUE(read.call_spec());
  EXPECT_EQ(read.call_spec()->argument_names, spec.argument_names);
  EXPECT_EQ(read.call_spec()->arguments, spec.arguments);
  EXPECT_EQ(read.call_spec()->result, spec.result);
  EXPECT_EQ(difference(module.graph(), parse_code(module.code())), "");
}

TEST(ParseModule, ReadsWhatTakesTreesApart) {
  const GraphModule module = with_trees();
  EXPECT_EQ(module.code(), R"(


def forward(self, d, n):
    d_1, d_2, d_3, n_1, = fx_pytree.tree_flatten_spec([d, n], self._in_spec)
    add = torch.ops.aten.add.Tensor(d_1, d_2);  d_2 = None
    return pytree.tree_unflatten([add, d_1], self._out_spec)
    )");
  expect_reads_back(module);
  const CallSpec& spec = *module.call_spec();
  const GraphModule read = parse_module(module.code(), spec.arguments, spec.result);
  const Tensor x = from_data<float>({1, 2}), y = from_data<float>({3, 4});
  const Value dict = Dict{{"a", x}, {"b", Value::list({y, x})}};
  EXPECT_EQ(read.call({dict, 3}).to_string(), module.call({dict, 3}).to_string());
  EXPECT_EQ(read.call({dict}, {{"n", 3}}).to_dict().size(), 2u);
}

TEST(ParseModule, ArgumentsByPositionAndByName) {
  const GraphModule module = with_trees();
  for (const auto& [positional, text] : {std::pair{size_t{2}, "([d, n], {})"}, {1, "([d], {'n':n})"}}) {
    CallSpec spec = *module.call_spec();
    spec.num_positional = positional;
    module.set_call_spec(spec);
    EXPECT_NE(module.code().find(fmt::format("tree_flatten_spec({}, self._in_spec)", text)), std::string::npos);
    const GraphModule read = parse_module(module.code(), spec.arguments, spec.result);
    EXPECT_EQ(read.call_spec()->num_positional, positional);
    EXPECT_EQ(read.code(), module.code());
  }
}

TEST(ParseModule, TypesAndOtherNamesOfLeaves) {
  const GraphModule module = with_trees();
  for (const char* name : {"d_1", "n_1"})
    module.graph().find(name)->meta().type = parse_annotation("torch.Tensor");
  module.graph().output_node()->meta().type = parse_annotation("torch.Tensor");
  module.graph().find("d_2")->rename("zz");
  EXPECT_EQ(module.code(),
            "\n\n\ndef forward(self, d, n) -> torch.Tensor:\n"
            "    d_1 : torch.Tensor; n_1 : torch.Tensor; \n"
            "\n"
            "    d_1 , d_2, d_3, n_1 , = fx_pytree.tree_flatten_spec([d, n], self._in_spec)\n"
            "    zz = d_2\n"
            "    add = torch.ops.aten.add.Tensor(d_1, zz);  zz = None\n"
            "    return pytree.tree_unflatten([add, d_1], self._out_spec)\n    ");
  expect_reads_back(module);
  EXPECT_EQ(parse_code(module.code()).find("n_1")->meta().type, Type(Type::Kind::kTensor));
}

TEST(ParseModule, TreesWithoutLeaves) {
  Graph graph;
  Node& w = graph.get_attr("w");
  graph.output(Value::list({v(w)}));
  GraphModule module(std::move(graph));
  module.set_call_spec({{"d"}, TreeSpec::tuple({TreeSpec::list({})}), TreeSpec::list({TreeSpec()})});
  EXPECT_EQ(module.code(), R"(


def forward(self, d):
    w = self.w
    return pytree.tree_unflatten([w], self._out_spec)
    )");
  expect_reads_back(module);
}

TEST(ParseModule, ErrorsNamePlaceAndWhatWasExpected) {
  auto body = [](std::string_view lines) {
    return parse_code(fmt::format("def forward(self, d, n):\n{}", lines));
  };
  EXPECT_ERROR_TYPE(FormatError, body("    a, b = fx_pytree.tree_flatten_spec([d, n], self._in_spec)"),
                    "line 2, column 10: expected the name of a leaf and ',' but found '='");
  EXPECT_ERROR(body("    a, = fx_pytree.tree_flatten_spec([d], self._in_spec)"), "column 40: expected ', '");
  EXPECT_ERROR(body("    a, = fx_pytree.tree_flatten_spec([n, d], self._in_spec)"),
               "column 39: expected the parameter 'd' but found 'n'");
  EXPECT_ERROR(body("    a, = something(d)"), "column 10: expected 'fx_pytree.tree_flatten_spec('");
  EXPECT_ERROR(body("    a, a, = fx_pytree.tree_flatten_spec([d, n], self._in_spec)"),
               "column 8: expected a new name, but there is a leaf 'a' already");
  EXPECT_ERROR(body("    a, = fx_pytree.tree_flatten_spec([d, n], self._in_spec)\n    return [a]"),
               "line 3, column 12: expected 'pytree.tree_unflatten(' but found '['");
  EXPECT_ERROR(body("    return pytree.tree_unflatten(3, self._out_spec)"),
               "column 34: expected a list of the result's leaves");
  EXPECT_ERROR(body("    return pytree.tree_unflatten([3])"), "expected ', self._out_spec)'");
  EXPECT_ERROR(body("    a = -d\n    return pytree.tree_unflatten([a], self._out_spec)"),
               "line 1, column 19: expected 'd' to be taken apart by fx_pytree.tree_flatten_spec");
  EXPECT_ERROR(parse_code("def f(self, d = 1):\n    a, = fx_pytree.tree_flatten_spec([d], self._in_spec)"),
               "column 13: expected a parameter that is a tree to have a name only");
  const std::string code = with_trees().code();
  const TreeSpec leaf, two = TreeSpec::tuple({leaf, leaf}),
                       four = TreeSpec::tuple({TreeSpec::list({leaf, leaf, leaf}), leaf});
  EXPECT_ERROR(parse_module("def f(self, x):\n    return x", two, leaf), "use parse_code");
  EXPECT_ERROR(parse_module(code, two, two),
               "the code takes 2 arguments of 4 leaves, but the trees given for them are 2 of 2");
  EXPECT_ERROR(parse_module(code, four, leaf),
               "the code gives 2 leaves, but the tree given for its result has 1");
}

TEST(ParseCode, ValuesThatAreNone) {
  auto value = [](std::string_view text) {
    return parse_code(fmt::format("def f(self, x):\n    return {}", text));
  };
  EXPECT_ERROR(value("9223372036854775808"), "column 12: expected a number that 64 bits can hold");
  EXPECT_ERROR(value("1e999"), "expected a number that a double can hold");
  EXPECT_ERROR(value("12ab"), "expected the end of the number but found 'ab'");
  EXPECT_ERROR(value("(1+2)"), "expected an imaginary number");
  EXPECT_ERROR(value("(1+x)"), "expected an imaginary number but found 'x'");
  EXPECT_ERROR(value("[1 2]"), "expected ',' or ']' but found '2'");
  EXPECT_ERROR(value("(1 2)"), "expected ',' or ')' but found '2'");
  EXPECT_ERROR(value("{1, 2}"), "expected ':' but found ','");
  EXPECT_ERROR(value("{1: 2, 1: 3}"), "column 19: expected a new key");
  EXPECT_ERROR(value("{x: 2}"), "a node cannot be the key of a dictionary");
  EXPECT_ERROR(value("device('gpu')"), "expected a device: \"gpu\" is not a device");
  EXPECT_ERROR(value("device(type='sim', index=200)"), "expected the index of a device");
  EXPECT_ERROR(value("float('1')"), "expected 'inf', '-inf' or 'nan'");
  EXPECT_ERROR(value("complex(1j, 2)"), "expected a real number");
  EXPECT_ERROR(value("torch.Tensor(size=[2], dtype=float32)"), "'torch.Tensor' is none");
  EXPECT_ERROR(value(std::string(100000, '[')), "expected at most 500 containers inside each other");
}

TEST(ParseGraph, ShortTexts) {
  const Graph graph = parse_graph(R"(
graph():
  # A comment, and lines without what a printer adds.
  %x = placeholder[target=x]
  %y : Tensor = call_function[target=torch.ops.aten.add.Tensor](args = (%x, 1))
  %o = output[target=output](args = (%y,))
)");
  EXPECT_EQ(graph.to_string(), R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %y : Tensor [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, 1), kwargs = {})
    return y)");
  EXPECT_EQ(graph.back()->name(), "o");
}

TEST(ParseGraph, ErrorsNamePlaceAndWhatWasExpected) {
  auto line = [](std::string_view text) { return parse_graph(fmt::format("graph():\n    {}\n", text)); };
  EXPECT_ERROR_TYPE(FormatError, parse_graph("graph"),
                    "parse_graph: line 1, column 1: expected 'graph():' but found 'graph'");
  EXPECT_ERROR(line("x"), "line 2, column 5: expected '%' and the name of a node, or 'return' but found 'x'");
  EXPECT_ERROR(line("% = a"), "expected the name of a node after %");
  EXPECT_ERROR(line("%x"), "expected '=' but found the end of the line");
  EXPECT_ERROR(line("%x = call[target=x]"), "column 10: expected the kind of the node, like call_function");
  EXPECT_ERROR(line("%x = placeholder"), "expected '[target='");
  EXPECT_ERROR(line("%x = placeholder[target=x"), "expected ']' but found the end of the line");
  EXPECT_ERROR(line("%x : [num_users=] = placeholder[target=x]"),
               "expected the number of users but found ']'");
  EXPECT_ERROR(line("%x : [num_users=1] = placeholder[target=x]"),
               "line 2, column 10: expected [num_users=0]: that many nodes use 'x'");
  EXPECT_ERROR(line("%x : Tensor [num_users=99] = placeholder[target=x]\n    return (%x, %x)"),
               "line 2, column 17: expected [num_users=1]: that many nodes use 'x'");
  EXPECT_ERROR(line("%x : [num_users=99999999999999999999] = placeholder[target=x]"),
               "expected the number of users");
  EXPECT_ERROR(line("%x : Tensor"), "expected a type and '='");
  EXPECT_ERROR(line("%x = call_function[target=foo](args = (), kwargs = {})"),
               "line 2, column 31: expected a function: there is no function 'foo'");
  EXPECT_ERROR(line("%x = call_module[target=foo](args = 1)"), "expected a tuple");
  EXPECT_ERROR(line("%x = call_module[target=foo](args = (y,))"), "expected a value but found 'y'");
  EXPECT_ERROR(line("%x = call_module[target=foo](args = (%y,))"), "nothing above has the name 'y'");
  EXPECT_ERROR(line("%x = call_module[target=foo](args = (), kwargs = {a: 1, a: 2})"), "expected a new name");
  EXPECT_ERROR(line("%x = call_module[target=foo](kwargs = {})"), "expected 'args' but found 'kwargs'");
  EXPECT_ERROR(line("return 1\n    return 2"), "line 3, column 5: expected nothing after the output");
}

// --- differences -----------------------------------------------------------------------------------------

TEST(Difference, SaysWhereAndHow) {
  auto graph = [](std::string_view body) {
    return parse_graph(fmt::format("graph():\n%x = placeholder[target=x]\n{}", body));
  };
  auto compare = [&](std::string_view a, std::string_view b) { return difference(graph(a), graph(b)); };
  EXPECT_EQ(compare("return %x", "return %x"), "");
  EXPECT_EQ(compare("return %x", ""), "2 nodes against 1: only the first has node 1 'output'");
  EXPECT_EQ(compare("%a = get_attr[target=w]", "%b = get_attr[target=w]"), "node 1: name: 'a' against 'b'");
  EXPECT_EQ(compare("%a = get_attr[target=w]", "%a = get_attr[target=v]"), "node 1 'a': target: w against v");
  EXPECT_EQ(compare("%a = get_attr[target=w]", "%a = placeholder[target=w]"),
            "node 1 'a': kind: get_attr against placeholder");
  EXPECT_EQ(compare("return [1, (2, {'k': 3})]", "return [1, (2, {'k': %x})]"),
            "node 1 'output': args[0][1][1]['k']: 3 against %x");
  EXPECT_EQ(compare("return {'k': 3}", "return {'l': 3}"),
            "node 1 'output': args[0].keys()[0]: 'k' against 'l'");
  EXPECT_EQ(compare("return [1]", "return [1, 2]"), "node 1 'output': args[0]: 1 elements against 2");
  EXPECT_EQ(compare("return [1]", "return (1,)"), "node 1 'output': args[0]: [1] against (1,)");
  EXPECT_EQ(compare("return 1", "return True"), "node 1 'output': args[0]: 1 against True");
  EXPECT_EQ(compare("return 0.0", "return -0.0"), "node 1 'output': args[0]: 0.0 against -0.0");
  EXPECT_EQ(compare("return nan", "return nan"), "");
  const char* call = "%a = call_module[target=m](args = (), kwargs = {})";
  EXPECT_EQ(compare(call, "%a = call_module[target=m](args = (1,))"), "node 1 'a': 0 arguments against 1");
  EXPECT_EQ(compare(call, "%a = call_module[target=m](args = (), kwargs = {k: 1})"),
            "node 1 'a': 0 keywords against 1");
  EXPECT_EQ(compare("%a = call_module[target=m](args = (), kwargs = {l: 1})",
                    "%a = call_module[target=m](args = (), kwargs = {k: 1})"),
            "node 1 'a': keyword 'l' against 'k'");
  EXPECT_EQ(compare("%a = call_module[target=m](args = (), kwargs = {k: 2})",
                    "%a = call_module[target=m](args = (), kwargs = {k: 1})"),
            "node 1 'a': kwargs['k']: 2 against 1");
  EXPECT_TRUE(same_graph(graph(call), graph(call)));
  EXPECT_FALSE(same_graph(graph(call), graph("")));
}

TEST(Difference, LeavesMetaAside) {
  Graph a, b;
  a.placeholder("x").meta().type = parse_annotation("Tensor");
  b.placeholder("x");
  EXPECT_TRUE(same_graph(a, b));
}

// --- broken texts ----------------------------------------------------------------------------------------

// Either a graph comes, or an error that names line and column; nothing else, and no crash.
void expect_graph_or_location(std::string_view text, Graph (*parse)(std::string_view)) {
  try {
    parse(text).lint();
  } catch (const FormatError& error) {
    EXPECT_THAT(error.message(), ::testing::ContainsRegex(": line [0-9]+, column [0-9]+: expected ")) << text;
  }
}

std::string mutated(std::string text, testing::RandomGraph& random) {
  static constexpr std::string_view signs = "()[]{}=:;,.'\"\\%*-+/ \n#0x9ejselfgetattr";
  for (size_t changes = 1 + random.below(3); changes > 0 && !text.empty(); --changes) {
    const size_t at = random.below(text.size());
    switch (random.below(5)) {
      case 0:
        text.erase(at, 1 + random.below(8));
        break;
      case 1:
        text.insert(at, 1, signs[random.below(signs.size())]);
        break;
      case 2:
        text[at] = static_cast<char>(random.below(256));
        break;
      case 3:
        text.insert(at, text.substr(random.below(text.size()), random.below(30)));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

TEST(BrokenTexts, AreGraphsOrErrorsThatNameALocation) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    testing::RandomGraph random(seed);
    const Graph graph = random.make(1 + seed % 12);
    const std::string code = graph.code(), quoted = quoted_text(graph);
    for (int i = 0; i < 50; ++i) {
      expect_graph_or_location(mutated(code, random), parse_code);
      expect_graph_or_location(mutated(quoted, random), parse_graph);
    }
  }
}

// support/every_graph.cc is told of the graphs that other tests make.
TEST(RoundTrip, EveryGraphOfAModuleAndOfARunIsReadBack) {
  const int before = testing::round_trips;
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(v(graph.call_function("aten::neg", {v(x)})));
  GraphModule module(std::move(graph));
  EXPECT_EQ(testing::round_trips, before + 1);
  module.call({Value(ones({2}))});
  EXPECT_EQ(testing::round_trips, before + 2);
}

}  // namespace
}  // namespace weft
