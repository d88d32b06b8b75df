// TestPartitioning: joint graphs as forward and backward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/verify_aot.h"
#include "weft/autograd/autograd.h"
#include "weft/base/random.h"
#include "weft/models/resnet.h"
#include "weft/nn/functional.h"
#include "weft/nn/layers.h"
#include "weft/ops/autocast.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::aot_leaf;
using testing::Counts;
using testing::counts_of;
using ::testing::ElementsAre;
using testing::forward_and_backward;
using testing::output_nodes;

TEST(TestPartitioning, test_recompute_partitioning) {
  auto f = [](const Tensor& a, const Tensor& b) { return sin(sin(a)) + b; };
  Tensor a = aot_leaf(rand({10, 10})), b = aot_leaf(rand({10, 10}));
  Tensor a2 = aot_leaf(a.detach().clone()), b2 = aot_leaf(b.detach().clone());
  Tensor expected = f(a, b),
         out = compiled_function(f, aot::nop, aot::nop, aot::min_cut_partitioner())(a2, b2);
  expected.sum().backward();
  out.sum().backward();
  EXPECT_TRUE(testing::close(out, expected, 1e-3, 1e-3));
  EXPECT_TRUE(testing::close(a2.grad(), a.grad(), 1e-3, 1e-3));
  EXPECT_TRUE(testing::close(b2.grad(), b.grad(), 1e-3, 1e-3));
}

struct GeluLinear : nn::Module {
  Tensor weight = parameter("weight", randn({3072, 768}).set_requires_grad());
  Tensor bias = parameter("bias", randn({3072}).set_requires_grad());
  Tensor forward(const Tensor& x) { return gelu(linear(x, weight, bias)); }
  WEFT_ARGS(x)
};

TEST(TestPartitioning, test_meta_tensor_inplace_op) {
  size_t checked = 0;
  auto check = [&](GraphModule& graph, const ValueList& examples) {
    for (Node& node : graph.graph()) {
      if (node.kind() == NodeKind::kOutput) continue;
      ++checked;
      const NodeMeta* meta = node.meta_or_null();
      EXPECT_TRUE(meta && meta->value.is_tensor()) << node.name();
      if (!meta || !meta->value.is_tensor()) continue;
      EXPECT_GT(meta->value.tensor_ref().dim(), 0) << node.name();
      EXPECT_EQ(meta->value.tensor_ref().dtype(), DType::kFloat32) << node.name();
      EXPECT_EQ(meta->value.tensor_ref().strides().size(), meta->value.tensor_ref().sizes().size());
    }
    return aot::nop(graph, examples);
  };
  AotModule compiled = aot_module(GeluLinear(), {.forward_compiler = check});
  compiled(aot_leaf(randn({16, 128, 768}))).sum().backward();
  EXPECT_GT(checked, 10u);
}

TEST(TestPartitioning, test_default_partitioner_getitem) {
  nn::LayerNorm norm({10});
  auto f = [](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return layer_norm(x, {10}, weight, bias, 1e-6);
  };
  auto [forward, backward] =
      forward_and_backward(testing::program(f), {aot_leaf(randn({3, 10})), norm.weight, norm.bias},
                           {.partitioner = aot::default_partition});
  EXPECT_EQ(counts_of(forward), (Counts{3, 6}));
  EXPECT_EQ(counts_of(backward), (Counts{6, 3}));
}

