// TestAOTAutograd: outputs that share memory with inputs, intermediates and one another.
#include <gtest/gtest.h>

#include "seeds/support/aot.h"
#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
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
  for (bool grad : {false, true}) verify_aot_autograd(f, {aot_leaf(ones({3, 3}), grad)}, {.test_mutation = true});
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
  auto f = program([](const Tensor& a, const Tensor& b) { return std::tuple{a.view(a.sizes()), b.view(b.sizes())}; });
  for (bool grad : {false, true}) {
    auto made = [&] {
      Tensor base = aot_leaf(ones({2, 2}), grad), x = base.mul(2);
      return MadeInputs{{base}, {x.view(-1), x[0]}};
    };
    verify_aot_autograd(f, made, {.test_mutation = true});
  }
}

}  // namespace
}  // namespace weft
