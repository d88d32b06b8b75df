// Exported programs that are made by hand: what module() checks, runs and writes back.
#include "weft/export/exported_program.h"

#include <gmock/gmock.h>

#include "support/expect_error.h"
#include "weft/autograd/autograd.h"
#include "weft/core/from_data.h"
#include "weft/graph/missing_operators.h"
#include "weft/ops/fake.h"
#include "weft/ops/functions.h"
#include "weft/ops/operator_value.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using InputKind = InputSpec::Kind;
using OutputKind = OutputSpec::Kind;

TreeSpec leaves(size_t count) { return TreeSpec::tuple(std::vector<TreeSpec>(count)); }
TreeSpec arguments(std::vector<TreeSpec> positional) {
  return TreeSpec::tuple({TreeSpec::tuple(std::move(positional)), TreeSpec::dict({}, {})});
}

Node& input(Graph& graph, const char* name, const Value& note) {
  Node& node = graph.placeholder(name);
  node.meta().value = noted_form(note);
  return node;
}

// y = x * w + b with x of any number of rows from 3 to 8; b is a buffer that counts calls.
struct Counting {
  Ref<ShapeEnv> env = ShapeEnv::create();
  Tensor weight = ones({4}).mul(2.0).set_requires_grad(), count = zeros({});
  ExportedProgram::Parts parts;

  explicit Counting(std::vector<std::string> guards = {}) {
    const SymInt rows = env->create_symbol(5, "x.size(0)", sym::DimPolicy::kDynamic, sym::ValueRange{3, 8});
    Graph graph;
    Node &w = input(graph, "p_w", weight), &b = input(graph, "b_count", count),
         &x = input(graph, "x", shape_only(zeros({5, 4})));
    Tensor symbolic = shape_only(zeros({5, 4}));
    symbolic.impl()->set_geometry(SymInts{rows, 4}, SymInts{4, 1});
    x.meta().value = symbolic;
    Node& product = graph.call_function("aten::mul.Tensor", {value_of(x), value_of(w)});
    Node& next = graph.call_function("aten::add.Tensor", {value_of(b), 1});
    Node& sum = graph.call_function("aten::add.Tensor", {value_of(product), value_of(b)});
    graph.output(Value::tuple({value_of(next), value_of(sum), 3}));
    parts.graph_module = GraphModule(std::move(graph));
    parts.inputs = {
        {InputKind::kParameter, "layer.w"}, {InputKind::kBuffer, "layer.count"}, {InputKind::kUserInput}};
    parts.outputs = {
        {OutputKind::kBufferMutation, "layer.count"}, {OutputKind::kUserOutput}, {OutputKind::kUserOutput}};
    parts.state = {
        {"layer.w", weight}, {"layer.count", count}, {"layer.unused", ones({2}).set_requires_grad()}};
    parts.call = {arguments({TreeSpec()}), leaves(2), {"x"}};
    parts.shape_env = env;
    parts.ranges = {{rows.expr(), {3, 8}}};
    parts.guards = std::move(guards);
    parts.is_training_dialect = false;
  }
};

TEST(ExportedProgram, ModuleHasTheStateAndWritesMutationsBack) {
  Counting made;
  const ExportedProgram program = ExportedProgram::make(made.parts);
  GraphModule module = program.module();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : module.named_parameters()) names.push_back(name);
  EXPECT_THAT(names, ::testing::ElementsAre("layer.w", "layer.unused"));
  EXPECT_TRUE(module.named_buffers()[0].second.is_same(made.count));
  const Tensor x = ones({4, 4});
  for (int call = 0; call < 3; ++call) {
    const Value result = module.call({x});
    EXPECT_TRUE(equal(result.elements()[0].to_tensor(), full({4, 4}, 2.0 + call)));
    EXPECT_EQ(result.elements()[1], Value(3));
  }
  EXPECT_EQ(made.count.item().to_double(), 3.0);
  Tensor loss = module.call({x}).elements()[0].to_tensor().sum();
  autograd::backward({loss});
  EXPECT_TRUE(equal(made.weight.grad(), full({4}, 4.0)));
}