TEST(TestPartitioning, test_min_cut_partitioner_save_shape) {
  auto sum = [](const Tensor& x) { return x.sum(1); };
  auto [forward, backward] =
      forward_and_backward(testing::program(sum), {aot_leaf(ones({10, 10}))}, {.dynamic = true});
  EXPECT_EQ(counts_of(forward), (Counts{1, 3}));
  EXPECT_EQ(counts_of(backward), (Counts{3, 1}));
  std::vector<std::string> names;
  for (Node* node : output_nodes(forward)) names.push_back(node->name());
  EXPECT_THAT(names, ElementsAre("sum_1", "sym_size_int", "sym_size_int_1"));

  auto concatenate = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    SymInt rows = b.size(0) + c.size(0);
    return cat({a.expand({rows, a.size(0)}), b, c});
  };
  auto [forward2, backward2] = forward_and_backward(
      testing::program(concatenate),
      {aot_leaf(randn({10})), aot_leaf(randn({3, 10})), aot_leaf(randn({2, 10}))}, {.dynamic = true});
  EXPECT_EQ(counts_of(forward2), (Counts{3, 4}));
  EXPECT_EQ(counts_of(backward2), (Counts{4, 3}));
  const std::vector<Node*> outputs = output_nodes(forward2);
  for (size_t i = 1; i < outputs.size(); ++i) EXPECT_TRUE(aot::is_symbolic_number_node(*outputs[i]));
}

// A tensor, the sizes of another one, an input, and a product.
Value tensor_shape_tensor(Args args) {
  const Tensor a = args[0].to_tensor(), b = args[1].to_tensor(), c = args[2].to_tensor(),
               d = args[3].to_tensor();
  SymInt rows = b.size(0) + c.size(0);
  Tensor joined = cat({a.expand({rows, a.size(0)}), b, c});
  Tensor product = mm(joined, d);
  Tensor second = mm(product, a.view({product.size(1), a.size(0)}));
  return Value::tuple({joined, Value::tuple({Value(b.size(0)), Value(b.size(1))}), c, second});
}

void expect_tensor_shape_tensor(const aot::Partitioner& partitioner, Counts forward_counts,
                                Counts backward_counts, size_t symbols) {
  GraphModule forward, backward;
  auto keep = [](GraphModule& into) {
    return [&into](GraphModule& graph, const ValueList& examples) {
      into = graph;
      return aot::nop(graph, examples);
    };
  };
  ValueList inputs = {aot_leaf(randn({10})), aot_leaf(randn({3, 10})), aot_leaf(randn({2, 10})),
                      aot_leaf(randn({10, 1}))};
  AotFunction compiled =
      aot_function(ValueFunction(tensor_shape_tensor), {.forward_compiler = keep(forward),
                                                        .backward_compiler = keep(backward),
                                                        .partitioner = partitioner,
                                                        .decompositions = aot::default_decompositions(),
                                                        .dynamic = true});
  const Value outputs = compiled.call(inputs), expected = tensor_shape_tensor(inputs);
  (outputs.elements()[0].to_tensor().sum() + outputs.elements()[2].to_tensor().sum()).backward();
  EXPECT_EQ(counts_of(forward), forward_counts);
  EXPECT_EQ(counts_of(backward), backward_counts);
  std::vector<bool> is_symbol, wanted{false, true, true, false, false, false, false, false, false};
  wanted.insert(wanted.end(), symbols, true);
  for (Node* node : output_nodes(forward)) is_symbol.push_back(aot::is_symbolic_number_node(*node));
  EXPECT_EQ(is_symbol, wanted);
  for (size_t i : {0, 2, 3})
    EXPECT_TRUE(
        testing::close(outputs.elements()[i].to_tensor(), expected.elements()[i].to_tensor(), 1e-5, 1e-5))
        << i;
  EXPECT_EQ(outputs.elements()[1], Value::tuple({3, 10}));
}

TEST(TestPartitioning, test_default_partitioner_output_tensor_shape_tensor) {
  expect_tensor_shape_tensor(aot::default_partition, {4, 13}, {10, 4}, 4);
}

TEST(TestPartitioning, test_min_cut_partitioner_output_tensor_shape_tensor) {
  expect_tensor_shape_tensor(aot::min_cut_partitioner(), {4, 12}, {9, 4}, 3);
}

