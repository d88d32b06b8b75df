// TestAOTAutograd: outputs that share memory with inputs, intermediates and one another.
#include <gtest/gtest.h>

#include "seeds/support/extensions.h"
#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/verify_aot.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/function.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::aot_leaf;
using testing::MadeInputs;
using testing::program;
using testing::verify_aot_autograd;

TEST(TestAOTAutograd, test_input_output_view_simple) {
  auto f = program([](const Tensor& a) { return a.view(-1); });
  verify_aot_autograd(f, {ones({2, 2})}, {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, {aot_leaf(ones({2, 2}))}, {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    view = torch.ops.aten.view.default(primals_1, [-1]);  primals_1 = None
    return [view])");
}

TEST(TestAOTAutograd, test_input_output_view_mutate_multiple) {
  auto f = program([](const Tensor& a, const Tensor& b, const Tensor& c) {
    a.mul_(2);
    c.mul_(3);
    return std::tuple{b.view({2, 2}), c.view({2, 2})};
  });
  verify_aot_autograd(f, {ones({2, 2}), ones({2, 2}), ones({2, 2})}, {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(
      f, {aot_leaf(ones({2, 2})), aot_leaf(ones({2, 2})), aot_leaf(ones({2, 2}))}, {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1, primals_2, primals_3):
    clone = torch.ops.aten.clone.default(primals_1);  primals_1 = None
    clone_1 = torch.ops.aten.clone.default(primals_3);  primals_3 = None
    mul = torch.ops.aten.mul.Tensor(clone, 2);  clone = None
    mul_1 = torch.ops.aten.mul.Tensor(clone_1, 3);  clone_1 = None
    view = torch.ops.aten.view.default(primals_2, [2, 2]);  primals_2 = None
    view_2 = torch.ops.aten.view.default(mul_1, [2, 2])
    return [mul, mul_1, view, view_2])");
}

TEST(TestAOTAutograd, test_input_output_view_metadata_mutate_multiple) {
  auto f = program([](const Tensor& a, const Tensor& b, const Tensor& c) {
    b.mul_(3);
    c.t_();
    return std::tuple{a.view({2, 2}), b.view({2, 2}), c.view({2, 2})};
  });
  verify_aot_autograd(f, {ones({2, 2}), ones({2, 2}), ones({2, 2})}, {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(
      f, {aot_leaf(ones({2, 2})), aot_leaf(ones({2, 2})), aot_leaf(ones({2, 2}))}, {.test_mutation = true});
  EXPECT_SAME_RESULTS(graph, R"(def forward(self, primals_1, primals_2, primals_3):
    clone = torch.ops.aten.clone.default(primals_2);  primals_2 = None
    view = torch.ops.aten.view.default(primals_3, [2, 2]);  primals_3 = None
    mul = torch.ops.aten.mul.Tensor(clone, 3);  clone = None
    t = torch.ops.aten.t.default(view);  view = None
    view_1 = torch.ops.aten.view.default(primals_1, [2, 2]);  primals_1 = None
    view_3 = torch.ops.aten.view.default(t, [2, 2])
    view_4 = torch.ops.aten.view.default(mul, [2, 2])
    return [mul, t, view_1, view_4, view_3])");
}

TEST(TestAOTAutograd, test_input_mutation_output_view_multiple) {
  auto f = program([](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
    b.transpose_(1, 0);
    c.add_(1);
    return std::tuple{d + 1, b.diagonal(), a + c};
  });
  auto inputs = [](bool grad) {
    return ValueList{aot_leaf(arange(4, DType::kFloat32).view({2, 2}), grad),
                     aot_leaf(arange(4, DType::kFloat32).view({2, 2}), grad), aot_leaf(ones({2, 2}), grad),
                     aot_leaf(ones({2, 2}), grad)};
  };
  verify_aot_autograd(f, inputs(false), {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, inputs(true), {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1, primals_2, primals_3, primals_4):
    view = torch.ops.aten.view.default(primals_2, [2, 2]);  primals_2 = None
    clone = torch.ops.aten.clone.default(primals_3);  primals_3 = None
    transpose = torch.ops.aten.transpose.int(view, 1, 0);  view = None
    add = torch.ops.aten.add.Tensor(clone, 1);  clone = None
    add_1 = torch.ops.aten.add.Tensor(primals_4, 1);  primals_4 = None
    diagonal = torch.ops.aten.diagonal.default(transpose)
    add_2 = torch.ops.aten.add.Tensor(primals_1, add);  primals_1 = None
    return [transpose, add, add_1, diagonal, add_2])");
}

// --- intermediates ----------------------------------------------------------------------------------------

TEST(TestAOTAutograd, test_output_aliases_intermediate_single) {
  auto f = program([](const Tensor& a) { return mul(a, 3).view(-1); });
  verify_aot_autograd(f, {ones({3, 3})}, {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, {aot_leaf(ones({3, 3}))}, {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    mul = torch.ops.aten.mul.Tensor(primals_1, 3);  primals_1 = None
    view = torch.ops.aten.view.default(mul, [-1]);  mul = None
    return [view])");
}

TEST(TestAOTAutograd, test_output_aliases_intermediate_no_grad) {
  auto f = program([](const Tensor& a, const Tensor& b) {
    Tensor out = mul(a, 3);
    return std::tuple{out.view(-1), b.add(1)};
  });
  verify_aot_autograd(f, {ones({3, 3}), ones({3, 3})}, {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, {ones({3, 3}), aot_leaf(ones({3, 3}))}, {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1, primals_2):
    mul = torch.ops.aten.mul.Tensor(primals_1, 3);  primals_1 = None
    view = torch.ops.aten.view.default(mul, [-1]);  mul = None
    add = torch.ops.aten.add.Tensor(primals_2, 1);  primals_2 = None
    return [view, add])");
}

TEST(TestAOTAutograd, test_output_aliases_intermediate_returned_multiple_times) {
  auto f = program([](const Tensor& a) {
    Tensor out = mul(a, 3);
    return std::tuple{out, out.view(-1), out};
  });
  for (bool grad : {false, true})
    verify_aot_autograd(f, {aot_leaf(ones({3, 3}), grad)}, {.test_mutation = true});
}

TEST(TestAOTAutograd, test_output_aliases_intermediate_multiple) {
  auto f = program([](const Tensor& a) {
    Tensor out = mul(a, 3);
    return std::tuple{out.view(-1), out.view(-1)};
  });
  verify_aot_autograd(f, {ones({3, 3})}, {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, {aot_leaf(ones({3, 3}))}, {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    mul = torch.ops.aten.mul.Tensor(primals_1, 3);  primals_1 = None
    view = torch.ops.aten.view.default(mul, [-1])
    view_1 = torch.ops.aten.view.default(mul, [-1])
    return [view, view_1, mul])");
}

TEST(TestAOTAutograd, test_output_aliases_intermediate_and_returned) {
  auto f = program([](const Tensor& a) {
    Tensor out = mul(a, 3);
    return std::tuple{out.view(-1), out};
  });
  verify_aot_autograd(f, {ones({3, 3})}, {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, {aot_leaf(ones({3, 3}))}, {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    mul = torch.ops.aten.mul.Tensor(primals_1, 3);  primals_1 = None
    view = torch.ops.aten.view.default(mul, [-1])
    return [view, mul])");
}

TEST(TestAOTAutograd, test_output_aliases_intermediate_and_returned_different_grad) {
  auto f = program([](const Tensor& a) {
    Tensor out = mul(a, 3);
    return std::tuple{out.view(-1), out, out[0].detach()};
  });
  verify_aot_autograd(f, {ones({3, 3})}, {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, {aot_leaf(ones({3, 3}))}, {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    mul = torch.ops.aten.mul.Tensor(primals_1, 3);  primals_1 = None
    view = torch.ops.aten.view.default(mul, [-1])
    select = torch.ops.aten.select.int(mul, 0, 0)
    detach = torch.ops.aten.detach.default(select);  select = None
    return [view, mul, detach])");
}

TEST(TestAOTAutograd, test_output_aliases_intermediate_inplace_view_and_view) {
  auto f = program([](const Tensor& a) {
    Tensor out = mul(a, 3), v = out.unsqueeze(0);
    out.t_();
    return std::tuple{v, out, out.unsqueeze(0)};
  });
  verify_aot_autograd(f, {aot_leaf(ones({2, 4}))}, {.test_mutation = true});
}

TEST(TestAOTAutograd, test_output_aliases_intermediate_multiple_mixed) {
  auto f = program([](const Tensor& a) {
    Tensor out1 = mul(a, 3), out2 = mul(a, 4);
    return std::tuple{out1.view(-1), out2.transpose(1, 0), out1.transpose(1, 0)};
  });
  verify_aot_autograd(f, {ones({3, 3})}, {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, {aot_leaf(ones({3, 3}))}, {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    mul = torch.ops.aten.mul.Tensor(primals_1, 3)
    mul_1 = torch.ops.aten.mul.Tensor(primals_1, 4);  primals_1 = None
    view = torch.ops.aten.view.default(mul, [-1])
    transpose = torch.ops.aten.transpose.int(mul_1, 1, 0);  mul_1 = None
    transpose_1 = torch.ops.aten.transpose.int(mul, 1, 0)
    return [view, transpose, transpose_1, mul])");
}

TEST(TestAOTAutograd, test_output_aliases_multiple_inputs_get_correct_one) {
  auto f = program(
      [](const Tensor& a, const Tensor& b) { return std::tuple{a.view(a.sizes()), b.view(b.sizes())}; });
  for (bool grad : {false, true}) {
    auto made = [&] {
      Tensor base = aot_leaf(ones({2, 2}), grad), x = base.mul(2);
      return MadeInputs{{base}, {x.view(-1), x[0]}};
    };
    verify_aot_autograd(f, made, {.test_mutation = true});
    auto made_of_two = [&] {
      Tensor base = aot_leaf(testing::TwoTensor::make(ones({2, 2}), ones({2, 2})), grad), x = base.mul(2);
      return MadeInputs{{base}, {x.view(-1), x[0]}};
    };
    verify_aot_autograd(f, made_of_two, {.test_mutation = true});
  }
}

TEST(TestAOTAutograd, test_output_aliases_intermediate_and_returned_flipped) {
  auto f = program([](const Tensor& a) {
    Tensor out = mul(a, 3);
    return std::tuple{out, out.view(-1)};
  });
  verify_aot_autograd(f, {ones({3, 3})}, {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, {aot_leaf(ones({3, 3}))}, {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    mul = torch.ops.aten.mul.Tensor(primals_1, 3);  primals_1 = None
    view = torch.ops.aten.view.default(mul, [-1])
    return [mul, view])");
}

TEST(TestAOTAutograd, test_output_all_alias_types) {
  auto f = program([](const Tensor& a) {
    a.transpose_(1, 0);
    Tensor tmp = a.mul(2);
    return std::tuple{tmp.squeeze(), tmp.transpose(1, 0), a.unsqueeze(0)};
  });
  auto made = [](bool grad) {
    return [grad] {
      Tensor leaf = aot_leaf(ones({1, 2, 4}), grad);
      return MadeInputs{{leaf}, {leaf.clone()}};
    };
  };
  verify_aot_autograd(f, made(false), {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, made(true), {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    view = torch.ops.aten.view.default(primals_1, [1, 2, 4]);  primals_1 = None
    transpose = torch.ops.aten.transpose.int(view, 1, 0);  view = None
    mul = torch.ops.aten.mul.Tensor(transpose, 2)
    squeeze = torch.ops.aten.squeeze.default(mul)
    transpose_1 = torch.ops.aten.transpose.int(mul, 1, 0)
    unsqueeze = torch.ops.aten.unsqueeze.default(transpose, 0)
    return [transpose, squeeze, transpose_1, unsqueeze, mul])");
}

TEST(TestAOTAutograd, test_view_and_inplace_view) {
  auto f = program([](const Tensor& a, const Tensor& b) {
    a.t_();
    return std::tuple{b.view(b.sizes()), a.view(a.sizes())};
  });
  verify_aot_autograd(f, {ones({3, 3}), ones({3, 3})}, {.test_mutation = true});
  GraphModule graph =
      verify_aot_autograd(f, {aot_leaf(ones({3, 3})), aot_leaf(ones({3, 3}))}, {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1, primals_2):
    view = torch.ops.aten.view.default(primals_1, [3, 3]);  primals_1 = None
    t = torch.ops.aten.t.default(view);  view = None
    view_1 = torch.ops.aten.view.default(primals_2, [3, 3]);  primals_2 = None
    view_2 = torch.ops.aten.view.default(t, [3, 3])
    return [t, view_1, view_2])");
}

TEST(TestAOTAutograd, test_some_outputs_dont_require_grad_view) {
  auto f = program([](const Tensor& a, const Tensor& b) { return std::tuple{a.detach(), b}; });
  verify_aot_autograd(f, {aot_leaf(randn({3, 3})), aot_leaf(randn({3, 3}))});
}

TEST(TestAOTAutograd, test_some_output_requires_grad_input_doesnt) {
  auto f = program([](const Tensor& a, const Tensor&) {
    Tensor view = a.view(-1);
    view.requires_grad_(true);
    return view;
  });
  // requires_grad_() is no operator: a graph does not have it.
  verify_aot_autograd(f, {randn({3, 3}), aot_leaf(randn({3, 3}))}, {.captured_first = false});
}

struct HalfGradient : autograd::Function<HalfGradient> {
  static Tensor forward(autograd::FunctionContext&, const Tensor& x) { return x; }
  static std::vector<Tensor> backward(autograd::FunctionContext&, const std::vector<Tensor>& grads) {
    return {grads[0] * 0.5};
  }
};

TEST(TestAOTAutograd, test_input_output_aliase_custom_autograd_function) {
  auto f = program([](const Tensor& x) { return HalfGradient::apply(x); });
  verify_aot_autograd(f, {aot_leaf(ones({2, 2}))}, {.strict_cache = false});
}

// --- several views of one call ---------------------------------------------------------------------------

std::string history_of(const Tensor& tensor) { return autograd::grad_fn(tensor)->name(); }

TEST(TestAOTAutograd, test_output_aliases_input_multi_output_view) {
  auto rows = [](const Tensor& a) { return a.unbind(0); };
  Tensor x = aot_leaf(ones({3, 3})), x2 = aot_leaf(ones({3, 3}));
  std::vector<Tensor> expected = rows(x),
                      out = from_value<std::vector<Tensor>>(aot_function(rows).call({x2}));
  ASSERT_EQ(out.size(), 3u);
  for (const Tensor& row : out)
    EXPECT_NE(history_of(row).find("CompiledFunctionBackward"), std::string::npos);
  (expected[0] + expected[1] + expected[2]).sum().backward();
  (out[0] + out[1] + out[2]).sum().backward();
  testing::expect_equal(x2.grad(), x.grad());

  auto rows_and_view = [](const Tensor& a) {
    std::vector<Tensor> all = a.unbind(0);
    all.push_back(a.view(a.sizes()));
    return all;
  };
  Tensor leaf = aot_leaf(ones({3, 3})), leaf2 = aot_leaf(ones({3, 3}));
  Tensor input = leaf.clone(), input2 = leaf2.clone();
  std::vector<Tensor> wanted = rows_and_view(input),
                      got = from_value<std::vector<Tensor>>(aot_function(rows_and_view).call({input2}));
  for (size_t i = 0; i < 3; ++i) EXPECT_NE(history_of(got[i]).find("UnbindBackward"), std::string::npos);
  wanted.back().mul_(2);
  got.back().mul_(2);
  input.view(-1).mul_(3);
  input2.view(-1).mul_(3);
  (input + wanted.back()).sum().backward();
  (input2 + got.back()).sum().backward();
  testing::expect_equal(leaf2.grad(), leaf.grad());
}

TEST(TestAOTAutograd, test_output_aliases_input_multi_output_view_should_raise_autograd_error) {
  auto rows = [](const Tensor& a) { return a.unbind(0); };
  AotFunction compiled = aot_function(rows);
  auto input = [] { return aot_leaf(ones({3, 3})).clone(); };
  Tensor x1 = input(), x2 = input(), x3 = input();
  auto out1 = from_value<std::vector<Tensor>>(compiled.call({x1}));
  auto out2 = from_value<std::vector<Tensor>>(compiled.call({x2}));
  auto out3 = from_value<std::vector<Tensor>>(compiled.call({x3}));
  constexpr const char* kWords = "Such functions do not allow the output views";
  EXPECT_ERROR(out1[0].mul_(2), kWords);
  x2.mul_(2);
  EXPECT_ERROR(autograd::grad_fn(out2[0]), kWords);
  out3[0].detach().mul_(2);
  EXPECT_ERROR(autograd::grad_fn(out3[0]), kWords);
}

// --- view metadata ---------------------------------------------------------------------------------------

// A compiler whose graphs give tensors that do not know what they are views of.
aot::Compiler hiding_views(std::vector<size_t> outputs) {
  return [outputs](GraphModule& graph, const ValueList&) -> aot::CompiledGraph {
    return ValueFunction([graph, outputs](Args args) {
      ValueList all = graph.call(args).elements();
      for (size_t i : outputs) all[i] = autograd::shallow_copy(all[i].tensor_ref());
      return Value::list(all);
    });
  };
}

TEST(TestAOTAutograd, test_output_aliases_input_view_meta_replay) {
  Tensor out = aot_function([](const Tensor& a) { return a.view(-1); },
                            {.forward_compiler = hiding_views({0})})(aot_leaf(ones({2, 2})));
  EXPECT_EQ(history_of(out), "ViewBackward0");
}

TEST(TestAOTAutograd, test_output_aliases_intermediate_view_meta_replay) {
  auto f = [](const Tensor& a) {
    Tensor b = a.clone();
    return std::tuple{b.view(-1), b.view(-1)};
  };
  const Value out =
      aot_function(f, {.forward_compiler = hiding_views({0, 1})}).call({aot_leaf(ones({2, 2}))});
  EXPECT_EQ(history_of(out.elements()[0].to_tensor()), "ViewBackward0");
  EXPECT_EQ(history_of(out.elements()[1].to_tensor()), "ViewBackward0");
}

TEST(TestAOTAutograd, test_output_aliases_output_view_meta_replay) {
  auto f = [](const Tensor& a) {
    Tensor b = a.add(10);
    return std::tuple{b, b.view(-1)};
  };
  const Value out = aot_function(f, {.forward_compiler = hiding_views({1})}).call({aot_leaf(ones({2, 2}))});
  EXPECT_EQ(out.elements()[0].to_tensor().storage(), out.elements()[1].to_tensor().storage());
  EXPECT_EQ(history_of(out.elements()[1].to_tensor()), "ViewBackward0");
}

TEST(TestAOTAutograd, test_dynamic_output_aliases_input_view_meta_replay) {
  auto f = [](const Tensor& a, std::vector<SymInt> sizes) {
    return std::tuple{a.view(SymIntSpan(ListSpan<SymInt>(sizes.data(), sizes.size()))), a.view(-1)};
  };
  const Value out = aot_function(f, {.dynamic = true}).call({aot_leaf(ones({2, 2})), Value::list({4})});
  EXPECT_EQ(history_of(out.elements()[0].to_tensor()), "AsStridedBackward0");
  EXPECT_EQ(history_of(out.elements()[1].to_tensor()), "ViewBackward0");
}

TEST(TestAOTAutograd, test_output_aliases_intermediate_mutation_linear) {
  auto f = [](const Tensor& x) { return (x + 1).view(-1); };
  Tensor x = aot_leaf(ones({3, 3}));
  Tensor expected = f(x), out = aot_function(f, {.decompositions = standard_decompositions()})(x);
  expected.mul_(2);
  out.mul_(2);
  testing::expect_equal(out.detach(), expected.detach());
}

}  // namespace
}  // namespace weft
