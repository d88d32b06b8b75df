// The code of docs/graph.md and docs/capture.md, run. tests/house/snippets_test.cc holds the pages to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/tensors.h"
#include "weft/extend.h"

namespace weft {
namespace {

using testing::close;

struct SigmoidToTanh : Transformer {
  using Transformer::Transformer;
  Value call_function(const Target& target, Args args, const Kwargs& kwargs) override {
    if (target == Target(operator_named("aten::sigmoid")))
      return Transformer::call_function(operator_named("aten::tanh"), args, kwargs);
    return Transformer::call_function(target, args, kwargs);
  }
};

TEST(GraphPage, NodesTextsAndRuns) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.call_function("aten::relu", {value_of(x)});
  Node& z = graph.call_function("aten::add.Tensor", {value_of(y), 1});
  graph.output(value_of(z));
  graph.lint();

  Node& sigmoid = [&]() -> Node& {
    auto scope = graph.inserting_before(z);
    return graph.call_function("aten::sigmoid", {value_of(x)});
  }();
  y.replace_all_uses_with(sigmoid);
  graph.erase(y);

  Graph again = parse_code(graph.code());
  bool same = same_graph(graph, again);
  EXPECT_TRUE(same);

  GraphModule module(std::move(graph));
  Tensor result = module(ones({3}));
  module.graph().find("add")->set_arg(1, 5);
  Tensor other = module(ones({3}));
  EXPECT_TRUE(close(result, ones({3}).sigmoid() + 1, 1e-6, 1e-6));
  EXPECT_TRUE(close(other, ones({3}).sigmoid() + 5, 1e-6, 1e-6));
  EXPECT_TRUE(close(SigmoidToTanh(module).transform()(ones({3})), ones({3}).tanh() + 5, 1e-6, 1e-6));
}

TEST(GraphPage, MissingOperators) {
  // clang-format off: as the page has it
  Graph foreign = parse_code(R"(
def forward(self, x):
    scale = torch.ops.my_library.scale.default(x, 3.0)
    return scale
)", {.missing_operators = true});
  std::vector<MissingOperator> missing = missing_operators(foreign);
  define_operator("my_library::scale(Tensor x, float by) -> Tensor",
                  {.kernel = [](const Tensor& t, double by) { return t * by; }});
  Tensor scaled = GraphModule(std::move(foreign))(ones({3}));
  // clang-format on
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].name, "my_library::scale");
  EXPECT_TRUE(close(scaled, full({3}, 3), 0, 0));
}

TEST(GraphPage, DeepCopies) {
  nn::Sequential net(nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 1));
  nn::Sequential twin = nn::deep_copy(net);
  optim::SGD optimizer(twin.parameters(), {.lr = 0.1});  // training it leaves `net` alone
  const Tensor x = randn({2, 3}), before = net(x).detach();
  twin(x).sum().backward();
  optimizer.step();
  EXPECT_TRUE(close(net(x).detach(), before, 0, 0));
  EXPECT_FALSE(close(twin(x).detach(), before, 0, 0));
}

TEST(GraphPage, RandomNumbers) {
  GraphModule noisy = make_graph([](const Tensor& t) {
    Tensor unused = rand_like(t);
    return t + rand_like(t);
  })(ones({3}));
  noisy.graph().eliminate_dead_code(/*random_is_impure=*/false);  // the second draw stays the second
  auto scope = fork_rng();
  manual_seed(3);
  Tensor drawn = noisy(ones({3}));
  manual_seed(3);
  rand({3});
  EXPECT_TRUE(close(drawn, ones({3}) + rand({3}), 0, 0));
}

TEST(GraphPage, GivenRandomNumbers) {
  // clang-format off: as the page has it
  GraphModule forward = make_graph([](const Tensor& t) {
    rand_like(t);
    return std::get<0>(native_dropout(t, 0.5, true));
  })(ones({8}));
  Graph again_dropped;
  Node& saved = again_dropped.placeholder("x");
  Node& mask = again_dropped.node_copy(*forward.graph().find("native_dropout"), [&](Node& /* x */) { return value_of(saved); });
  again_dropped.output(value_of(mask));
  RunResult dropped = forward.run({ones({8})});
  Value same_mask = GraphModule(std::move(again_dropped)).run({ones({8})}, {.random = dropped.random}).value;
  // clang-format on
  EXPECT_TRUE(close(same_mask.elements()[0].to_tensor(), dropped.value.to_tensor(), 0, 0));
}

