// TestAOTAutograd: calls with other arguments than a function was compiled for. TestAOTModuleSimplified.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/verify_aot.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/nn/layers.h"
#include "weft/nn/normalisation.h"
#include "weft/nn/spatial.h"
#include "weft/ops/fake.h"
#include "weft/ops/functions.h"
#include "weft/sym/text.h"

namespace weft {
namespace {

using testing::aot_leaf;
using testing::program;
using testing::verify_compiled;

std::string refusal(int graph, const std::string& assumption) {
  return "At compilation time, graph " + std::to_string(graph) + " was compiled under the assumption that " +
         assumption +
         ", but at runtime this was not the case.  This indicates a guard bug in AOTAutograd or Dynamo, "
         "please file a bug "
         "to PyTorch.";
}
template <typename F>
std::string message_of(F f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.message();
  }
  return "";
}

struct TransposeFirst : nn::Module {
  std::tuple<Tensor> forward(const Tensor& x, const Tensor& y) {
    x.t_();
    return x + y;
  }
  WEFT_ARGS(x, y)
};

TEST(TestAOTAutograd, test_invalid_dupe_left_bias) {
  aot::reset_graph_counter();
  TransposeFirst module;
  auto leaves = [] { return aot_leaf(randn({3, 3})); };
  Tensor leaf = leaves();
  auto made = [&] {
    Tensor own = aot_leaf(leaf.detach().clone()), x = own.clone();
    return testing::MadeInputs{{own}, {x, x}};
  };
  verify_compiled(program([&](const Tensor& x, const Tensor& y) { return module(x, y); }),
                  [&](const AotOptions& options) -> ValueFunction {
                    AotModule compiled = aot_module(module, options);
                    return [compiled](Args args) { return compiled.call(args); };
                  },
                  made, {});
  Tensor x = leaves().clone(), y = leaves().clone();
  AotModule compiled = aot_module_simplified(module, {x, x});
  EXPECT_EQ(message_of([&] { compiled.call({x, y}); }),
            refusal(2, "input 1 would be a duplicate of input 0"));
}

struct UnsqueezeBoth : nn::Module {
  std::tuple<Tensor> forward(const Tensor& x, const Tensor& y) {
    x.unsqueeze_(0);
    y.unsqueeze_(0);
    return x + y;
  }
  WEFT_ARGS(x, y)
};

// Compiled for (x, y) and for (x, x), from tensors that `as_example` makes of them.
void expect_dupe_refusals(const std::function<Tensor(const Tensor&)>& as_example) {
  aot::reset_graph_counter();
  UnsqueezeBoth module;
  auto inputs = [] { return std::pair{aot_leaf(ones({3, 3})).clone(), aot_leaf(full({3, 3}, 2.0)).clone()}; };
  auto [x, y] = inputs();
  AotModule distinct = aot_module_simplified(module, {as_example(x), as_example(y)});
  auto run = [](const AotModule& compiled, const Tensor& a, const Tensor& b) {
    return compiled.call({a, b}).elements()[0].to_tensor().detach();
  };
  testing::expect_equal(run(distinct, x, y), full({1, 3, 3}, 3.0));
  EXPECT_EQ(x.dim(), 3);
  auto [x2, y2] = inputs();
  testing::expect_equal(run(distinct, x2, x2), full({1, 3, 3}, 2.0));  // as if they were two
  auto [x3, y3] = inputs();
  const Tensor example = as_example(x3);
  AotModule same = aot_module_simplified(module, {example, example});
  testing::expect_equal(run(same, x3, x3), full({1, 1, 3, 3}, 2.0));
  EXPECT_EQ(x3.dim(), 4);
  auto [x4, y4] = inputs();
  EXPECT_EQ(message_of([&] { same.call({x4, y4}); }), refusal(1, "input 1 would be a duplicate of input 0"));
}

TEST(TestAOTAutograd, test_invalid_dupe) {
  expect_dupe_refusals([](const Tensor& tensor) { return tensor; });
}

TEST(TestAOTAutograd, test_invalid_dupe_fake) {
  auto converter = make_ref<FakeConverter>(ShapeEnv::create());
  expect_dupe_refusals([&](const Tensor& tensor) { return converter->convert(tensor); });
}

struct Sum : nn::Module {
  std::tuple<Tensor> forward(const Tensor& x, const Tensor& y) { return x + y; }
  WEFT_ARGS(x, y)
};

void expect_gradient_refusals(const std::function<Tensor(const Tensor&)>& as_example) {
  aot::reset_graph_counter();
  Sum module;
  Tensor x = aot_leaf(randn({3, 3})), y = aot_leaf(randn({3, 3})), z = randn({3, 3});
  AotModule both = aot_module_simplified(module, {as_example(x), as_example(y)});
  AotModule first = aot_module_simplified(module, {as_example(x), as_example(z)});
  auto check = [&](const AotModule& compiled, const Tensor& a, const Tensor& b) {
    for (const Tensor& leaf : {a, b}) leaf.set_grad({});
    std::get<0>(module(a, b)).sum().backward();
    std::vector<Tensor> expected = {a.grad(), b.grad()};
    for (const Tensor& leaf : {a, b}) leaf.set_grad({});
    Tensor out = compiled.call({a, b}).elements()[0].to_tensor();
    testing::expect_equal(out.detach(), std::get<0>(module(a, b)).detach());
    out.sum().backward();
    testing::expect_equal(a.grad(), expected[0]);
    ASSERT_EQ(b.grad().defined(), expected[1].defined());
    if (expected[1].defined()) testing::expect_equal(b.grad(), expected[1]);
  };
  check(both, x, y);
  check(both, x, z);
  check(first, x, z);
  EXPECT_EQ(message_of([&] { first.call({x, y}); }), refusal(1, "input 1 would not require grad"));
}

TEST(TestAOTAutograd, test_invalid_requires_grad) {
  expect_gradient_refusals([](const Tensor& tensor) { return tensor; });
}

TEST(TestAOTAutograd, test_invalid_requires_grad_fake) {
  auto converter = make_ref<FakeConverter>(ShapeEnv::create());
  expect_gradient_refusals([&](const Tensor& tensor) { return converter->convert(tensor); });
}

// --- TestAOTModuleSimplified -----------------------------------------------------------------------------

struct LinearPlus : nn::Module {
  nn::Linear linear = child("linear", nn::Linear(20, 30));
  std::tuple<Tensor> forward(const Tensor& x, const Tensor& y) { return linear(x) + y; }
  WEFT_ARGS(x, y)
};

void expect_linear_plus(const LinearPlus& module, const AotModule& compiled, const Tensor& x,
                        const Tensor& y) {
  Tensor x2 = aot_leaf(x.detach().clone()), y2 = aot_leaf(y.detach().clone());
  Tensor expected = std::get<0>(module(x, y)), out = compiled.call({x2, y2}).elements()[0].to_tensor();
  EXPECT_TRUE(testing::close(out, expected, 1e-5, 1e-5));
  expected.sum().backward();
  out.sum().backward();
  EXPECT_TRUE(testing::close(x2.grad(), x.grad(), 1e-5, 1e-5));
  EXPECT_TRUE(testing::close(y2.grad(), y.grad(), 1e-5, 1e-5));
}

TEST(TestAOTModuleSimplified, test_aot_module_simplified) {
  LinearPlus module;
  Tensor x = aot_leaf(randn({128, 20})), y = aot_leaf(randn({128, 30}));
  expect_linear_plus(module, aot_module_simplified(module, {x, y}), x, y);
}

TEST(TestAOTModuleSimplified, test_aot_module_simplified_dynamic) {
  LinearPlus module;
  Tensor x = aot_leaf(randn({128, 20})), y = aot_leaf(randn({128, 30}));
  Ref<ShapeEnv> env = ShapeEnv::create();
  auto converter = make_ref<FakeConverter>(env);
  AotModule compiled =
      aot_module_simplified(module, {converter->convert(x, "x"), converter->convert(y, "y")});
  expect_linear_plus(module, compiled, x, y);
  EXPECT_EQ(env->format_guards(), " - Eq(s1, 20)\n - Eq(s2, 30)");
  // The free size is free.
  Tensor x2 = aot_leaf(randn({7, 20})), y2 = aot_leaf(randn({7, 30}));
  expect_linear_plus(module, compiled, x2, y2);
}

struct TimesLiteral : nn::Module {
  std::tuple<Tensor> forward(const Tensor& x) {
    Tensor c = from_data<int64_t>({1});
    return x.mul(lift_fresh_copy(c));
  }
  WEFT_ARGS(x)
};

TEST(TestAOTModuleSimplified, test_lift_fresh_copy_in_graph) {
  TimesLiteral module;
  Tensor x = aot_leaf(randn({4}));
  auto converter = make_ref<FakeConverter>(ShapeEnv::create());
  AotModule compiled = aot_module_simplified(module, {converter->convert(x)});
  testing::expect_equal(compiled.call({x}).elements()[0].to_tensor().detach(),
                        std::get<0>(module(x)).detach());
}

struct Upsampling : nn::Module {
  std::tuple<Tensor> forward(const Tensor& x) {
    return nn::functional::interpolate(x, {.scale_factor = {2.0}, .mode = "bilinear", .align_corners = true});
  }
  WEFT_ARGS(x)
};

TEST(TestAOTModuleSimplified, test_inference_python_dispatcher) {
  Upsampling module;
  Tensor x = randn({2, 512, 40, 59});
  auto converter = make_ref<FakeConverter>(ShapeEnv::create());
  AotModule compiled = aot_module_simplified(module, {converter->convert(x)});
  EXPECT_TRUE(
      testing::close(compiled.call({x}).elements()[0].to_tensor(), std::get<0>(module(x)), 1e-5, 1e-5));
}

struct LinearAddRelu : nn::Module {
  nn::Linear linear = child("linear", nn::Linear(20, 30));
  std::tuple<Tensor> forward(const Tensor& x, const Tensor& y) {
    Tensor z = linear(x);
    z = z + y;
    z = z.relu();
    return z;
  }
  WEFT_ARGS(x, y)
};

void expect_sources(const Graph& graph, std::initializer_list<NodeKind> without) {
  for (Node& node : graph) {
    if (std::ranges::find(without, node.kind()) != without.end()) continue;
    EXPECT_NE(node.source().find("aot_guards_test.cc"), std::string::npos) << node.line() << "\n"
                                                                           << node.source();
  }
}

TEST(TestAOTModuleSimplified, test_aot_module_simplified_preserves_stack_trace) {
  GraphModule traced = symbolic_trace(LinearAddRelu(), {.record_stack_traces = true});
  expect_sources(traced.graph(), {NodeKind::kOutput});
  int graphs = 0;
  auto check = [&](GraphModule& graph, const ValueList& examples) {
    ++graphs;
    expect_sources(graph.graph(), {NodeKind::kPlaceholder, NodeKind::kOutput});
    return aot::nop(graph, examples);
  };
  Tensor x = aot_leaf(randn({128, 20})), y = aot_leaf(randn({128, 30}));
  AotModule compiled = aot_module_simplified(traced, {x, y}, {.forward_compiler = check});
  tree_leaves(compiled.call({x, y}))[0].to_tensor().sum().backward();
  EXPECT_EQ(graphs, 2);
}

struct WritesView : nn::Module {
  std::tuple<Tensor> forward(const Tensor& x) {
    Tensor x_view = x[0];
    x_view.mul_(2);
    return x + x;
  }
  WEFT_ARGS(x)
};

TEST(TestAOTModuleSimplified, test_aot_module_simplified_preserves_stack_trace_from_mutation) {
  GraphModule traced = symbolic_trace(WritesView(), {.record_stack_traces = true});
  expect_sources(traced.graph(), {NodeKind::kOutput});
  int copies = 0;
  auto check = [&](GraphModule& graph, const ValueList& examples) {
    for (Node& node : graph.graph()) {
      if (node.target().to_string() != "torch.ops.aten.copy_.default") continue;
      ++copies;
      EXPECT_NE(node.stack_trace().find("aot_guards_test.cc"), std::string::npos) << node.stack_trace();
      EXPECT_NE(node.stack_trace().find("x_view.mul_(2)"), std::string::npos) << node.stack_trace();
    }
    return aot::nop(graph, examples);
  };
  aot_module_simplified(traced, {randn({128, 20})},
                        {.forward_compiler = check, .keep_inference_input_mutations = true});
  EXPECT_EQ(copies, 1);
}

struct AddsFree : nn::Module {
  Tensor fake;
  std::tuple<Tensor> forward(const Tensor& x) { return x + fake; }
  WEFT_ARGS(x)
};

TEST(TestAOTModuleSimplified, test_aot_module_simplified_fake_tensor_gm_raises) {
  auto converter = make_ref<FakeConverter>(ShapeEnv::create());
  Tensor real = randn({4});
  AddsFree module;
  module.fake = converter->convert(randn({4}));
  EXPECT_ERROR(aot_module_simplified(module, {converter->convert(real)}), "Unexpected fake");
}

}  // namespace
}  // namespace weft
