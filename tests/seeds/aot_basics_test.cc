// TestAOTAutograd: values in, values out.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/verify_aot.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/function.h"
#include "weft/nn/activations.h"
#include "weft/nn/layers.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::aot_leaf;
using testing::MadeInputs;
using testing::program;
using testing::verify_aot_autograd;

TEST(TestAOTAutograd, test_non_tensor_and_none_inputs) {
  auto f = program([](int64_t a, const Value&, const Tensor& c) { return a * c; });
  for (bool grad : {true, false}) verify_aot_autograd(f, {2, Value(), aot_leaf(ones({3, 3}), grad)});
}

TEST(TestAOTAutograd, test_single_output) {
  auto f = program([](const Tensor& a, const Tensor& b) { return a + b; });
  for (bool grad : {true, false}) verify_aot_autograd(f, {aot_leaf(randn({3, 3}), grad), randn({3, 3})});
}

TEST(TestAOTAutograd, test_multi_output) {
  auto f = program([](const Tensor& a, const Tensor& b) { return std::tuple{a + b, a - b}; });
  for (bool grad : {true, false}) verify_aot_autograd(f, {aot_leaf(randn({3, 3}), grad), randn({3, 3})});
}

TEST(TestAOTAutograd, test_multi_output_list) {
  auto f = program([](const Tensor& a, const Tensor& b) { return std::vector<Tensor>{a + b, a - b}; });
  for (bool grad : {true, false}) verify_aot_autograd(f, {aot_leaf(randn({3, 3}), grad), randn({3, 3})});
}

TEST(TestAOTAutograd, test_squeeze_mutation) {
  auto f = program([](const Tensor& a) {
    Tensor b = a.clone().squeeze(-1);
    b.add_(1.0);
    return a + b;
  });
  for (bool grad : {true, false}) verify_aot_autograd(f, {aot_leaf(randn({3, 1}), grad)}, {.dynamic = true});
}

TEST(TestAOTAutograd, test_some_outputs_dont_require_grad_non_view) {
  auto f = program([](const Tensor& a, const Tensor& b) { return std::tuple{a.add(1).detach(), b}; });
  verify_aot_autograd(f, {aot_leaf(randn({3, 3}), true), aot_leaf(randn({3, 3}), true)});
}

TEST(TestAOTAutograd, test_inner_grad) {
  auto f = program([](const Tensor& x) { return std::tuple{autograd::grad({exp(x)}, {x})[0]}; });
  verify_aot_autograd(f, {aot_leaf(randn({}), true)});
}

TEST(TestAOTAutograd, test_grad_context) {
  size_t size = 0;
  auto counter = [&](GraphModule& graph, const ValueList& examples) {
    size = graph.graph().size();
    return aot::nop(graph, examples);
  };
  auto twice = [](const Tensor& x) { return x * 2; };
  Tensor x = aot_leaf(randn({}), true);
  AotOptions options{.forward_compiler = aot::nop, .backward_compiler = counter};
  {
    NoGrad no_grad;
    aot_function(twice, options)(x);
    EXPECT_EQ(size, 0u);
  }
  Tensor out = aot_function(twice, options)(x);
  EXPECT_EQ(size, 0u);
  out.sum().backward();
  EXPECT_GT(size, 2u);
}

TEST(TestAOTAutograd, test_output_dict) {
  using Entries = std::map<std::string, Tensor>;
  verify_aot_autograd(program([](const Tensor& x) { return Entries{{"a", x}, {"b", x}}; }),
                      {aot_leaf(randn({3, 3}), true)});
  verify_aot_autograd(
      program([](const Tensor& x, const Tensor& y) { return Entries{{"a", x}, {"b", y + x}}; }),
      {aot_leaf(randn({3}), true), randn({3})});
  auto doubled = [](Args args) {
    Dict out;
    for (const auto& [key, value] : args[0].to_dict()) out.set(key, value.to_tensor() * 2);
    return Value(out);
  };
  Tensor b = aot_leaf(randn({3}), true), a = aot_leaf(randn({3}), true);
  auto made = [&] {
    Tensor own_b = aot_leaf(b.detach().clone(), true), own_a = aot_leaf(a.detach().clone(), true);
    Dict given;
    given.set("b", own_b);  // keys keep their order
    given.set("a", own_a);
    return testing::MadeInputs{{own_b, own_a}, {Value(given)}};
  };
  verify_aot_autograd(doubled, made);
}