TEST(ExportedProgram, AnErrorHasBothWordings) {
  Counting made({"L['x'].size()[0] != 7"});
  GraphModule module = ExportedProgram::make(made.parts).module();
  EXPECT_ERROR_TYPE(
      AssertionError, module.call({ones({2, 4})}),
      "Expected input at *args[0].shape[0] to be >= 3, but got 2\nGuard failed: x.size()[0] >= 3");
  EXPECT_ERROR_TYPE(
      AssertionError, module.call({ones({9, 4})}),
      "Expected input at *args[0].shape[0] to be <= 8, but got 9\nGuard failed: x.size()[0] <= 8");
  EXPECT_ERROR_TYPE(AssertionError, module.call({ones({3, 5})}),
                    "Expected input at *args[0].shape[1] to be equal to 4, but got 5");
  EXPECT_ERROR_TYPE(AssertionError, module.call({ones({3, 5})}), "Guard failed: x.size()[1] == 4");
  EXPECT_ERROR_TYPE(AssertionError, module.call({ones({3, 4}, kFloat64)}),
                    "Expected input at *args[0] to have dtype float32, but got float64");
  EXPECT_ERROR_TYPE(AssertionError, module.call({ones({4})}),
                    "Unexpected number of dimensions in input at *args[0].shape");
  EXPECT_ERROR_TYPE(AssertionError, module.call({Value(3)}),
                    "Expected input at *args[0] to be a tensor, but got an integer");
  EXPECT_ERROR_TYPE(AssertionError, module.call({ones({7, 4})}), "Guard failed: x.size()[0] != 7");
  EXPECT_ERROR_TYPE(AssertionError, module.call({Value::list({ones({3, 4})}), ones({1})}),
                    "at the root: expected a tuple of 1, but got a tuple of 2");
  // Nothing was counted.
  EXPECT_EQ(made.count.item().to_double(), 0.0);
}

TEST(ExportedProgram, ChecksTreesConstantsAndTiedSizes) {
  auto env = ShapeEnv::create();
  const SymInt n = env->create_symbol(5, "x.size(0)", sym::DimPolicy::kDynamic);
  auto symbolic = [&](const SymInt& size) {
    Tensor tensor = shape_only(zeros({5}));
    tensor.impl()->set_geometry(SymInts{size}, SymInts{1});
    return tensor;
  };
  Graph graph;
  Node &a = input(graph, "pair_a", Value()), &b = input(graph, "pair_0", Value()),
       &c = input(graph, "scale", 2.5), &d = input(graph, "y", Value());
  a.meta().value = symbolic(n);
  b.meta().value = symbolic(n);
  d.meta().value = symbolic(2 * n + 1);
  graph.output(Value::tuple({value_of(graph.call_function("aten::add.Tensor", {value_of(a), value_of(b)}))}));
  EXPECT_TRUE(c.users().empty());
  ExportedProgram::Parts parts{.graph_module = GraphModule(std::move(graph))};
  parts.inputs = {{}, {}, {.kind = InputKind::kConstantInput, .constant = 2.5}, {}};
  parts.outputs = {{OutputKind::kUserOutput}};
  const TreeSpec pair =
      TreeSpec::dict({Value("a"), Value("rest")}, {TreeSpec(), TreeSpec::list({TreeSpec()})});
  parts.call.arguments =
      TreeSpec::tuple({TreeSpec::tuple({pair, TreeSpec()}), TreeSpec::dict({Value("y")}, {TreeSpec()})});
  parts.call.result = TreeSpec();
  parts.call.names = {"pair", "scale", "y"};
  parts.shape_env = env;
  GraphModule module = ExportedProgram::make(parts).module();
  auto run = [&](int64_t first, int64_t second, const Value& scale, int64_t third) {
    return module.call({Dict{{"a", ones({first})}, {"rest", Value::list({ones({second})})}}, scale},
                       {{"y", ones({third})}});
  };
  EXPECT_TRUE(equal(run(4, 4, 2.5, 9).to_tensor(), full({4}, 2.0)));
  EXPECT_ERROR_TYPE(AssertionError, run(4, 3, 2.5, 9),
                    "Expected input at *args[0]['rest'][0].shape[0] to be equal to 4, but got 3");
  EXPECT_ERROR_TYPE(AssertionError, run(4, 3, 2.5, 9),
                    "Guard failed: pair['rest'][0].size()[0] == pair['a'].size()[0]");
  EXPECT_ERROR_TYPE(AssertionError, run(4, 4, 2.0, 9),
                    "Expected input at *args[1] to be equal to 2.5, but got 2.0\nGuard failed: scale == 2.5");
  EXPECT_ERROR_TYPE(AssertionError, run(4, 4, 2, 9),
                    "Expected input at *args[1] to be equal to 2.5, but got 2");
  EXPECT_ERROR_TYPE(AssertionError, run(4, 4, 2.5, 8),
                    "Expected input at y.shape[0] to be equal to 9, but got 8");
  EXPECT_ERROR_TYPE(AssertionError, module.call({ones({1}), 2.5}, {{"y", ones({1})}}),
                    "Trying to flatten user inputs with exported input tree spec");
}

