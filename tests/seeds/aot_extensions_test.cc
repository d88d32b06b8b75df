// TestAOTDispatch, and the rows of TestAOTAutograd about tensor extensions.
#include <gtest/gtest.h>

#include "seeds/support/extensions.h"
#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/verify_aot.h"
#include "weft/autograd/autograd.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::aot_leaf;
using testing::constant_extra;
using testing::ConstantExtraMetadataTensor;
using testing::expect_equal;
using testing::is_constant_extra;
using testing::is_two;
using testing::two;
using testing::TwoTensor;

Tensor two_leaf(double value = 1, SymIntSpan sizes = {3, 3}) {
  return aot_leaf(TwoTensor::make(full(sizes, value), full(sizes, value + 1)));
}
void expect_both_equal(const Tensor& got, const Tensor& wanted) {
  ASSERT_TRUE(is_two(got) && is_two(wanted));
  expect_equal(two(got).a, two(wanted).a);
  expect_equal(two(got).b, two(wanted).b);
}

TEST(TestAOTDispatch, test_aot_dispatch_simple) {
  auto f = [](const Tensor& a, const Tensor& b) {
    Tensor first = mul(a, 6), second = div(b, 2);
    return first + second;
  };
  GraphModule forward, backward;
  auto keep = [](GraphModule& into) {
    return [&into](GraphModule& graph, const ValueList& examples) {
      into = graph;
      return aot::nop(graph, examples);
    };
  };
  AotFunction compiled = aot_function(f, {.forward_compiler = keep(forward),
                                          .backward_compiler = keep(backward),
                                          .partitioner = aot::min_cut_partitioner()});
  Tensor a = two_leaf(), b = aot_leaf(ones({3, 3})), a2 = two_leaf(), b2 = aot_leaf(ones({3, 3}));
  Tensor expected = f(a, b), out = compiled(a2, b2);
  expect_both_equal(out, expected);
  expected.sum().backward();
  out.sum().backward();
  expect_both_equal(a2.grad(), a.grad());
  expect_both_equal(b2.grad(), b.grad());
  EXPECT_GRAPH(forward, R"(def forward(self, primals_1, primals_2, primals_3):
    mul = torch.ops.aten.mul.Tensor(primals_1, 6);  primals_1 = None
    mul_1 = torch.ops.aten.mul.Tensor(primals_2, 6);  primals_2 = None
    div = torch.ops.aten.div.Tensor(primals_3, 2);  primals_3 = None
    add = torch.ops.aten.add.Tensor(mul, div);  mul = None
    add_1 = torch.ops.aten.add.Tensor(mul_1, div);  mul_1 = div = None
    return [add, add_1])");
  EXPECT_GRAPH(backward, R"(def forward(self, tangents_1, tangents_2):
    div_1 = torch.ops.aten.div.Tensor(tangents_1, 2)
    div_2 = torch.ops.aten.div.Tensor(tangents_2, 2)
    mul_2 = torch.ops.aten.mul.Tensor(tangents_1, 6);  tangents_1 = None
    mul_3 = torch.ops.aten.mul.Tensor(tangents_2, 6);  tangents_2 = None
    return [mul_2, mul_3, div_1, div_2])");
}

TEST(TestAOTDispatch, test_aot_dispatch_incorrect_backward) {
  auto f = [](const Tensor& a, const Tensor& b) {
    Tensor aa = mul(a, 2), bb = add(b, 3);
    Tensor quotient = div(aa, bb), regular = add(b, b);
    return std::tuple{quotient, regular};
  };
  AotFunction compiled = aot_function(f, {.partitioner = aot::min_cut_partitioner()});
  Tensor a = two_leaf(), b = aot_leaf(ones({3, 3})), a2 = two_leaf(), b2 = aot_leaf(ones({3, 3}));
  auto [quotient, regular] = f(a, b);
  const Value out = compiled.call({a2, b2});
  expect_both_equal(out.elements()[0].to_tensor(), quotient);
  expect_equal(out.elements()[1].to_tensor(), regular);
  EXPECT_ERROR((out.elements()[0].to_tensor() + out.elements()[1].to_tensor()).sum().backward(),
               "incorrectly attempted to compile the backward with incorrect subclass metadata");
}

TEST(TestAOTDispatch, test_aot_dispatch_output_alias) {
  auto f = [](const Tensor& a, const Tensor& b) { return std::tuple{b.view(b.sizes()), a * b}; };
  AotFunction compiled = aot_function(f, {.partitioner = aot::min_cut_partitioner()});
  Tensor b = two_leaf(), a = aot_leaf(ones({3, 3})), b2 = two_leaf(), a2 = aot_leaf(ones({3, 3}));
  auto [view, product] = f(a, b);
  const Value out = compiled.call({a2, b2});
  Tensor view2 = out.elements()[0].to_tensor(), product2 = out.elements()[1].to_tensor();
  expect_both_equal(view2, view);
  EXPECT_TRUE(view2.is_view() && view2.storage() == b2.storage());
  EXPECT_EQ(two(view2).a.storage(), two(b2).a.storage());
  expect_both_equal(product2, product);
  (view + product).sum().backward();
  (view2 + product2).sum().backward();
  expect_both_equal(a2.grad(), a.grad());
  expect_both_equal(b2.grad(), b.grad());
}

