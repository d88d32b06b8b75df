// What the script view can be asked, its options, and its limits: names, constants, types, large graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/support/hand_written.h"
#include "graph/support/script_text.h"
#include "support/expect_error.h"
#include "weft/core/from_data.h"
#include "weft/graph/script_view.h"
#include "weft/nn/layers.h"
#include "weft/ops/fake.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::expect_script;
using testing::HandWritten;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::script_lines;

using testing::square;

size_t occurrences(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// ((x + 2) - 4) * 6 / 8
GraphModule chain() {
  HandWritten f;
  Value x = f.input("x", square());
  x = f.call("aten::add.Tensor", {x, 2});
  x = f.call("aten::sub.Tensor", {x, 4});
  x = f.call("aten::mul.Tensor", {x, 6});
  return f.returns(f.call("aten::div.Tensor", {x, 8}));
}

// --- names -----------------------------------------------------------------------------------------------

TEST(ScriptNames, LocalVariables) {
  HandWritten f;
  Value bar = f.input("bar", square());
  Value baz = f.named("baz", f.call("aten::add.Tensor", {bar, 3}));
  Value fox = f.named("quick_brown_fox", f.call("aten::neg", {baz}));
  expect_script(f.returns(f.call("aten::sub.Tensor", {fox, 3.14})), R"(
graph(%bar : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : Long(requires_grad=0, device=cpu) = prim::Constant[value={3}]()
  %2 : int = prim::Constant[value=1]()
  %baz : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%bar, %1, %2)
  %quick_brown_fox : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::neg(%baz)
  %5 : Double(requires_grad=0, device=cpu) = prim::Constant[value={3.14}]()
  %6 : int = prim::Constant[value=1]()
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::sub(%quick_brown_fox, %5, %6)
  return (%7)
)",
                R"(
def forward(bar: Tensor) -> Tensor:
  baz = torch.add(bar, CONSTANTS.c0)
  quick_brown_fox = torch.neg(baz)
  _0 = torch.sub(quick_brown_fox, CONSTANTS.c1)
  return _0
)");
}

// As TorchScript's setDebugName does: who had the name before gets a number, and each number but one is left
// out.
TEST(ScriptNames, TheLastToAskForANameHasIt) {
  HandWritten f;
  Value x = f.input("x", square());
  Value second = f.named("x", f.call("aten::neg", {x}));
  Value third = f.named("x", f.call("aten::neg", {second}));
  Value fourth = f.named("x.1", f.call("aten::neg", {third}));
  GraphModule module = f.returns(f.call("aten::neg", {fourth}));
  EXPECT_EQ(script_text(module, {.types = false}), R"(graph(%x.5 : Tensor):
  %x.3 : Tensor = aten::neg(%x.5)
  %x : Tensor = aten::neg(%x.3)
  %x.1 : Tensor = aten::neg(%x)
  %4 : Tensor = aten::neg(%x.1)
  return (%4)
)");
  EXPECT_EQ(script_code(module), R"(def forward(x: Tensor) -> Tensor:
  x0 = torch.neg(x)
  x1 = torch.neg(x0)
  x2 = torch.neg(x1)
  return torch.neg(x2)
)");
}

TEST(ScriptNames, AMarkedNodeGoesByItsOwn) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& fox = graph.call_function("aten::neg", {value_of(x)});
  fox.rename("fox");
  fox.meta().extra.set("named", true);
  graph.output(value_of(fox));
  EXPECT_EQ(script_text(graph), "graph(%x : Tensor):\n  %fox : Tensor = aten::neg(%x)\n  return (%fox)\n");
}

TEST(ScriptNames, NoWordOfPythonIsAVariable) {
  HandWritten f;
  Value x = f.input("lambda", square());
  Value y = f.named("torch", f.call("aten::neg", {x}));
  EXPECT_EQ(script_code(f.returns(Value::tuple({y, y})), {.name = "f"}),
            R"(def f(lambda0: Tensor) -> Tuple[Tensor, Tensor]:
  torch0 = torch.neg(lambda0)
  return (torch0, torch0)
)");
}