TEST(GraphPage, AsCpp) {
  const std::string folder = ::testing::TempDir() + "weft_graph_page_" + std::to_string(::getpid());
  GraphModule scale({{"gain.0", full({2}, 3)}}, parse_code(R"(
def forward(self, x):
    gain_0 = getattr(self.gain, "0")
    mul = torch.ops.aten.mul.Tensor(x, gain_0)
    relu = mul.relu()
    return relu
)"));
  to_folder(scale, folder, "Scale");
  GraphModule again_scale = load_folder(folder, "Scale");
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(close(again_scale(ones({2})), full({2}, 3), 0, 0));
  EXPECT_THAT(cpp_source(scale, "Scale").source, ::testing::HasSubstr(R"(
Tensor Scale::forward(const Tensor& x) {
  Tensor gain_0 = this->gain_0;
  Tensor mul = weft::mul(x, gain_0);
  Tensor relu = weft::relu(mul);
  return relu;
}
)"));
}

TEST(GraphPage, Passes) {
  Graph pattern = make_graph([](const Tensor& t) { return t * t.sigmoid(); })(randn({3})).graph().copy();
  Graph replacement = make_graph([](const Tensor& t) { return silu(t); })(randn({3})).graph().copy();
  GraphModule program = make_graph([](const Tensor& t) { return (t * t.sigmoid()).exp(); })(randn({3}));
  auto fuse = [&](GraphModule& m) { return !replace_pattern(m.graph(), pattern, replacement).empty(); };
  std::vector<PassReport> reports = run_passes(program, {{"fuse silu", fuse}}, {.verify = true});
  EXPECT_TRUE(reports[0].changed);
  EXPECT_THAT(program.code(), ::testing::HasSubstr("silu"));
}

TEST(GraphPage, ControlFlow) {
  auto choose = [](const Tensor& t) {
    return func::cond(
        t.sum() > 0, [](const Tensor& u) { return u.cos(); }, [](const Tensor& u) { return u.sin(); }, t);
  };
  GraphModule branches = make_graph(choose)(ones({3}));
  GraphModule when_positive = *graph_module_in(branches.find("true_graph_0"));
  EXPECT_THAT(when_positive.code(), ::testing::HasSubstr("cos"));
  EXPECT_TRUE(close(branches(-ones({3})), (-ones({3})).sin(), 0, 0));
}

TEST(CapturePage, MakeGraph) {
  auto loss = [](const Tensor& w, const Tensor& x) { return matmul(x, w).sin().sum(); };
  GraphModule gradient = make_graph(func::grad(loss), {.arg_names = "w, x"})(randn({4, 3}), randn({2, 4}));
  EXPECT_THAT(gradient.code(), ::testing::HasSubstr("cos"));

  Ref<ShapeEnv> sizes = ShapeEnv::create();
  auto flat = [](const Tensor& x) { return x.view({x.size(0) * x.size(1)}) * 2; };
  GraphModule symbolic =
      make_graph(flat, {.mode = CaptureMode::kSymbolic, .shape_env = sizes})(randn({3, 4}));
  Tensor of_other_sizes = symbolic(randn({5, 7}));
  EXPECT_EQ(of_other_sizes.plain_numel(), 35);

  auto writes = [](const Tensor& x) {
    Tensor y = x.clone();
    y.select(0, 0).add_(1);
    return y;
  };
  GraphModule functional = make_graph(func::functionalize(writes))(randn({2, 3}));
  verify(functional, Stage::kFunctional);
}

struct Net : nn::Module {
  nn::Linear fc1 = child("fc1", nn::Linear(8, 16));
  nn::Linear fc2 = child("fc2", nn::Linear(16, 4));
  Tensor forward(const Tensor& x) { return fc2(relu(fc1(x))); }
  WEFT_ARGS(x)
};

TEST(CapturePage, SymbolicTraceAndTrace) {
  Net net;
  GraphModule layers = symbolic_trace(net);
  Tensor same_as_net = layers(randn({2, 8}));
  EXPECT_EQ(layers.graph().size(), 5u);

  GraphModule untyped = symbolic_trace([](Var a, Var b) {
    assert_that(a == b["n"], "must be equal");
    return a + b["x"];
  });
  Value seven = untyped.call({3, Dict{{"n", 3}, {"x", 4}}});
  EXPECT_EQ(seven.to_int(), 7);

  TracedModule traced = trace(net, randn({2, 8}));
  Tensor again = traced(randn({5, 8}));
  EXPECT_EQ(again.size(0), 5);

  std::string text = traced.graph_text(), inlined = traced.graph_text({.inline_calls = true});
  std::string code = traced.code();
  EXPECT_THAT(text, ::testing::HasSubstr("prim::CallMethod[name=\"forward\"](%fc1, %x)"));
  EXPECT_THAT(inlined, ::testing::HasSubstr("aten::linear"));
  EXPECT_THAT(code, ::testing::StartsWith("def forward(self,\n    x: Tensor) -> Tensor:\n"));

  traced.set_attribute("fc1.weight", zeros({16, 8}).set_requires_grad());
  traced.reconstruct(traced.forward_method().graph_module().deep_copy());
  Tensor last_layer_of_bias = net.fc2(relu(net.fc1.find("bias").to_tensor()));
  EXPECT_TRUE(close(traced(randn({1, 8})), last_layer_of_bias.view({1, 4}), 1e-6, 1e-6));
}

TEST(CapturePage, CallsFormsForksAndNestedTensors) {
  Net net;
  TracedModule traced = trace(net, randn({2, 8}));
  GraphModule runs = traced.graph_for({randn({5, 8})});
  std::string constants_pooled = script_text(runs, {.self_type = "__torch__.Net"});
  EXPECT_THAT(constants_pooled, ::testing::HasSubstr("aten::linear"));

  auto both = [](const Tensor& t) {
    Future<Tensor> left = fork([](const Tensor& u) { return u.sin(); }, t);
    return t.cos() + left.wait();
  };
  TracedFunction forked = trace(both, randn({3}));
  EXPECT_THAT(script_text(forked.graph_module()), ::testing::HasSubstr("prim::fork_0("));

  auto cosines = [](const Tensor& rows, const Tensor& lengths) {
    return nested_from_lengths(rows, lengths).cos();
  };
  TracedFunction nested = trace(cosines, Value::tuple({randn({5, 4}), from_data<int64_t>({2, 3})}));
  std::vector<Tensor> three = nested(randn({6, 4}), from_data<int64_t>({1, 2, 3})).unbind();
  EXPECT_EQ(three.size(), 3u);

  TracedFunction twice = trace([](const Tensor& t) { return t * 2; }, randn({3}), {.name = "twice"});
  NoInlineScope keep_calls;
  TracedFunction calls = trace([&](const Tensor& t) { return twice(t) + 1; }, randn({3}));
  std::string as_torchscript = script_text(calls.graph_module());
  EXPECT_THAT(as_torchscript, ::testing::HasSubstr("prim::CallFunction"));
}

}  // namespace
}  // namespace weft
