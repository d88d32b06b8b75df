// Files of graph modules: what they keep beside the graph, and what is refused.
#include "weft/io/graph_file.h"

#include <gmock/gmock.h>

#include "base/json.h"
#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/graph/missing_operators.h"
#include "weft/graph/parse.h"
#include "weft/graph/script_view.h"
#include "weft/io/folder.h"
#include "weft/io/safetensors.h"
#include "weft/nn/layers.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

GraphModule adds() {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
  graph.output(value_of(graph.call_function("aten::add.Tensor", {value_of(x), value_of(y)})));
  return GraphModule(std::move(graph));
}

TEST(GraphFile, KeepsTypesOfTracedInputs) {
  GraphModule module = adds();
  EXPECT_THAT(graph_module_bytes(module), Not(HasSubstr("traced_inputs")));
  Tensor x = ones({0, 3}, kInt64), y = ones({3}, kFloat32, {}, Device(DeviceType::kSim, 1)).expand({2, 3});
  module.set_traced_inputs(Dict{{"forward", Value::tuple({x, y})}});
  std::string bytes = graph_module_bytes(module);
  GraphModule loaded = parse_graph_module(bytes);
  EXPECT_EQ(graph_module_bytes(loaded), bytes);
  ValueList back = loaded.traced_inputs().at("forward").elements();
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].tensor_ref().dtype(), kInt64);
  EXPECT_EQ(back[0].tensor_ref().plain_numel(), 0);
  EXPECT_EQ(back[1].tensor_ref().device(), Device(DeviceType::kSim, 1));
  EXPECT_EQ(back[1].tensor_ref().strides()[0], 0);
  for (const Value& tensor : back) EXPECT_TRUE(is_fake(tensor.tensor_ref()));
  EXPECT_THAT(script_text(parse_graph_module(bytes, "f", {.restore_shapes = true})),
              StartsWith("graph(%x : Long(0, 3, strides=[3, 1], requires_grad=0, device=cpu),\n"));
  EXPECT_EQ(graph_module_bytes(loaded.deep_copy()), bytes);

  // By name, and one that is not in order.
  module.set_traced_inputs(Dict{{"forward", Dict{{"y", ones({2})}, {"x", ones({1}, kFloat64)}}}});
  EXPECT_THAT(script_text(parse_graph_module(graph_module_bytes(module), "f", {.restore_shapes = true})),
              StartsWith("graph(%x : Double(1, strides=[1], requires_grad=0, device=cpu),\n"
                         "      %y : Float(2, strides=[1], requires_grad=0, device=cpu)):\n"));
  module.set_traced_inputs(Dict{{"forward", Value::tuple({ones({2}), 3})}});
  EXPECT_ERROR(graph_module_bytes(module), "its inputs have an integer");
}

// Buffers of which two share memory, and one tensor under two names.
GraphModule sharing() {
  Tensor v = zeros({4}), w = ones({4}, kFloat64).set_requires_grad();
  GraphModule::Attributes attributes = {{"v", v}, {"u", v.narrow(0, 1, 2)}, {"w", w}, {"tied", w}};
  return GraphModule(attributes, parse_code(R"(
def forward(self, x):
    u = self.u
    v = self.v
    w = self.w
    tied = self.tied
    add_ = torch.ops.aten.add_.Tensor(u, 1)
    add = torch.ops.aten.add.Tensor(x, v)
    mul = torch.ops.aten.mul.Tensor(w, tied)
    add_1 = torch.ops.aten.add.Tensor(add, mul)
    return add_1
)"));
}

TEST(GraphFile, TensorsThatShareMemoryStillDo) {
  const std::string bytes = graph_module_bytes(sharing());
  for (GraphModule module :
       {sharing(), sharing().deep_copy(), parse_graph_module(bytes), parse_graph_module(bytes).deep_copy()}) {
    testing::expect_equal(module(zeros({4})), testing::vec({1, 2, 2, 1}));
    testing::expect_equal(module(zeros({4})), testing::vec({1, 3, 3, 1}));
    EXPECT_TRUE(module.find("tied").tensor_ref().is_same(module.find("w").tensor_ref()));
    EXPECT_TRUE(module.find("w").tensor_ref().requires_grad());
    EXPECT_EQ(module.find("u").tensor_ref().storage(), module.find("v").tensor_ref().storage());
  }
  EXPECT_EQ(graph_module_bytes(parse_graph_module(bytes)), bytes);
}

struct Layered : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(3, 3));
  nn::Sequential tail = child("tail", nn::Sequential(nn::ReLU(), fc));
  Tensor forward(const Tensor& x) { return tail(fc(x)) + fc.weight.sum(); }
  WEFT_ARGS(x)
};

