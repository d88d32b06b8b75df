// TestAOTAutograd: programs that write to their inputs.
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

TEST(TestAOTAutograd, test_input_mutation_simple) {
  auto f = program([](const Tensor& a) {
    a.mul_(2);
    return a * 3;
  });
  GraphModule graph = verify_aot_autograd(f, {aot_leaf(ones({3, 3}))}, {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    clone = torch.ops.aten.clone.default(primals_1);  primals_1 = None
    mul = torch.ops.aten.mul.Tensor(clone, 2);  clone = None
    mul_1 = torch.ops.aten.mul.Tensor(mul, 3)
    return [mul, mul_1])");
  verify_aot_autograd(f, {ones({3, 3})}, {.test_mutation = true});
}

TEST(TestAOTAutograd, test_input_mutation_metadata) {
  auto f = program([](const Tensor& a, const Tensor& b) {
    a.transpose_(1, 0);
    return a + b;
  });
  for (bool grad : {true, false})
    verify_aot_autograd(f, {aot_leaf(randn({3, 3}), grad), aot_leaf(ones({3, 3}), grad)}, {.test_mutation = true});
}

TEST(TestAOTAutograd, test_input_mutation_hidden_from_autograd_aliasing) {
  auto f = program([](const Tensor& a) {
    Tensor alias = a.view(-1);
    {
      NoGrad no_grad;
      alias.mul_(2);
    }
    return a + 1;
  });
  GraphModule graph = verify_aot_autograd(f, {aot_leaf(ones({4}))}, {.test_mutation = true, .keep_input_mutations = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    view = torch.ops.aten.view.default(primals_1, [-1])
    mul = torch.ops.aten.mul.Tensor(view, 2);  view = None
    view_1 = torch.ops.aten.view.default(mul, [4]);  mul = None
    add = torch.ops.aten.add.Tensor(view_1, 1)
    copy_ = torch.ops.aten.copy_.default(primals_1, view_1);  primals_1 = view_1 = copy_ = None
    return [add])");
}

TEST(TestAOTAutograd, test_input_data_and_metadata_mutation) {
  auto f = program([](const Tensor& a) {
    a.t_();
    a[0].mul_(2);
    return a.view(a.sizes());
  });
  verify_aot_autograd(f, {ones({3, 3})}, {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, {aot_leaf(ones({3, 3}))}, {.test_mutation = true});
  EXPECT_SAME_RESULTS(graph, R"(def forward(self, primals_1):
    clone = torch.ops.aten.clone.default(primals_1);  primals_1 = None
    t = torch.ops.aten.t.default(clone)
    select = torch.ops.aten.select.int(t, 0, 0);  t = None
    mul = torch.ops.aten.mul.Tensor(select, 2);  select = None
    t_1 = torch.ops.aten.t.default(clone);  clone = None
    select_scatter = torch.ops.aten.select_scatter.default(t_1, mul, 0, 0);  t_1 = mul = None
    t_2 = torch.ops.aten.t.default(select_scatter);  select_scatter = None
    t_4 = torch.ops.aten.t.default(t_2)
    t_6 = torch.ops.aten.t.default(t_2);  t_2 = None
    view_1 = torch.ops.aten.view.default(t_6, [3, 3]);  t_6 = None
    return [t_4, view_1])");
}

TEST(TestAOTAutograd, test_new_inp_requires_grad_now) {
  GraphModule forward, backward;
  auto keep = [](GraphModule& into) {
    return [&into](GraphModule& graph, const ValueList& examples) {
      into = graph;
      return aot::nop(graph, examples);
    };
  };
  auto f = [](const Tensor& x, const Tensor& y) { return x.add_(y); };
  AotFunction compiled = aot_function(f, {.forward_compiler = keep(forward),
                                          .backward_compiler = keep(backward),
                                          .keep_inference_input_mutations = true});
  Tensor x = ones({20, 100}), y = aot_leaf(ones({20, 100}));
  Tensor x2 = x.clone(), y2 = aot_leaf(y.detach().clone());
  Tensor out = compiled(x, y), expected = f(x2, y2);
  EXPECT_TRUE(testing::close(out, expected, 0, 0));
  out.sum().backward();
  expected.sum().backward();
  EXPECT_TRUE(x.requires_grad());
  EXPECT_TRUE(testing::close(y.grad(), y2.grad(), 0, 0));
  EXPECT_GRAPH(forward, R"(def forward(self, primals_1, primals_2):
    clone = torch.ops.aten.clone.default(primals_1);  primals_1 = None
    add = torch.ops.aten.add.Tensor(clone, primals_2);  clone = primals_2 = None
    return [add, add])");
  EXPECT_GRAPH(backward, R"(def forward(self, tangents_1):
    return [None, tangents_1])");
}

// --- inputs that are given twice, or share memory ---------------------------------------------------------

TEST(TestAOTAutograd, test_dupe_arg) {
  Tensor x = aot_leaf(randn({3, 3}));
  verify_aot_autograd(program([](const Tensor& a, const Tensor& b) { return a + b; }), {x, x});
}

TEST(TestAOTAutograd, test_dupe_arg_torture) {
  auto f = program([](const Tensor& x, const Tensor& y) {
    x.t_();
    y.unsqueeze_(0);
    return x + y;
  });
  Tensor x = aot_leaf(randn({3, 3})).clone();
  verify_aot_autograd(f, {x, x});
}

TEST(TestAOTAutograd, test_dupe_arg_returned_as_output) {
  auto f = [](const Tensor& a, const Tensor&, const Tensor& again) {
    a[0].add_(1);
    return again;
  };
  Tensor a = ones({2}), b = ones({2}), a2 = ones({2}), b2 = ones({2});
  Tensor expected = f(a, b, a), out = aot_function(f)(a2, b2, a2);
  EXPECT_TRUE(testing::close(out, expected, 0, 0));
  EXPECT_TRUE(testing::close(a, a2, 0, 0));
  EXPECT_TRUE(out.is_same(a2));
}

TEST(TestAOTAutograd, test_input_mutation_noncontiguous) {
  auto f = program([](const Tensor& a) {
    a.mul_(2);
    return a + 1;
  });
  for (bool grad : {false, true}) {
    auto made = [&] {
      Tensor base = aot_leaf(ones({2, 2}), grad), x = base.add(1);
      return MadeInputs{{base}, {x.select(1, 0)}};
    };
    verify_aot_autograd(f, made, {.test_mutation = true});
  }
}

TEST(TestAOTAutograd, test_input_mutation_aliases_other_input) {
  auto f = program([](const Tensor& a, const Tensor& b) {
    a.add_(1);
    return a + b;
  });
  auto made = [](bool grad) {
    return [grad] {
      Tensor base = aot_leaf(ones({4, 2}), grad), x = base.add(1);
      return MadeInputs{{base}, {x[0], x[0]}};
    };
  };
  verify_aot_autograd(f, made(false), {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, made(true), {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    clone = torch.ops.aten.clone.default(primals_1);  primals_1 = None
    as_strided = torch.ops.aten.as_strided.default(clone, [2], [1], 0)
    add = torch.ops.aten.add.Tensor(as_strided, 1);  as_strided = None
    as_strided_scatter = torch.ops.aten.as_strided_scatter.default(clone, add, [2], [1], 0);  clone = add = None
    as_strided_2 = torch.ops.aten.as_strided.default(as_strided_scatter, [2], [1], 0)
    as_strided_5 = torch.ops.aten.as_strided.default(as_strided_scatter, [2], [1], 0)
    add_1 = torch.ops.aten.add.Tensor(as_strided_2, as_strided_5);  as_strided_2 = as_strided_5 = None
    return [as_strided_scatter, add_1])");
}

}  // namespace
}  // namespace weft