// --- options ---------------------------------------------------------------------------------------------

TEST(ScriptOptionsTest, PooledConstants) {
  std::string text = script_text(chain(), {.types = false, .pool_constants = true});
  EXPECT_EQ(occurrences(text, ": int = prim::Constant"), 5u);
  // What PyTorch's graph_for gives for this program, but for the order of the constants.
  EXPECT_EQ(text, R"(graph(%x : Tensor):
  %1 : int = prim::Constant[value=2]()
  %2 : int = prim::Constant[value=1]()
  %3 : int = prim::Constant[value=4]()
  %4 : int = prim::Constant[value=6]()
  %5 : int = prim::Constant[value=8]()
  %6 : Tensor = aten::add(%x, %1, %2)
  %7 : Tensor = aten::sub(%6, %3, %2)
  %8 : Tensor = aten::mul(%7, %4)
  %9 : Tensor = aten::div(%8, %5)
  return (%9)
)");
}

TEST(ScriptOptionsTest, PooledListsAndTensors) {
  HandWritten f;
  Value x = f.input("x", ones({1, 1, 4, 4}));
  Value table = f.attribute("_tensor_constant0", arange(3));
  Value pooled = f.call("aten::max_pool2d", {x, Value::list({2, 2})});
  Value sum = f.call("aten::add.Tensor", {pooled, f.call("aten::sum", {table})});
  GraphModule module = f.returns(f.call("aten::add.Tensor", {sum, f.call("aten::sum", {table})}));
  EXPECT_EQ(script_text(module, {.types = false, .pool_constants = true}), R"(graph(%x : Tensor):
  %1 : int[] = prim::Constant[value=[2, 2]]()
  %2 : int[] = prim::Constant[value=annotate(List[int], [])]()
  %3 : int[] = prim::Constant[value=[0, 0]]()
  %4 : int[] = prim::Constant[value=[1, 1]]()
  %5 : bool = prim::Constant[value=0]()
  %6 : Tensor = prim::Constant[value= 0  1  2 [ CPULongType{3} ]]()
  %7 : NoneType = prim::Constant()
  %8 : int = prim::Constant[value=1]()
  %9 : Tensor = aten::max_pool2d(%x, %1, %2, %3, %4, %5)
  %10 : Tensor = aten::sum(%6, %7)
  %11 : Tensor = aten::add(%9, %10, %8)
  %12 : Tensor = aten::sum(%6, %7)
  %13 : Tensor = aten::add(%11, %12, %8)
  return (%13)
)");
}

TEST(ScriptOptionsTest, CanonicalTextIsThatOfEqualPrograms) {
  auto program = [](const std::string& input, const std::string& local, SymIntSpan sizes) {
    HandWritten f;
    Value x = f.input(input, ones(sizes));
    return f.returns(f.call("aten::add.Tensor", {f.named(local, f.call("aten::neg", {x})), 1}));
  };
  ScriptOptions canonical{.canonical = true};
  std::string text = script_text(program("x", "y", {2, 2}), canonical);
  EXPECT_EQ(text, R"(graph(%0 : Tensor):
  %1 : Tensor = aten::neg(%0)
  %2 : Tensor = prim::Constant[value={1}]()
  %3 : int = prim::Constant[value=1]()
  %4 : Tensor = aten::add(%1, %2, %3)
  return (%4)
)");
  EXPECT_EQ(script_text(program("a", "b", {3}), canonical), text);
}