TEST(GraphFile, HoldsWhatLayersDo) {
  Layered net;
  GraphModule traced = symbolic_trace(net);
  const std::string bytes = graph_module_bytes(traced);
  GraphModule loaded = parse_graph_module(bytes);
  EXPECT_EQ(graph_module_bytes(loaded), bytes);
  EXPECT_EQ(loaded.code(), traced.code());
  Tensor x = randn({2, 3});
  testing::expect_equal(loaded(x), net(x));
  // The layer that runs twice has one weight, also where the graph reads it itself.
  {
    NoGrad no_grad;
    loaded.find("fc.weight").to_tensor().fill_(0);
    net.fc.weight.fill_(0);
  }
  testing::expect_equal(loaded(x), net(x));
  EXPECT_EQ(loaded.parameters().size(), 2u);
  // What was saved is as it was.
  EXPECT_FALSE(graph_module_in(traced.find("fc")));
}

TEST(GraphFile, RefusesWhatIsNotThere) {
  auto with = [](std::string_view from, std::string_view to) {
    SafeTensors file = parse_safetensors(graph_module_bytes(sharing()));
    for (auto& [key, text] : file.metadata) {
      const size_t at = text.find(from);
      EXPECT_NE(at, std::string::npos) << text;
      text.replace(at, from.size(), to);
    }
    return safetensors_bytes(file);
  };
  EXPECT_ERROR(parse_graph_module(with("get_attr[target=u]", "get_attr[target=z]")),
               "the graph names 'z' (node 'u'), which is not among the attributes");
  EXPECT_ERROR(parse_graph_module(with("\"sizes\":[2]", "\"sizes\":[9]")),
               "storage_offset=1)\n  while reading 'u'");
  EXPECT_ERROR(parse_graph_module(with("\"same_as\":\"w\"", "\"same_as\":\"q\"")),
               "'tied' is said to be 'q', which is not there before it");
}

TEST(GraphFile, WhateverIsWrongWithItIsAFormatError) {
  Graph graph;
  Node &x = graph.placeholder("x"), &w = graph.get_attr("w");
  graph.output(value_of(graph.call_function("aten::add.Tensor", {value_of(x), value_of(w)})));
  const GraphModule module({{"w", ones({2}, kInt64)}}, std::move(graph));
  const SafeTensors file = parse_safetensors(graph_module_bytes(module));
  SafeTensors renamed, integers = file;
  renamed.metadata = file.metadata;
  renamed.add("v", file.at("w"));
  EXPECT_ERROR_TYPE(FormatError, parse_graph_module(safetensors_bytes(renamed), "a.safetensors"),
                    "a.safetensors: there is no tensor 'w' among the 1 here: v");
  std::string& text = integers.metadata.at(0).second;
  const size_t at = text.find("\"parameter\":false");
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, 17, "\"parameter\":true");
  EXPECT_ERROR_TYPE(FormatError, parse_graph_module(safetensors_bytes(integers)),
                    "only Tensors of floating point and complex dtype can require gradients");
}