TEST(TestAOTDispatch, test_aot_dispatch_input_mutation) {
  auto f = [](const Tensor& a, const Tensor& b) {
    a.mul_(2);
    b.mul_(3);
    return a + b;
  };
  AotFunction compiled = aot_function(f, {.partitioner = aot::min_cut_partitioner()});
  Tensor b_base = two_leaf(), a_base = aot_leaf(ones({3, 3})), b_base2 = two_leaf(),
         a_base2 = aot_leaf(ones({3, 3}));
  Tensor a = a_base + 1, b = b_base + 1, a2 = a_base2 + 1, b2 = b_base2 + 1;
  Tensor expected = f(a, b), out = compiled(a2, b2);
  expect_both_equal(out, expected);
  expect_equal(a2, a);
  expect_both_equal(b2, b);
  (b * expected).sum().backward();
  (b2 * out).sum().backward();
  expect_both_equal(a_base2.grad(), a_base.grad());
  expect_both_equal(b_base2.grad(), b_base.grad());
}

TEST(TestAOTDispatch, test_aot_dispatch_input_metadata_mutation) {
  auto f = [](const Tensor& a, const Tensor& b) {
    a.t_();
    b.unsqueeze_(0);
    return a + b;
  };
  Tensor nine = arange(9, DType::kFloat32).reshape({3, 3});
  Tensor a = aot_leaf(nine.clone()) + 1, b = aot_leaf(TwoTensor::make(nine.clone(), nine.clone())) + 1;
  EXPECT_ERROR(aot_function(f, {.partitioner = aot::min_cut_partitioner()})(a, b),
               "Metadata mutations are currently not allowed on tensor subclasses");
}

TEST(TestAOTDispatch, test_aot_dispatch_input_data_and_metadata_mutation) {
  auto f = [](const Tensor& a, const Tensor& b) {
    a.t_();
    b.unsqueeze_(0);
    a.mul_(2);
    b.mul_(3);
    return a + b;
  };
  Tensor nine = arange(9, DType::kFloat32).reshape({3, 3});
  Tensor a = aot_leaf(nine.clone()) + 1, b = aot_leaf(TwoTensor::make(nine.clone(), nine.clone())) + 1;
  EXPECT_ERROR(aot_function(f, {.partitioner = aot::min_cut_partitioner()})(a, b),
               "Metadata mutations are currently not allowed on tensor subclasses");
}

TEST(TestAOTDispatch, test_aot_dispatch_input_mutation_and_output_alias) {
  auto f = [](const Tensor& a, const Tensor& b) {
    a.mul_(2);
    b.mul_(3);
    return std::tuple{b.view(b.sizes()), a + b};
  };
  AotFunction compiled = aot_function(f, {.partitioner = aot::min_cut_partitioner()});
  auto nine = [] { return arange(9, DType::kFloat32).reshape({3, 3}).clone(); };
  Tensor b_base = aot_leaf(TwoTensor::make(nine(), nine())), a_base = aot_leaf(nine());
  Tensor b_base2 = aot_leaf(TwoTensor::make(nine(), nine())), a_base2 = aot_leaf(nine());
  Tensor a = a_base + 1, b = b_base + 1, a2 = a_base2 + 1, b2 = b_base2 + 1;
  auto [view, sum] = f(a, b);
  const Value out = compiled.call({a2, b2});
  Tensor view2 = out.elements()[0].to_tensor(), sum2 = out.elements()[1].to_tensor();
  expect_both_equal(view2, view);
  expect_both_equal(sum2, sum);
  expect_equal(a2, a);
  expect_both_equal(b2, b);
  (view * sum).sum().backward();
  (view2 * sum2).sum().backward();
  expect_both_equal(a_base2.grad(), a_base.grad());
  expect_both_equal(b_base2.grad(), b_base.grad());
}

// --- TestAOTAutograd -------------------------------------------------------------------------------------

Tensor nested_two() {
  return aot_leaf(
      TwoTensor::make(TwoTensor::make(ones({4}), ones({4})), TwoTensor::make(ones({4}), ones({4}))));
}
void expect_nested(const Tensor& tensor) {
  ASSERT_TRUE(is_two(tensor) && is_two(two(tensor).a) && is_two(two(tensor).b));
  for (const Tensor& part : {two(tensor).a, two(tensor).b})
    for (const Tensor& leaf : {two(part).a, two(part).b}) EXPECT_FALSE(extension_of(leaf));
}

