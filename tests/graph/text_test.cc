// The texts of a graph: every kind of value and statement as PyTorch 2.13 writes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/support/nodes.h"
#include "support/expect_error.h"
#include "weft/core/from_data.h"
#include "weft/graph/annotation.h"
#include "weft/graph/compare.h"
#include "weft/graph/graph_module.h"
#include "weft/graph/parse.h"
#include "weft/graph/text.h"
#include "weft/ops/fake.h"
#include "weft/ops/operators.h"

namespace weft {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

using ::testing::HasSubstr;

using testing::op;
using testing::v;

// What `return` is followed by in the code of a graph that returns the value.
std::string code_of(const Value& value) {
  Graph graph;
  graph.output(value);
  const std::string code = graph.code(), before = "\n\n\ndef forward(self):\n    return ", after = "\n    ";
  EXPECT_TRUE(code.starts_with(before) && code.ends_with(after)) << code;
  return code.substr(before.size(), code.size() - before.size() - after.size());
}

// The right side of the one statement.
std::string call_of(const Graph& graph) {
  const std::string code = graph.code(), name = graph.back()->name();
  const std::string before = "\n\n\ndef forward(self):\n    " + name + " = ",
                    after = ";  " + name + " = None\n    ";
  EXPECT_TRUE(code.starts_with(before) && code.ends_with(after)) << code;
  return code.substr(before.size(), code.size() - before.size() - after.size());
}

// --- values ----------------------------------------------------------------------------------------------

TEST(ValueCode, Numbers) {
  EXPECT_EQ(code_of(Value()), "None");
  EXPECT_EQ(code_of(true), "True");
  EXPECT_EQ(code_of(-1), "-1");
  EXPECT_EQ(code_of(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(code_of(1.0), "1.0");
  EXPECT_EQ(code_of(-0.0), "-0.0");
  EXPECT_EQ(code_of(1e15), "1000000000000000.0");
  EXPECT_EQ(code_of(1e16), "1e+16");
  EXPECT_EQ(code_of(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(code_of(1e-5), "1e-05");
  EXPECT_EQ(code_of(0.0001), "0.0001");
  EXPECT_EQ(code_of(5e-324), "5e-324");
  EXPECT_EQ(code_of(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(code_of(kInf), "inf");
  EXPECT_EQ(code_of(-kInf), "-inf");
  EXPECT_EQ(code_of(kNan), "nan");
  EXPECT_EQ(code_of(-kNan), "nan");
}

TEST(ValueCode, ComplexNumbers) {
  auto z = [](double re, double im) { return code_of(Complex<double>(re, im)); };
  EXPECT_EQ(z(0, 1), "1j");
  EXPECT_EQ(z(0, -1.5), "-1.5j");
  EXPECT_EQ(z(1, 2), "(1+2j)");
  EXPECT_EQ(z(-0.0, 2), "(-0+2j)");
  EXPECT_EQ(z(1, -0.0), "(1-0j)");
  EXPECT_EQ(z(0, -0.0), "-0j");
  EXPECT_EQ(z(1e20, 1e-7), "(1e+20+1e-07j)");
  EXPECT_EQ(z(kInf, 1), "(inf+1j)");
  // PyTorch writes infj and (1+nanj), which no Python reads.
  EXPECT_EQ(z(0, kInf), "complex(0.0, inf)");
  EXPECT_EQ(z(1, kNan), "complex(1.0, nan)");
}

TEST(ValueCode, Strings) {
  EXPECT_EQ(code_of("tanh"), "'tanh'");
  EXPECT_EQ(code_of("a'b"), R"("a'b")");
  EXPECT_EQ(code_of(R"(a'b"c\)"), R"('a\'b"c\\')");
  EXPECT_EQ(code_of(std::string_view("\n\t\r\0\x7f", 5)), R"('\n\t\r\x00\x7f')");
  EXPECT_EQ(code_of("\u0080\u00a0\u00e9\U0001f600"), "'\\x80\\xa0\u00e9\U0001f600'");
  // Bytes that are no UTF-8, as Python shows what os.fsdecode gives for them.
  EXPECT_EQ(code_of("\xff"), R"('\udcff')");
  EXPECT_EQ(code_of("a\xc3"), R"('a\udcc3')");
  EXPECT_EQ(code_of("\xc0\x80"), R"('\udcc0\udc80')");
  EXPECT_EQ(code_of("\xed\xb2\x80"), R"('\udced\udcb2\udc80')");
  EXPECT_EQ(code_of("\xf4\x90\x80\x80"), R"('\udcf4\udc90\udc80\udc80')");
}

TEST(ValueCode, TypesAndPlaces) {
  EXPECT_EQ(code_of(kBFloat16), "torch.bfloat16");
  EXPECT_EQ(code_of(kBool), "torch.bool");
  EXPECT_EQ(code_of(Layout::kStrided), "torch.strided");
  EXPECT_EQ(code_of(MemoryFormat::kContiguous), "torch.contiguous_format");
  EXPECT_EQ(code_of(MemoryFormat::kPreserve), "torch.preserve_format");
  EXPECT_EQ(code_of(MemoryFormat::kChannelsLast), "torch.channels_last");
  EXPECT_EQ(code_of(kCpu), "device(type='cpu')");
  EXPECT_EQ(code_of(Device("sim:1")), "device(type='sim', index=1)");
  EXPECT_EQ(code_of(from_data(std::vector<float>{1, 2})), "torch.Tensor(size=[2], dtype=float32)");
}

TEST(ValueCode, Containers) {
  EXPECT_EQ(code_of(Value::list({})), "[]");
  EXPECT_EQ(code_of(Value::tuple({})), "()");
  EXPECT_EQ(code_of(Dict()), "{}");
  EXPECT_EQ(code_of(Value::tuple({1})), "(1,)");
  EXPECT_EQ(code_of(Value::list({1, Value::tuple({2, "a"})})), "[1, (2, 'a')]");
  EXPECT_EQ(code_of(Dict{{"a", 1}, {2, Value::list({})}, {3.5, Dict()}, {Value::tuple({1, 2}), 3}}),
            "{'a': 1, 2: [], 3.5: {}, (1, 2): 3}");
}

// --- statements ------------------------------------------------------------------------------------------

TEST(StatementCode, Methods) {
  auto method = [](std::string_view name, ValueList args) {
    Graph graph;
    graph.call_method(name, std::move(args));
    return call_of(graph);
  };
  EXPECT_EQ(method("upper", {"abc", 1}), "'abc'.upper(1)");
  EXPECT_EQ(method("foo.bar", {Value::list({1})}), "[1].foo.bar()");
  EXPECT_EQ(method("0", {Value(), 1}), R"(getattr(None, "0")(1))");
  // PyTorch writes 3.up(1) here, which no Python reads, and torch.float32.up(), which is a function's name.
  EXPECT_EQ(method("up", {3, 1}), "(3).up(1)");
  EXPECT_EQ(method("up", {kFloat32}), "(torch.float32).up()");
  EXPECT_EQ(method("up", {kCpu}), "device(type='cpu').up()");
}

TEST(StatementCode, Attributes) {
  auto attribute = [](std::string_view path) {
    Graph graph;
    graph.get_attr(path);
    return call_of(graph);
  };
  EXPECT_EQ(attribute("weight"), "self.weight");
  EXPECT_EQ(attribute("a.0.b"), R"(getattr(self.a, "0").b)");
  EXPECT_EQ(attribute("0.1"), R"(getattr(getattr(self, "0"), "1"))");
  EXPECT_EQ(attribute("a..b"), R"(getattr(self.a, "").b)");
  EXPECT_EQ(attribute(""), R"(getattr(self, ""))");
  EXPECT_EQ(attribute("a."), R"(getattr(self.a, ""))");
  EXPECT_EQ(attribute("it's"), R"(getattr(self, "it's"))");
  EXPECT_EQ(attribute("\"\n"), R"(getattr(self, '"\n'))");
}

TEST(StatementCode, Signs) {
  auto function = [](std::string_view name, ValueList args, Kwargs kwargs = {}) {
    Graph graph;
    graph.call(python_function(name), std::move(args), std::move(kwargs));
    return call_of(graph);
  };
  EXPECT_EQ(function("operator.add", {1, 2}), "1 + 2");
  EXPECT_EQ(function("operator.sub", {1, -2}), "1 - -2");
  EXPECT_EQ(function("operator.floordiv", {1, 2}), "1 // 2");
  EXPECT_EQ(function("operator.ge", {1, 2}), "1 >= 2");
  EXPECT_EQ(function("operator.neg", {-3}), "--3");
  EXPECT_EQ(function("operator.getitem", {Value::tuple({1, 2}), 0}), "(1, 2)[0]");
  EXPECT_EQ(function("operator.getitem", {"ab", Value::tuple({1, 2})}), "'ab'[(1, 2)]");
  // A sign means one function only: other numbers of arguments are calls.
  EXPECT_EQ(function("operator.sub", {1}), "operator.sub(1)");
  EXPECT_EQ(function("operator.neg", {1, 2}), "operator.neg(1, 2)");
  EXPECT_EQ(function("operator.add", {1, 2, 3}), "operator.add(1, 2, 3)");
  EXPECT_EQ(function("operator.add", {1}, {{"b", 2}}), "operator.add(1, b = 2)");
}

TEST(StatementCode, KeywordsThatAreNoNames) {
  Graph graph;
  graph.call(op("aten::relu"), {}, {{"from", 1}, {"a-b", 2}, {"c", 3}});
  EXPECT_EQ(call_of(graph), "torch.ops.aten.relu.default(from = 1, **{'a-b': 2}, c = 3)");
}

TEST(StatementCode, Types) {
  Graph graph;
  Node& x = graph.placeholder("x", Value(1));
  x.meta().type = parse_annotation("torch.Tensor");
  Node& relu = graph.call(op("aten::relu"), {v(x)});
  relu.meta().type = parse_annotation("typing.Dict[str, torch.Tensor]");
  Node& neg = graph.call(op("aten::neg"), {v(relu)});
  neg.meta().type = parse_annotation("a = b");
  graph.output(v(neg)).meta().type = parse_annotation("torch.Tensor");
  EXPECT_EQ(graph.code(), R"(


def forward(self, x : torch.Tensor = 1) -> torch.Tensor:
    relu : typing.Dict[str, torch.Tensor] = torch.ops.aten.relu.default(x);  x = None
    neg : 'a = b' = torch.ops.aten.neg.default(relu);  relu = None
    return neg
    )");
  EXPECT_EQ(x.line(), "%x : torch.Tensor [num_users=1] = placeholder[target=x](default=1)");
}

TEST(StatementCode, ParametersOfOtherNames) {
  Graph graph;
  graph.placeholder("*args");
  Node& self = graph.placeholder("self");
  graph.placeholder("**kwargs", Value(-kInf));
  graph.output(v(self));
  EXPECT_EQ(graph.code(), R"(


def forward(self, *args, self, **kwargs = -inf):
    _args = args
    self_1 = self
    _kwargs = kwargs
    return self_1
    )");
}

// Names that code gives a meaning of its own are no names of values.
TEST(StatementCode, NamesOfModulesAreKept) {
  Names names;
  EXPECT_EQ(names.make("operator"), "operator_1");
  EXPECT_EQ(names.make("math"), "math_1");
  EXPECT_EQ(names.make("builtins"), "builtins_1");
  EXPECT_EQ(names.make("self"), "self_1");
}

// --- readable code ---------------------------------------------------------------------------------------

// What PyTorch prints for make_fx(f, tracing_mode="symbolic") of a function with a sum, a product with a
// number, topk and sizes.
TEST(Readable, GraphModulesInsideOfAModule) {
  // As PyTorch prints it.
  GraphModule relu(
      parse_code("def forward(self, input : torch.Tensor) -> torch.Tensor:\n    input_1 = input\n"
                 "    relu = torch.ops.aten.relu.default(input_1)\n    return relu\n"));
  GraphModule inner(parse_code("def forward(self, x):\n    exp = x.exp()\n    return exp\n"));
  GraphModule outer(
      {{"inner", Value(Ref<ValueObject>(inner.callable()))},
       {"z", Value(Ref<ValueObject>(relu.callable()))},
       {"w", ones({2})}},
      parse_code("def forward(self, x):\n    inner = self.inner(x)\n    z = self.z(inner)\n    w = self.w\n"
                 "    add = z + w\n    return add\n"),
      "Outer");
  EXPECT_EQ(readable(outer), R"(class Outer(torch.nn.Module):
    def forward(self, x):
        # No stacktrace found for following nodes
        inner = self.inner(x);  x = None
        z = self.z(inner);  inner = None
        w = self.w
        add = z + w;  z = w = None
        return add

    class inner(torch.nn.Module):
        def forward(self, x):
            # No stacktrace found for following nodes
            exp = x.exp();  x = None
            return exp

    class z(torch.nn.Module):
        def forward(self, input : torch.Tensor) -> torch.Tensor:
            input_1 = input

            # No stacktrace found for following nodes
            relu = torch.ops.aten.relu.default(input_1);  input_1 = None
            return relu
)");
}

TEST(Readable, TypesAndSizes) {
  Ref<ShapeEnv> env = ShapeEnv::create();
  SymInt rows = env->create_symbol(3, "x.size(0)"), columns = env->create_symbol(4, "x.size(1)");
  auto fake = [](std::initializer_list<SymInt> sizes, DType dtype = kFloat32) {
    FakeMode mode;
    return empty(std::vector<SymInt>(sizes), dtype);
  };
  Graph graph;
  Node &x = graph.placeholder("x_1"), &n = graph.placeholder("n_1", Value(2));
  x.meta().value = fake({rows, columns});
  n.meta().value = rows;
  Node& mul = graph.call(op("aten::mul.Tensor"), {v(x), v(n)});
  mul.meta().value = fake({rows, columns});
  Node& topk = graph.call(op("aten::topk"), {v(mul), 2});
  topk.meta().value = Value::tuple({fake({rows, 2}), fake({rows, 2}, kInt64)});
  Node& values = graph.call(python_function("operator.getitem"), {v(topk), 0});
  values.meta().value = fake({rows, 2});
  Node& indices = graph.call(python_function("operator.getitem"), {v(topk), 1});
  indices.meta().value = fake({rows, 2}, kInt64);
  Node& size = graph.call_method("size", {v(x), 0});
  size.meta().value = rows;
  Node& product = graph.call(python_function("operator.mul"), {v(size), v(size)});
  product.meta().value = rows * rows;
  graph.output(Value::tuple({v(values), Dict{{"k", v(product)}}}));
  const std::string s0 = rows.to_string(), s1 = columns.to_string();
  EXPECT_EQ(readable(graph, "f"), fmt::format(R"py(class f(torch.nn.Module):
    def forward(self, x_1: "f32[{0}, {1}]", n_1: "Sym({0})" = 2):
        # No stacktrace found for following nodes
        mul: "f32[{0}, {1}]" = torch.ops.aten.mul.Tensor(x_1, n_1);  n_1 = None
        topk = torch.ops.aten.topk.default(mul, 2);  mul = None
        getitem: "f32[{0}, 2]" = topk[0]
        getitem_1: "i64[{0}, 2]" = topk[1];  topk = getitem_1 = None
        size: "Sym({0})" = x_1.size(0);  x_1 = None
        mul_1: "Sym({0}**2)" = size * size;  size = None
        return (getitem, {{'k': mul_1}})
)py",
                                              s0, s1));
  EXPECT_THAT(readable(graph, "f", {.strides = true}),
              HasSubstr(fmt::format("x_1: \"f32[{0}, {1}][{1}, 1]\", n_1", s0, s1)));
  EXPECT_THAT(readable(graph, "f", {.devices = true}),
              HasSubstr("getitem_1: \"i64[" + s0 + ", 2]cpu\" = topk[1]"));
  EXPECT_THAT(readable(graph, "f", {.strides = true, .devices = true}),
              HasSubstr("getitem: \"f32[" + s0 + ", 2][2, 1]cpu\" = topk[0]"));
}

TEST(Readable, WhereCallsWereMade) {
  const char* trace =
      "  File \"/a/b.py\", line 3, in main\n    run()\n  File \"m.py\", line 7, in forward\n    return x + "
      "1\n";
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
  y.rename("z");
  auto relu = [&](Node& input, std::string source) -> Node& {
    Node& node = graph.call(op("aten::relu"), {v(input)});
    if (!source.empty()) node.meta().source = std::move(source);
    return node;
  };
  Node &a = relu(x, trace), &b = relu(a, trace), &c = relu(b, ""), &d = relu(c, "several\nlines"),
       &e = relu(d, "net.cc:12 in forward");
  e.meta().type = parse_annotation("torch.Tensor");
  graph.output(v(e));
  EXPECT_EQ(readable(graph), R"(class GraphModule(torch.nn.Module):
    def forward(self, x, y):
        z = y

        # File: m.py:7 in forward, code: return x + 1
        relu = torch.ops.aten.relu.default(x);  x = None
        relu_1 = torch.ops.aten.relu.default(relu);  relu = None

        # No stacktrace found for following nodes
        relu_2 = torch.ops.aten.relu.default(relu_1);  relu_1 = None
        relu_3 = torch.ops.aten.relu.default(relu_2);  relu_2 = None

        # File: net.cc:12 in forward
        relu_4 : torch.Tensor = torch.ops.aten.relu.default(relu_3);  relu_3 = None
        return relu_4
)");
  EXPECT_EQ(difference(parse_code(readable(graph)), graph), "");
}

TEST(Readable, SmallGraphs) {
  Graph graph;
  EXPECT_EQ(readable(graph), "class GraphModule(torch.nn.Module):\n    def forward(self):\n        pass\n");
  graph.output(v(graph.placeholder("x")));
  EXPECT_EQ(readable(graph),
            "class GraphModule(torch.nn.Module):\n    def forward(self, x):\n        return x\n");
}

// --- size ------------------------------------------------------------------------------------------------

TEST(GraphTextSize, ALongChain) {
  Graph graph;
  Node* last = &graph.placeholder("x");
  for (int i = 0; i < 200000; ++i) last = &graph.call(op("aten::neg"), {v(*last)});
  graph.output(v(*last));
  const std::string end =
      "\n    neg_199999 = torch.ops.aten.neg.default(neg_199998);  neg_199998 = None"
      "\n    return neg_199999\n    ";
  EXPECT_TRUE(graph.code().ends_with(end));
  EXPECT_TRUE(graph.to_string().ends_with("\n    return neg_199999"));
  EXPECT_TRUE(graph.tabular().ends_with("(neg_199999,)  {}"));
}

// One row with all nodes among its arguments does not make every row as long.
TEST(GraphTextSize, AWideRowOfATable) {
  Graph graph;
  ValueList all;
  for (int i = 0; i < 20000; ++i) all.push_back(v(graph.placeholder("x")));
  graph.output(Value::tuple(std::move(all)));
  EXPECT_LT(graph.tabular().size(), 10000000u);
}

}  // namespace
}  // namespace weft