TEST(GraphFile, OfALongGraphKeepsItsTextBesideTheHeader) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Value last =
      value_of(graph.call_function("aten::add.Tensor", {value_of(x), value_of(graph.get_attr("w"))}));
  for (int i = 0; i < 20'000; ++i) last = value_of(graph.call_function("aten::neg", {last}));
  graph.output(last);
  const GraphModule module({{"w", ones({2})}}, std::move(graph));
  const std::string bytes = graph_module_bytes(module);
  const SafeTensors file = parse_safetensors(bytes);
  EXPECT_TRUE(file.metadata.empty());
  const GraphModule loaded = parse_graph_module(bytes);
  EXPECT_EQ(loaded.graph().size(), module.graph().size());
  EXPECT_EQ(graph_module_bytes(loaded), bytes);
  testing::expect_equal(loaded(ones({2})), full({2}, 2.));
}

TEST(GraphModule, SaysWhatIsMissingWhenItRuns) {
  GraphModule module(parse_code("def forward(self, x):\n    w = self.w\n    return w\n"));
  EXPECT_ERROR(module.call({ones({2})}), "while preparing %w : [num_users=1] = get_attr[target=w]");
}

// The file of a module with another note of its inputs.
std::string bytes_with(const std::string& tensors) {
  GraphModule module = adds();
  module.set_traced_inputs(Dict{{"forward", Value::tuple({ones({2})})}});
  SafeTensors file = parse_safetensors(graph_module_bytes(module));
  for (auto& [key, text] : file.metadata) {
    Json note = Json::parse(text);
    note["traced_inputs"]["forward"]["tensors"] = Json::parse(tensors);
    text = note.to_text();
  }
  return safetensors_bytes(file);
}

TEST(GraphFile, RefusesInputsThatAreNone) {
  auto tensor = [](const char* dtype, const char* sizes, const char* strides, const char* device,
                   const char* grad) {
    return fmt::format(R"([{{"dtype":"{}","sizes":{},"strides":{},"device":"{}","requires_grad":{}}}])",
                       dtype, sizes, strides, device, grad);
  };
  EXPECT_NO_THROW(parse_graph_module(bytes_with(tensor("float32", "[2]", "[1]", "cpu", "true"))));
  for (const auto& [tensors, words] : std::vector<std::pair<std::string, std::string>>{
           {"[]", "the arguments of forward are 1 tensors, not 0"},
           {"[3]", "expected"},
           {tensor("float33", "[2]", "[1]", "cpu", "false"), "\"float33\" is no dtype"},
           {tensor("float32", "[-2]", "[1]", "cpu", "false"), "not negative, but got -2"},
           {tensor("float32", "[2, 3]", "[1]", "cpu", "false"), "a stride for each size, but got 1 for 2"},
           {tensor("float32", "[2]", "[\"a\"]", "cpu", "false"), "expected"},
           {tensor("float32", "[4611686018427387904, 4]", "[1, 1]", "cpu", "false"), "beyond all memory"},
           {tensor("float32", "[3]", "[4611686018427387904]", "cpu", "false"), "beyond all memory"},
           {tensor("float32", "[2]", "[1]", "abacus", "false"), "\"abacus\" is not a device"},
           {tensor("int64", "[2]", "[1]", "cpu", "true"), "a tensor of int64 cannot require a gradient"}})
    EXPECT_ERROR_TYPE(FormatError, parse_graph_module(bytes_with(tensors)), words);
}

TEST(GraphFile, KeepsOperatorsThatWeftDoesNotHave) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& foo = graph.call(Target::of_operator("lacking::saved.Tensor"), {value_of(x), 2}, {{"mode", "fast"}});
  graph.output(value_of(foo));
  const GraphModule module(std::move(graph));
  const GraphModule loaded = parse_graph_module(graph_module_bytes(module));
  EXPECT_EQ(loaded.code(), module.code());
  ASSERT_EQ(missing_operators(loaded).size(), 1u);
  EXPECT_EQ(missing_operators(loaded)[0].name, "lacking::saved.Tensor");
  EXPECT_ERROR(loaded(ones({2})), "lacking::saved.Tensor (node saved)");
  EXPECT_ERROR(cpp_source(module, "Net"),
               "node 'saved' calls lacking::saved.Tensor, which weft does not have");
}

}  // namespace
}  // namespace weft