TEST(TestPartitioning, test_min_cut_partitioner) {
  auto cosines = [](const Tensor& x) { return x.cos().cos().cos(); };
  auto [forward, backward] = forward_and_backward(testing::program(cosines), {aot_leaf(randn({3}))});
  EXPECT_EQ(counts_of(forward), (Counts{1, 2}));
  EXPECT_EQ(counts_of(backward), (Counts{2, 1}));
  EXPECT_EQ(output_nodes(forward)[1]->name(), "primals_1");
  auto sum = [](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
    return (a + b + c + d).cos().cos();
  };
  auto [forward4, backward4] = forward_and_backward(
      testing::program(sum),
      {aot_leaf(randn({3})), aot_leaf(randn({3})), aot_leaf(randn({3})), aot_leaf(randn({3}))});
  EXPECT_EQ(counts_of(forward4), (Counts{4, 2}));
  EXPECT_EQ(counts_of(backward4), (Counts{2, 4}));
  EXPECT_EQ(output_nodes(forward4)[1]->name(), "add_2");
}

TEST(TestPartitioning, test_contiguous) {
  Tensor x = aot_leaf(randn({6}));
  Tensor out = aot_function([](const Tensor& t) { return t.view({2, 3}).t(); })(x);
  Tensor weight = randn({3, 2});
  Tensor grad = autograd::grad({out}, {x}, {weight})[0];
  EXPECT_TRUE(testing::close(grad, weight.t().reshape({6}), 0, 0));
}

TEST(TestPartitioning, test_preserve_random) {
  auto f = [](const Tensor& x) { return dropout(x, 0.5, true) + x; };
  Tensor x = randn({4});
  manual_seed(0);
  Tensor expected = f(x);
  AotFunction compiled = aot_function(f);
  manual_seed(0);
  Tensor out = compiled(x);
  testing::expect_equal(out, expected);
  // The mask of the forward is also that of the backward, however it is found again.
  for (const aot::Partitioner& partitioner :
       {aot::Partitioner(aot::default_partition), aot::min_cut_partitioner()}) {
    Tensor leaf = aot_leaf(ones({1000}));
    Tensor masked = aot_function([](const Tensor& t) { return dropout(t, 0.5, true); },
                                 {.partitioner = partitioner})(leaf);
    randn({7});
    masked.sum().backward();
    testing::expect_equal(leaf.grad(), masked.detach());
  }
}

TEST(TestPartitioning, test_generate_gives_inference_graph) {
  int inference = 0, training = 0;
  auto count = [](int& into) {
    return [&into](GraphModule& graph, const ValueList& examples) {
      ++into;
      return aot::nop(graph, examples);
    };
  };
  auto f = [](const Tensor& x) {
    NoGrad no_grad;
    return mul(x, x);
  };
  aot_function(
      f, {.forward_compiler = count(training), .inference_compiler = count(inference)})(aot_leaf(randn({4})));
  EXPECT_EQ(inference, 1);
  EXPECT_EQ(training, 0);
}

TEST(TestPartitioning, test_autocast) {
  models::ResNet net = models::resnet18();
  models::ResNet eager = models::resnet18();
  eager.load_state_dict(net.state_dict());
  AotModule compiled = memory_efficient_fusion(net);
  manual_seed(0);
  Tensor x = randn({2, 3, 32, 32});
  Tensor out, expected;
  {
    Autocast autocast(DType::kBFloat16);
    out = compiled(x);
    expected = eager(x);
  }
  EXPECT_EQ(out.dtype(), DType::kBFloat16);
  testing::expect_equal(out.detach(), expected.detach());
  out.sum().backward();
  expected.sum().backward();
  auto parameters = net.named_parameters(), wanted = eager.named_parameters();
  ASSERT_EQ(parameters.size(), wanted.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(parameters[i].second.grad().dtype(), DType::kFloat32) << parameters[i].first;
    EXPECT_TRUE(testing::close(parameters[i].second.grad(), wanted[i].second.grad(), 0.05, 0.05))
        << parameters[i].first;
  }
}

}  // namespace
}  // namespace weft