TEST(TestAOTAutograd, test_nested_subclasses) {
  Tensor x = nested_two();
  Tensor out = aot_function([](const Tensor& t) { return t.sin().cos(); })(x);
  expect_nested(out);
  out.sum().backward();
  expect_nested(x.grad());
  Tensor wanted = ones({4}).sin().cos();
  expect_equal(two(two(out).b).a, wanted);
}

TEST(TestAOTAutograd, test_nested_subclasses_non_nested_grad) {
  Tensor flat = two_leaf(1, {4}), nested = nested_two();
  Tensor out = aot_function([](const Tensor& t) { return t.sin().cos(); })(flat);
  Tensor sum = out + nested;
  EXPECT_ERROR(sum.sum().backward(), "The grad inputs should be same tensor subclass type as forward output");
}

Tensor nested_constant() {
  return aot_leaf(ConstantExtraMetadataTensor::make(ConstantExtraMetadataTensor::make(ones({4}), 6), 4));
}
Tensor with_metadata(const Tensor& x) {
  const Tensor elem = constant_extra(x).elem, inner = constant_extra(elem).elem;
  return x * elem * inner * constant_extra(elem).constant_attribute;
}

TEST(TestAOTAutograd, test_custom_tensor_metadata) {
  Tensor x = nested_constant(), x2 = nested_constant();
  Tensor expected = with_metadata(x), out = aot_function(with_metadata)(x2);
  ASSERT_TRUE(is_constant_extra(out) && is_constant_extra(constant_extra(out).elem));
  expect_equal(constant_extra(constant_extra(out).elem).elem,
               constant_extra(constant_extra(expected).elem).elem);
  out.sum().backward();
  EXPECT_TRUE(is_constant_extra(x2.grad()));
  EXPECT_TRUE(is_constant_extra(constant_extra(x2.grad()).elem));
  // What it was compiled for is part of its kind.
  AotFunction compiled = aot_function(with_metadata);
  compiled(nested_constant());
  Tensor other =
      aot_leaf(ConstantExtraMetadataTensor::make(ConstantExtraMetadataTensor::make(ones({4}), 7), 4));
  EXPECT_ERROR(compiled(other), "was compiled for ConstantExtraMetadataTensor");
}

TEST(TestAOTAutograd, test_nested_subclasses_complicated_inps) {
  auto f = [](const Tensor& x, const Tensor& y, const Tensor&) {
    Tensor sum = x + y, plain = two(x).a + two(y).b;
    return x.sin().cos() + (sum.sum() + plain.sum());
  };
  Tensor x = nested_two(), y = nested_two(), z = aot_leaf(ones({4}));
  Tensor x2 = nested_two(), y2 = nested_two(), z2 = aot_leaf(ones({4}));
  Tensor expected = f(x, y, z), out = aot_function(f)(x2, y2, z2);
  expect_nested(out);
  expect_both_equal(two(out).a, two(expected).a);
  expect_both_equal(two(out).b, two(expected).b);
  expected.sum().backward();
  out.sum().backward();
  expect_nested(x2.grad());
  expect_nested(y2.grad());
  expect_both_equal(two(x2.grad()).a, two(x.grad()).a);
  expect_both_equal(two(y2.grad()).a, two(y.grad()).a);
  EXPECT_FALSE(z2.grad().defined());
}

TEST(TestAOTAutograd, test_nested_subclasses_complicated_inps_mixed) {
  auto f = [](const Tensor& x, const Tensor& y) {
    const Tensor elem = constant_extra(y).elem, inner = constant_extra(elem).elem;
    return y * elem * inner * constant_extra(elem).constant_attribute + x;
  };
  Tensor x = nested_two(), y = nested_constant(), x2 = nested_two(), y2 = nested_constant();
  Tensor expected = f(x, y), out = aot_function(f)(x2, y2);
  testing::expect_same_parts(out, expected);
  expected.sum().backward();
  out.sum().backward();
  testing::expect_same_parts(x2.grad(), x.grad());
  testing::expect_same_parts(y2.grad(), y.grad());
}

TEST(TestAOTAutograd, test_subclass_metadata_mutation) {
  auto f = testing::program([](const Tensor& a) {
    a.transpose_(1, 0);
    return a.mul(2).transpose(1, 0);
  });
  for (bool grad : {false, true})
    EXPECT_ERROR(testing::verify_aot_autograd(f,
                                              [&] {
                                                Tensor leaf = aot_leaf(
                                                    TwoTensor::make(ones({3, 3}), ones({3, 3})), grad);
                                                return testing::MadeInputs{{leaf}, {leaf.add(1)}};
                                              }),
                 "Metadata mutations are currently not allowed on tensor subclasses");
}

}  // namespace
}  // namespace weft
