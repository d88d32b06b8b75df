// Graph modules as C++ classes: names, constants, and what has no C++ form. That the classes compile and
// compute the same is Package.ClassesOfToFolderBuildAndRun.
#include "weft/io/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

#include "io/cpp_text.h"
#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/capture/make_graph.h"
#include "weft/func/control_flow.h"
#include "weft/func/out_dtype.h"
#include "weft/graph/parse.h"
#include "weft/nn/layers.h"
#include "weft/ops/overloads.h"

namespace weft {
namespace {

using testing::expect_equal;
using ::testing::HasSubstr;
using ::testing::Not;

std::string body_of(const std::string& code) {
  return cpp_source(GraphModule(parse_code(code)), "Foo").source;
}

// --- names -----------------------------------------------------------------------------------------------

TEST(CppNames, AreIdentifiersOfTheirOwn) {
  CppNames names;
  EXPECT_EQ(names.take("x"), "x");
  EXPECT_EQ(names.take("x"), "x_1");
  EXPECT_EQ(names.take("seq.0.weight"), "seq_0_weight");
  EXPECT_EQ(names.take("seq_0.weight"), "seq_0_weight_1");
  EXPECT_EQ(names.take("0"), "n0");
  EXPECT_EQ(names.take("class"), "class_");
  EXPECT_EQ(names.take("class"), "class_1");
  EXPECT_EQ(names.take("Tensor"), "Tensor_");
  EXPECT_EQ(names.take("__init__"), "_init_");
  EXPECT_EQ(names.take("_Private"), "n_Private");
  EXPECT_EQ(names.take("größe"), "gr_e");
  EXPECT_EQ(names.take(""), "n");
  for (const char* name : {"", "1x", "a-b", "a b", "int", "a__b", "_A", "größe"})
    EXPECT_FALSE(is_cpp_identifier(name));
  for (const char* name : {"x", "_x", "Foo", "Foo_2"}) EXPECT_TRUE(is_cpp_identifier(name));
}

TEST(CppText, ASizeForATensorIsANumber) {
  auto f = [](const Tensor& x) { return zeros({x.size(1)}) + x.size(0); };
  GraphModule g = make_graph(f, {.mode = CaptureMode::kSymbolic})(randn({4, 6}));
  EXPECT_THAT(cpp_source(g, "Foo").source,
              HasSubstr("weft::add(zeros, weft::number_as_tensor(sym_size_int_1)"));
  expect_equal(number_as_tensor(Value(ones({2}))), ones({2}));
}

TEST(CppText, NodesWithoutTheirArgumentsAreNoTrouble) {
  auto source = [](const std::string& line) {
    GraphModule module;
    module.set_graph(
        parse_graph("graph():\n    %x = placeholder[target=x]\n    " + line + "\n    return %x"));
    return cpp_source(module, "Foo").source;
  };
  EXPECT_THAT(source("%getitem : [num_users=0] = call_function[target=operator.getitem]"),
              HasSubstr("weft::python_function(\"operator.getitem\").run(ValueList{})"));
  EXPECT_THAT(source("%add : [num_users=0] = call_function[target=operator.add](args = (%x,), kwargs = {})"),
              HasSubstr("weft::python_function(\"operator.add\").run(ValueList{x})"));
  EXPECT_ERROR(source("%relu : [num_users=0] = call_method[target=relu]"),
               "line 3, column 6: expected a node that can be: node: call_method 'relu' takes the value that "
               "it is called on");
  EXPECT_ERROR(body_of("def forward(self, x):\n    max_1 = torch.ops.aten.max.dim(x, 0)\n"
                       "    a = max_1[2]\n    return a\n"),
               "node 'a' takes item 2 of the 2 that 'max_1' gives");
}

TEST(CppText, ConstantsReadBackAsTheyAre) {
  EXPECT_EQ(cpp_double(0.1), "0.1");
  EXPECT_EQ(cpp_double(2), "2.0");
  EXPECT_EQ(cpp_double(1e300), "1e+300");
  EXPECT_EQ(cpp_double(-std::numeric_limits<double>::infinity()), "-std::numeric_limits<double>::infinity()");
  EXPECT_EQ(cpp_double(std::nan("")), "std::numeric_limits<double>::quiet_NaN()");
  EXPECT_EQ(cpp_int(-3), "-3");
  EXPECT_EQ(cpp_int(int64_t{1} << 40), "int64_t{1099511627776}");
  EXPECT_EQ(cpp_int(INT64_MIN), "INT64_MIN");
  EXPECT_EQ(cpp_string("a\"b\\c\n\x01"
                       "2?\?/"),
            R"("a\"b\\c\n\0012\077\077/")");
}

// --- classes ---------------------------------------------------------------------------------------------

TEST(CppSource, SpellsTypesOutWhereFunctionsShareAName) {
  const std::string source = body_of(R"(def forward(self, x, y):
    sum_1 = torch.ops.aten.sum.dim_IntList(x, [0, 1], True, dtype = torch.float64)
    sum_2 = torch.ops.aten.sum.default(x)
    add = torch.ops.aten.add.Tensor(x, 2, alpha = 3)
    add_1 = torch.ops.aten.add.Tensor(sum_1, y, alpha = 0.5)
    clamp = torch.ops.aten.clamp.default(x, None, 2.5)
    cat = torch.ops.aten.cat.default([x, y], -1)
    max_1 = torch.ops.aten.max.dim(x, 1)
    getitem = max_1[1]
    mul = x * y
    mul_1 = mul / 2
    relu = mul_1.relu()
    gelu = torch.ops.aten.gelu.default(relu, approximate = 'tanh')
    return (sum_1, sum_2, add, add_1, clamp, cat, getitem, gelu)
)");
  EXPECT_THAT(
      source,
      HasSubstr(
          R"(std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> Foo::forward(const Tensor& x, const Tensor& y) {
  Tensor sum_1 = weft::sum(x, OptionalSpan<IntSpan>(IntSpan{0, 1}), true, std::optional<DType>(kFloat64));
  Tensor sum_2 = weft::sum(x);
  Tensor add = weft::add(x, Scalar(2), Scalar(3));
  Tensor add_1 = weft::add(sum_1, y, Scalar(0.5));
)"));
  EXPECT_THAT(
      source,
      HasSubstr("  auto max_1 = weft::max(x, int64_t(1));\n  Tensor getitem = std::get<1>(max_1);\n"));
  EXPECT_THAT(source, HasSubstr("  Tensor cat = weft::cat({x, y}, -1);\n"));
  EXPECT_THAT(
      source,
      HasSubstr("  Tensor mul = x * y;\n  Tensor mul_1 = mul / 2;\n  Tensor relu = weft::relu(mul_1);\n"));
  EXPECT_THAT(source, HasSubstr("weft::gelu(relu, \"tanh\");\n"));
  EXPECT_THAT(source, HasSubstr("  return {sum_1, sum_2, add, add_1, clamp, cat, getitem, gelu};\n"));
}

TEST(CppSource, NamesThatCppHasTakenAreChanged) {
  const std::string source = body_of(R"(def forward(self, double, Tensor, unused):
    new = torch.ops.aten.mul.Tensor(double, Tensor)
    return new
)");
  EXPECT_THAT(
      source,
      HasSubstr(
          "Tensor Foo::forward(const Tensor& double_, const Tensor& Tensor_, const Tensor& /*unused*/) {\n"
          "  Tensor new_ = weft::mul(double_, Tensor_);\n  return new_;\n}\n"));
}

TEST(CppSource, NamesFromFilesStayInsideTheirComments) {
  GraphModule module({{"v\n};\n#error injected\n", ones({2})}}, [] {
    Graph graph;
    graph.output(value_of(graph.get_attr("v\n};\n#error injected\n")));
    return graph;
  }());
  const std::string header = cpp_source(module, "Foo").header;
  EXPECT_THAT(header, Not(HasSubstr("\n#error")));
  EXPECT_THAT(header, HasSubstr("  // \"v\\n};\\n#error injected\\n\"\n"));
}

TEST(CppSource, DefaultsAreMadeInTheSource) {
  Graph graph;
  Node &x = graph.placeholder("x"), &d = graph.placeholder("d", Value(3));
  d.meta().value = Value(3);
  graph.output(value_of(graph.call_function("aten::add.Tensor", {value_of(x), value_of(d)})));
  const CppSource code = cpp_source(GraphModule(std::move(graph)), "Foo");
  EXPECT_THAT(code.header, HasSubstr("const weft::Value& d = default_d()"));
  EXPECT_THAT(code.header, HasSubstr("  static weft::Value default_d();\n"));
  EXPECT_THAT(code.source, HasSubstr("Value Foo::default_d() { return 3; }\n"));
  EXPECT_ERROR(cpp_source(GraphModule(parse_code("def forward(self, x):\n    return x\n")), "Tensor"),
               "a class 'Tensor' would hide what its own code names");
}

TEST(CppSource, ResultsOfOtherStructuresAreValues) {
  EXPECT_THAT(
      body_of("def forward(self, x):\n    return {'a': [x, 1], 'b': (None, 'text')}\n"),
      HasSubstr(
          "Value Foo::forward(const Tensor& x) {\n"
          "  return Dict{{\"a\", Value::list({x, 1})}, {\"b\", Value::tuple({Value(), \"text\"})}};\n}\n"));
  EXPECT_THAT(body_of("def forward(self, x):\n    return [x, x]\n"),
              HasSubstr("std::vector<Tensor> Foo::forward("));
}

TEST(CppSource, OperatorsOverOperatorsAndFunctions) {
  auto f = [](const Tensor& x) {
    Tensor y = func::cond(
        x.sum() > 0, [](const Tensor& t) { return t.cos(); }, [](const Tensor& t) { return t.sin(); }, x);
    return func::out_dtype(operator_named("aten::mm"), kFloat64, y, y);
  };
  CppSource code = cpp_source(make_graph(f)(randn({2, 2})), "Foo");
  EXPECT_THAT(code.header, HasSubstr(" private:\n  weft::Value true_graph_0(weft::Args inputs);\n"));
  EXPECT_THAT(code.source,
              HasSubstr("weft::call(weft::operator_named(\"higher_order::out_dtype\"), "
                        "{weft::operator_value(weft::operator_named(\"aten::mm\")), kFloat64, "));
  EXPECT_THAT(code.source, HasSubstr("\nValue Foo::true_graph_0(Args inputs) {\n"
                                     "  Tensor arg0_1 = inputs[0].to_tensor();\n"
                                     "  Tensor cos = weft::cos(arg0_1);\n"
                                     "  return Value::tuple({cos});\n}\n"));
}

TEST(CppSource, RefusesWhatHasNoCppForm) {
  GraphModule module(parse_code("def forward(self, x):\n    return x\n"));
  for (const char* name : {"a-b", "class", "", "2x"})
    EXPECT_ERROR(cpp_source(module, name), "cannot be the name of a C++ class");
  GraphModule with_tensor;
  {
    Graph graph;
    Node& x = graph.placeholder("x");
    graph.output(value_of(graph.call_function("aten::add.Tensor", {value_of(x), ones({2})})));
    with_tensor = GraphModule(std::move(graph));
  }
  EXPECT_ERROR(
      cpp_source(with_tensor, "Foo"),
      "to_folder: node 'add' has a tensor among its arguments (f32[2]), which has no C++ form; make it an "
      "attribute of the module, or a node");
  EXPECT_ERROR(cpp_source(GraphModule(parse_code("def forward(self, *args):\n    return args\n")), "Foo"),
               "'*args' takes any number of inputs");
  GraphModule calls({{"fc", Value(Ref<ValueObject>(nn::detail::erased_call(nn::Linear(2, 2))))}},
                    parse_code("def forward(self, x):\n    fc = self.fc(x)\n    return fc\n"));
  EXPECT_ERROR(cpp_source(calls, "Foo"),
               "node 'fc' calls the C++ module 'fc', which has no C++ form here; inline_modules()");
}

TEST(ToFolder, FoldersThatCannotBeMadeAreNamed) {
  GraphModule module(parse_code("def forward(self, x):\n    return x\n"));
  EXPECT_ERROR(to_folder(module, "/dev/null/x", "Foo"), "the folder '/dev/null/x' cannot be made");
  EXPECT_ERROR(load_folder("/nowhere/at/all", "Foo"), "/nowhere/at/all/Foo.safetensors");
}

TEST(ToFolder, GraphsInsideAndTheirTensorsComeBack) {
  Tensor w = randn({3});
  auto f = [w](const Tensor& x) {
    return func::cond(
        x.sum() > 0, [w](const Tensor& t) { return t * w; }, [](const Tensor& t) { return t.neg(); }, x);
  };
  GraphModule module = make_graph(f)(randn({3}));
  const std::string folder = ::testing::TempDir() + "weft_folder_" + std::to_string(::getpid());
  to_folder(module, folder);
  GraphModule loaded = load_folder(folder);
  EXPECT_TRUE(std::filesystem::exists(folder + "/FxModule.h"));
  std::filesystem::remove_all(folder);
  expect_equal(loaded(ones({3})), w);
  expect_equal(loaded(-ones({3})), ones({3}));
}

}  // namespace
}  // namespace weft