// What PyTorch writes for an operator with an effect: a call on a token, which gives the next token.
TEST(ExportedProgram, EffectsHappenInOrderWithoutTheirTokens) {
  Graph graph;
  Node &token = graph.placeholder("token"), &x = input(graph, "x", zeros({2}));
  Node& check = graph.call(Target::of_operator("higher_order::with_effects"),
                           {value_of(token), operator_value("aten::_assert_scalar"), true, "must hold"});
  Node& next = graph.call_function("operator.getitem", {value_of(check), 0});
  Node& sum = graph.call(Target::of_operator("higher_order::with_effects"),
                         {value_of(next), operator_value("aten::add.Tensor"), value_of(x), value_of(x)});
  Node& last = graph.call_function("operator.getitem", {value_of(sum), 0});
  Node& result = graph.call_function("operator.getitem", {value_of(sum), 1});
  graph.output(Value::tuple({value_of(last), value_of(result)}));
  ExportedProgram::Parts parts{.graph_module = GraphModule(std::move(graph))};
  parts.inputs = {{InputKind::kToken}, {}};
  parts.outputs = {{OutputKind::kToken}, {}};
  parts.call = {arguments({TreeSpec()}), leaves(1), {"x"}};
  GraphModule module = ExportedProgram::make(parts).module();
  EXPECT_TRUE(equal(module.call({ones({2})}).elements()[0].to_tensor(), full({2}, 2.0)));
  EXPECT_THAT(module.code(), ::testing::Not(HasSubstr("with_effects")));
  EXPECT_TRUE(missing_operators(module).empty());
}

TEST(ExportedProgram, WritesToInputsAndReturnsThem) {
  Graph graph;
  Node& x = input(graph, "x", zeros({2}));
  Node& next = graph.call_function("aten::add.Tensor", {value_of(x), 1});
  graph.output(Value::tuple({value_of(next), value_of(next)}));
  ExportedProgram::Parts parts{.graph_module = GraphModule(std::move(graph))};
  parts.inputs = {{}};
  parts.outputs = {{OutputKind::kUserInputMutation, "x"}, {}};
  parts.call = {arguments({TreeSpec()}), leaves(1), {"x"}};
  GraphModule module = ExportedProgram::make(parts).module();
  Tensor given = zeros({2});
  const Tensor result = module.call({given}).elements()[0].to_tensor();
  EXPECT_TRUE(equal(given, ones({2})));
  EXPECT_TRUE(result.is_same(given));
}

TEST(ExportedProgram, ACopyOfTheModuleChecksToo) {
  Counting made;
  GraphModule module = ExportedProgram::make(made.parts).module();
  const GraphModule copy = module.deep_copy();
  EXPECT_ERROR_TYPE(AssertionError, copy.call({ones({2, 4})}), "Guard failed: x.size()[0] >= 3");
  copy.call({ones({4, 4})});
  EXPECT_EQ(made.count.item().to_double(), 0.0);
  EXPECT_EQ(copy.named_buffers()[0].second.item().to_double(), 1.0);
}

TEST(ExportedProgram, FrozenParametersStayParameters) {
  Counting made;
  made.parts.state[0].second = ones({4});
  GraphModule module = ExportedProgram::make(made.parts).module();
  EXPECT_EQ(module.named_parameters()[0].first, "layer.w");
  EXPECT_FALSE(module.named_parameters()[0].second.requires_grad());
}

TEST(ExportedProgram, PrintsSignatureAndRanges) {
  const std::string text = ExportedProgram::make(Counting().parts).to_string();
  EXPECT_THAT(text,
              HasSubstr("Graph signature:\n    # inputs\n    p_w: PARAMETER target='layer.w'\n"
                        "    b_count: BUFFER target='layer.count' persistent=True\n    x: USER_INPUT\n"));
  EXPECT_THAT(
      text,
      HasSubstr("    # outputs\n    add: BUFFER_MUTATION target='layer.count'\n    add_1: USER_OUTPUT\n"));
  EXPECT_THAT(text, HasSubstr("Range constraints: {s0: VR[3, 8]}"));
}

TEST(ExportedProgram, PartsMustFitEachOther) {
  auto broken = [](const std::function<void(ExportedProgram::Parts&)>& change) {
    Counting made;
    change(made.parts);
    return ExportedProgram::make(made.parts);
  };
  using Parts = ExportedProgram::Parts;
  EXPECT_ERROR(broken([](Parts& p) { p.inputs.pop_back(); }),
               "its graph has 3 placeholders, its signature 2 inputs");
  EXPECT_ERROR(broken([](Parts& p) { p.state.erase(p.state.begin()); }),
               "input 'p_w' is the parameter 'layer.w', of which there is no tensor");
  EXPECT_ERROR(broken([](Parts& p) { p.state.push_back(p.state[0]); }),
               "there are two parameters or buffers 'layer.w'");
  EXPECT_ERROR(broken([](Parts& p) { p.outputs.pop_back(); }),
               "its graph gives 3 values, its signature has 2 outputs");
  EXPECT_ERROR(broken([](Parts& p) { p.call.arguments = arguments({TreeSpec(), TreeSpec()}); }),
               "its arguments have 2 leaves, but 1 of its inputs");
  EXPECT_ERROR(broken([](Parts& p) { p.call.names = {}; }), "it has 1 arguments and 0 names for them");
  EXPECT_ERROR(broken([](Parts& p) { p.call.result = TreeSpec(); }),
               "its result has 1 leaves, but 2 of its outputs");
  EXPECT_ERROR(broken([](Parts& p) { p.outputs[0].target = "other"; }).module(),
               "is to be written to what is no input");
}

}  // namespace
}  // namespace weft