TEST(ScriptOptionsTest, Sources) {
  HandWritten f;
  Value x = f.input("x", square());
  Value sum = f.call("aten::sum.dim_IntList", {x, Value::list({1})});
  node_in(sum)->meta().source = "net.cc:12";
  GraphModule module = f.returns(Value::tuple({sum}));
  EXPECT_THAT(script_text(module), Not(HasSubstr("#")));
  EXPECT_EQ(script_text(module, {.types = false, .sources = true}), R"(graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]() # net.cc:12
  %2 : int[] = prim::ListConstruct(%1)
  %3 : bool = prim::Constant[value=0]() # net.cc:12
  %4 : NoneType = prim::Constant()
  %5 : Tensor = aten::sum(%x, %2, %3, %4) # net.cc:12
  %6 : (Tensor) = prim::TupleConstruct(%5)
  return (%6)
)");
}

// --- questions -------------------------------------------------------------------------------------------

TEST(ScriptGraphTest, NodesAndValues) {
  ScriptGraph graph = script_view(chain());
  EXPECT_EQ(graph.nodes().size(), 10u);
  EXPECT_EQ(graph.count("prim::Constant"), 6u);
  EXPECT_EQ(graph.name(), "forward");
  EXPECT_EQ(graph.path(), "");
  ASSERT_EQ(graph.outputs().size(), 1u);
  const ScriptNode& div = *graph.outputs()[0]->node;
  EXPECT_EQ(div.kind, "aten::div");
  EXPECT_EQ(div.op, &operator_named("aten::div.Tensor"));
  EXPECT_EQ(div.origin->name(), "div");
  EXPECT_EQ(div.inputs[0]->node->kind, "aten::mul");
  EXPECT_EQ(div.inputs[1]->node->attribute("value")->to_int(), 8);
  EXPECT_FALSE(div.has_attribute("value"));
  EXPECT_TRUE(div.output().is_complete_tensor());
  EXPECT_EQ(graph.inputs()[0]->name, "x");
  EXPECT_EQ(graph.inputs()[0]->node, nullptr);
  EXPECT_TRUE(graph.inputs()[0]->is_named);
  // A handle outlives what it was copied from.
  ScriptGraph copy = std::exchange(graph, script_view(chain()));
  EXPECT_EQ(copy.to_string(), graph.to_string());
}

TEST(ScriptGraphTest, TheOneOutputOfSeveralIsAnError) {
  HandWritten f;
  Value x = f.input("x", square());
  ScriptGraph graph = script_view(f.returns(f.item(f.call("aten::max.dim", {x, 1}), 0)));
  EXPECT_ERROR(graph.outputs()[0]->node->output(), "aten::max gives 2 values, not one");
}

TEST(ScriptTypeTest, OfTensors) {
  EXPECT_EQ(ScriptType::of(ones({}, kInt32)).to_string(), "Int(requires_grad=0, device=cpu)");
  EXPECT_EQ(ScriptType::of(ones({2, 3}, kFloat16).t()).to_string(),
            "Half(3, 2, strides=[1, 3], requires_grad=0, device=cpu)");
  EXPECT_EQ(ScriptType::of(ones({0}, kBFloat16).to(Device("sim:1"), kBFloat16)).to_string(),
            "BFloat16(0, strides=[1], requires_grad=0, device=sim:1)");
  EXPECT_EQ(ScriptType::of(ones({1}).set_requires_grad()).to_string(),
            "Float(1, strides=[1], requires_grad=1, device=cpu)");
  EXPECT_EQ(ScriptType().to_string(), "Tensor");
  EXPECT_TRUE(ScriptType::of(ones({2})).is_complete_tensor());
  EXPECT_FALSE(ScriptType::of(ones({2})).erased().is_complete_tensor());
  EXPECT_FALSE(ScriptType::of(3).is_complete_tensor());
}

TEST(ScriptTypeTest, SymbolsMayBeAny) {
  FakeMode mode({.shape_env = ShapeEnv::create()});
  ScriptType type = ScriptType::of(mode.fake_of(ones({4, 3}), "x"));
  EXPECT_EQ(type.to_string(), "Float(*, *, strides=[*, 1], requires_grad=0, device=cpu)");
  EXPECT_FALSE(type.is_complete_tensor());
}