struct LinearRelu : nn::Module {
  nn::Linear linear = child("linear", nn::Linear(32, 32));
  Tensor forward(const Tensor& x) { return relu(linear(x)); }
  WEFT_ARGS(x)
};

TEST(TestAOTAutograd, test_module) {
  LinearRelu module;
  AotModule compiled = compiled_module(module, aot::nop, aot::nop);
  Tensor x = randn({32, 32});
  Tensor plain = module(x);
  plain.sum().backward();
  std::vector<Tensor> expected;
  for (const Tensor& parameter : module.parameters()) expected.push_back(parameter.grad().clone());
  Tensor out = compiled(x);
  EXPECT_TRUE(testing::close(out, plain, 1e-6, 1e-6));
  out.sum().backward();
  // They accumulate: the compiled module has the parameters of the plain one.
  std::vector<Tensor> parameters = compiled.parameters();
  ASSERT_EQ(parameters.size(), expected.size());
  for (size_t i = 0; i < parameters.size(); ++i)
    EXPECT_TRUE(testing::close(parameters[i].grad(), expected[i] * 2, 1e-5, 1e-5));
}

TEST(TestAOTAutograd, test_list_codegen) {
  bool consumed = false;
  auto boxed = [&](GraphModule& graph, const ValueList&) {
    return aot::CompiledGraph::boxed([&consumed, graph](ValueList inputs) {
      Value result = graph.call(inputs);
      inputs.clear();
      consumed = true;
      return result.elements();
    });
  };
  auto f = aot_function(
      [](const Tensor& a, const Tensor& b, const Tensor& c) { return a.sin() * b.cos() * c.sin(); },
      {.forward_compiler = boxed});
  Tensor a = aot_leaf(randn({5}), true), b = aot_leaf(randn({5}), true), c = aot_leaf(randn({5}), true);
  Tensor out = f(a, b, c);
  EXPECT_TRUE(consumed);
  consumed = false;
  out.sum().backward();
  EXPECT_TRUE(consumed);
  NoGrad no_grad;
  EXPECT_TRUE(testing::close(out, a.sin() * b.cos() * c.sin(), 1e-6, 1e-6));
  EXPECT_TRUE(testing::close(a.grad(), a.cos() * b.cos() * c.sin(), 1e-6, 1e-6));
}

TEST(TestAOTAutograd, test_compilation_context) {
  aot::reset_graph_counter();
  std::vector<std::pair<std::vector<std::string>, size_t>> seen;
  auto compiler = [&](GraphModule& graph, const ValueList& examples) {
    seen.emplace_back(aot::compilation_context().names, graph.graph().size());
    return aot::nop(graph, examples);
  };
  Tensor x = aot_leaf(randn({5}), true);
  AotFunction f = aot_function([](const Tensor& t) { return t.sin().sin(); }, {.forward_compiler = compiler});
  Tensor out = f(x);
  AotFunction again = aot_function(f, {.forward_compiler = compiler});
  again(randn({5}));
  out.sum().backward();
  using Entry = std::pair<std::vector<std::string>, size_t>;
  EXPECT_EQ(seen, (std::vector<Entry>{{{"0_forward"}, 4}, {{"1_inference"}, 4}, {{"0_backward"}, 8}}));
  EXPECT_TRUE(aot::compilation_context().names.empty());
}

struct GradPlusOne : autograd::Function<GradPlusOne> {
  static Tensor forward(autograd::FunctionContext&, const Tensor& x) { return x.clone(); }
  static std::vector<Tensor> backward(autograd::FunctionContext&, const std::vector<Tensor>& grads) {
    return {grads[0] + 1};
  }
};

TEST(TestAOTAutograd, test_custom_autograd) {
  auto f = program([](const Tensor& x) { return GradPlusOne::apply(x); });
  for (bool grad : {false, true})
    verify_aot_autograd(f, {aot_leaf(randn({3}), grad)}, {.strict_cache = false});
}

TEST(TestAOTAutograd, test_inference_mode) {
  nn::Linear linear(4, 4);
  AotModule compiled = aot_module(linear);
  Tensor x = randn({4, 4});
  InferenceMode inference;
  EXPECT_TRUE(testing::close(compiled(x), linear(x), 1e-6, 1e-6));
}

}  // namespace
}  // namespace weft