TEST(ScriptTypeTest, OfContainers) {
  Value tensor = square();
  ScriptType nested =
      ScriptType::of(Value::tuple({tensor, Value::list({1, 2}), Dict{{"a", Value::tuple({2.5, true})}}}));
  EXPECT_EQ(nested.erased().to_string(), "(Tensor, int[], Dict(str, (float, bool)))");
  EXPECT_EQ(nested.annotation(), "Tuple[Tensor, List[int], Dict[str, Tuple[float, bool]]]");
  EXPECT_EQ(ScriptType::of(Value::list({tensor, 1})).to_string(), "Any[]");
  EXPECT_EQ(ScriptType::of(Value()).annotation(), "NoneType");
  EXPECT_EQ(ScriptType{.kind = ScriptType::Kind::kScalar}.annotation(), "number");
}

// --- graphs from elsewhere -------------------------------------------------------------------------------

TEST(ScriptViewOfAnyGraph, NeedsNoNotes) {
  Graph graph;
  Node &x = graph.placeholder("x"), &l = graph.placeholder("l");
  Node& parts = graph.call_function("aten::split.Tensor", {value_of(x), 1});
  Node& last = graph.call_function("operator.getitem", {value_of(parts), 2});
  Node& sum = graph.call_function("operator.add", {value_of(last), value_of(l)});
  graph.output(Value::list({value_of(sum), value_of(parts)}));
  EXPECT_EQ(script_text(graph), R"(graph(%x : Tensor,
      %l : Tensor):
  %2 : int = prim::Constant[value=1]()
  %3 : int = prim::Constant[value=0]()
  %4 : Tensor[] = aten::split(%x, %2, %3)
  %5 : Tensor, %6 : Tensor, %7 : Tensor = prim::ListUnpack(%4)
  %8 : int = prim::Constant[value=1]()
  %9 : Tensor = aten::add(%7, %l, %8)
  %10 : Tensor[] = prim::ListConstruct(%9, %4)
  return (%10)
)");
}

TEST(ScriptViewOfAnyGraph, CallsOfModulesAndMethods) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& hidden = graph.call_module("layers.0", {value_of(x)});
  Node& positive = graph.call_method("clamp", {value_of(hidden)}, {{"min", 0}});
  graph.output(value_of(positive));
  EXPECT_EQ(script_text(graph, {.self_type = "__torch__.Net"}), R"(graph(%self : __torch__.Net,
      %x : Tensor):
  %layers : __torch__.Module = prim::GetAttr[name="layers"](%self)
  %_0 : __torch__.Module = prim::GetAttr[name="0"](%layers)
  %4 : Tensor = prim::CallMethod[name="forward"](%_0, %x)
  %5 : int = prim::Constant[value=0]()
  %6 : Tensor = aten::clamp(%4, %5)
  return (%6)
)");
  EXPECT_ERROR(script_text(graph),
               "the program calls the module 'layers.0' but has no self; give ScriptOptions a self_type");
}

TEST(ScriptViewOfAnyGraph, ModulesTellTheClassesOfChildren) {
  struct Net : nn::Module {
    nn::Linear fc = child("fc", nn::Linear(2, 3));
  } net;
  Graph graph;
  graph.output(value_of(graph.get_attr("fc.weight")));
  EXPECT_EQ(script_text(graph, {.self_type = "__torch__.Net", .root = &net}), R"(graph(%self : __torch__.Net):
  %fc : __torch__.Linear = prim::GetAttr[name="fc"](%self)
  %weight : Tensor = prim::GetAttr[name="weight"](%fc)
  return (%weight)
)");
}

TEST(ScriptViewOfAnyGraph, CallsWithoutNumbersAreOneWhileTheyLast) {
  Graph graph;
  Node* x = &graph.placeholder("x");
  for (const char* path : {"a", "a", "b", "a"}) {
    x = &graph.call_function("aten::neg", {value_of(*x)});
    x->meta().modules = {{"__module", "Net"}, {std::string("__module.") + path, "Neg"}};
  }
  graph.output(value_of(*x));
  ScriptGraph view = script_view(graph, {.inline_calls = false, .self_type = "__torch__.Net"});
  EXPECT_EQ(view.to_string(), R"(graph(%self : __torch__.Net,
      %x : Tensor):
  %b : __torch__.Neg = prim::GetAttr[name="b"](%self)
  %a : __torch__.Neg = prim::GetAttr[name="a"](%self)
  %4 : Tensor = prim::CallMethod[name="forward"](%a, %x)
  %5 : Tensor = prim::CallMethod[name="forward"](%b, %4)
  %6 : Tensor = prim::CallMethod[name="forward1"](%a, %5)
  return (%6)
)");
  EXPECT_EQ(view.callees()[0]->count("aten::neg"), 2u);
}

TEST(ScriptViewOfAnyGraph, NoOutputIsNone) {
  Graph graph;
  graph.placeholder("x");
  EXPECT_EQ(script_text(graph), "graph(%x : Tensor):\n  %1 : NoneType = prim::Constant()\n  return (%1)\n");
  EXPECT_EQ(script_code(graph), "def forward(x: Tensor) -> NoneType:\n  return None\n");
}

TEST(ScriptViewOfAnyGraph, WhatDoesNotFitTheSchemaIsAnError) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(value_of(graph.call(operator_named("aten::relu"), {value_of(x), 1, 2})));
  EXPECT_ERROR(script_text(graph), "node 'relu' cannot be shown:");
}

// --- large graphs ----------------------------------------------------------------------------------------

TEST(ScriptViewOfLargeGraphs, ChainsOfManyCalls) {
  constexpr int64_t kCalls = 100'000;
  Graph graph;
  const Operator &add = operator_named("aten::add.Tensor"), &neg = operator_named("aten::neg");
  Node* x = &graph.placeholder("x");
  for (int64_t i = 0; i < kCalls; ++i) {
    x = i % 2 ? &graph.call(add, {value_of(*x), 1}) : &graph.call(neg, {value_of(*x)});
    x->meta().modules = {{"__module", "Net"}, {"__module.block" + std::to_string(i / 100), "Block"}};
  }
  graph.output(value_of(*x));
  ScriptGraph flat = script_view(graph);
  EXPECT_EQ(flat.nodes().size(), 2u * kCalls);
  EXPECT_TRUE(flat.to_string().ends_with("  return (%200000)\n"));
  EXPECT_TRUE(flat.code().ends_with("  return torch.add(_49998, CONSTANTS.c0)\n"));
  ScriptGraph calls = script_view(graph, {.inline_calls = false, .self_type = "__torch__.Net"});
  EXPECT_EQ(calls.count("prim::CallMethod"), 1000u);
  EXPECT_EQ(calls.callees()[999]->nodes().size(), 200u);
}

TEST(ScriptViewOfLargeGraphs, ModulesInsideModulesToAnyDepth) {
  constexpr int kDepth = 500;
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& neg = graph.call_function("aten::neg", {value_of(x)});
  std::vector<ModuleScope> modules = {{"__module", "Net"}};
  std::string path = "__module";
  for (int i = 0; i < kDepth; ++i) modules.push_back({path += ".m", "Inner"});
  neg.meta().modules = modules;
  graph.output(value_of(neg));
  ScriptGraph view = script_view(graph, {.inline_calls = false, .self_type = "__torch__.Net"});
  int depth = 0;
  for (const ScriptGraph* at = &view; !at->callees().empty(); at = at->callees()[0].get()) ++depth;
  EXPECT_EQ(depth, kDepth);
}

}  // namespace
}  // namespace weft
