// TestAOTAutograd: programs that write to their inputs.
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
using testing::MadeInputs;
using testing::program;
using testing::verify_aot_autograd;

Tensor two_ones(SymIntSpan sizes) { return testing::TwoTensor::make(ones(sizes), ones(sizes)); }

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
    verify_aot_autograd(f, {aot_leaf(randn({3, 3}), grad), aot_leaf(ones({3, 3}), grad)},
                        {.test_mutation = true});
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
  GraphModule graph =
      verify_aot_autograd(f, {aot_leaf(ones({4}))}, {.test_mutation = true, .keep_input_mutations = true});
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
    auto made_of_two = [&] {
      Tensor base = aot_leaf(two_ones({2, 2}), grad), x = base.add(1);
      return MadeInputs{{base}, {x.select(1, 0)}};
    };
    EXPECT_ERROR(verify_aot_autograd(f, made_of_two, {.test_mutation = true}),
                 "Mutations on non-contiguous inputs are currently not allowed on tensor subclasses");
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

TEST(TestAOTAutograd, test_input_mutation_aliases_other_input2) {
  auto f = program([](const Tensor& a, const Tensor& b) {
    a.add_(1);
    return a + b;
  });
  auto made = [](bool grad) {
    return [grad] {
      Tensor base = aot_leaf(ones({2, 2}), grad), x = base.add(1);
      return MadeInputs{{base}, {x[0], x}};
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
    as_strided_5 = torch.ops.aten.as_strided.default(as_strided_scatter, [2, 2], [2, 1], 0)
    add_1 = torch.ops.aten.add.Tensor(as_strided_2, as_strided_5);  as_strided_2 = as_strided_5 = None
    return [as_strided_scatter, add_1])");
}

TEST(TestAOTAutograd, test_input_mutation_aliases_and_output_alias) {
  auto f = program([](const Tensor& a, const Tensor& b) {
    a.add_(1);
    return b.view(b.sizes());
  });
  auto made = [](bool grad) {
    return [grad] {
      Tensor base = aot_leaf(ones({2, 2}), grad), x = base.add(1);
      return MadeInputs{{base}, {x.view(-1), x.view(-1)}};
    };
  };
  verify_aot_autograd(f, made(false), {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, made(true), {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    clone = torch.ops.aten.clone.default(primals_1);  primals_1 = None
    as_strided = torch.ops.aten.as_strided.default(clone, [4], [1], 0)
    add = torch.ops.aten.add.Tensor(as_strided, 1);  as_strided = None
    as_strided_scatter = torch.ops.aten.as_strided_scatter.default(clone, add, [4], [1], 0);  clone = add = None
    as_strided_8 = torch.ops.aten.as_strided.default(as_strided_scatter, [4], [1], 0)
    view_1 = torch.ops.aten.view.default(as_strided_8, [4]);  as_strided_8 = None
    return [as_strided_scatter, view_1])");
}

TEST(TestAOTAutograd, test_input_aliased_with_mutation_output_alias) {
  auto f = program([](const Tensor&, const Tensor& b, const Tensor& c) {
    c.mul_(2);
    return std::tuple{b.add(1), c.view(-1)};
  });
  auto made = [](bool grad) {
    return [grad] {
      Tensor base1 = aot_leaf(ones({2, 2}), grad), base2 = aot_leaf(ones({2, 2}), grad);
      Tensor x = base1.add(1), y = base2.add(1);
      return MadeInputs{{base1, base2}, {x.view(-1), y, x.view(-1)}};
    };
  };
  verify_aot_autograd(f, made(false), {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, made(true), {.test_mutation = true});
  EXPECT_SAME_RESULTS(graph, R"(def forward(self, primals_1, primals_2):
    clone = torch.ops.aten.clone.default(primals_1);  primals_1 = None
    as_strided_1 = torch.ops.aten.as_strided.default(clone, [4], [1], 0)
    mul = torch.ops.aten.mul.Tensor(as_strided_1, 2);  as_strided_1 = None
    as_strided_scatter = torch.ops.aten.as_strided_scatter.default(clone, mul, [4], [1], 0);  clone = mul = None
    add = torch.ops.aten.add.Tensor(primals_2, 1);  primals_2 = None
    as_strided_7 = torch.ops.aten.as_strided.default(as_strided_scatter, [4], [1], 0)
    view_1 = torch.ops.aten.view.default(as_strided_7, [-1]);  as_strided_7 = None
    return [as_strided_scatter, add, view_1])");
}

TEST(TestAOTAutograd, test_input_data_and_metadata_mutation_aliases_other_input) {
  auto f = program([](const Tensor& a, const Tensor& b) {
    a.mul_(2);
    b.t_();
    return a.mul(b);
  });
  for (bool grad : {false, true}) {
    auto made = [&](bool of_two) {
      return [=] {
        Tensor base = aot_leaf(of_two ? two_ones({2, 2}) : ones({2, 2}), grad), x = base.add(1);
        return MadeInputs{{base}, {x[0], x[0]}};
      };
    };
    verify_aot_autograd(f, made(false), {.test_mutation = true});
    // Rows differ in which of the two errors comes; this one is that of test_subclass_metadata_mutation.
    EXPECT_ERROR(verify_aot_autograd(f, made(true), {.test_mutation = true}),
                 "Metadata mutations are currently not allowed on tensor subclasses");
  }
}

TEST(TestAOTAutograd, test_input_mutation_aliases_and_none_require_gradients) {
  auto f = program([](const Tensor& a, const Tensor& b, const Tensor& c) {
    a.mul_(2);
    return std::tuple{b + 1, c + 1};
  });
  auto made = [](bool grad, bool of_two) {
    return [=] {
      Tensor base = of_two ? two_ones({2, 2}) : ones({2, 2}),
             c = aot_leaf(of_two ? two_ones({2, 2}) : ones({2, 2}), grad);
      Tensor x = base.add(1);
      return MadeInputs{{base, c}, {x.view(-1), x.view(-1), c}};
    };
  };
  verify_aot_autograd(f, made(false, false), {.test_mutation = true});
  EXPECT_ERROR(verify_aot_autograd(f, made(false, true), {.test_mutation = true}),
               "is a tensor subclass. This is not supported today");
  GraphModule graph = verify_aot_autograd(f, made(true, false), {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1, primals_2):
    as_strided = torch.ops.aten.as_strided.default(primals_1, [4], [1], 0)
    mul = torch.ops.aten.mul.Tensor(as_strided, 2);  as_strided = None
    as_strided_scatter = torch.ops.aten.as_strided_scatter.default(primals_1, mul, [4], [1], 0);  primals_1 = mul = None
    as_strided_3 = torch.ops.aten.as_strided.default(as_strided_scatter, [4], [1], 0)
    add = torch.ops.aten.add.Tensor(as_strided_3, 1);  as_strided_3 = None
    add_1 = torch.ops.aten.add.Tensor(primals_2, 1);  primals_2 = None
    return [as_strided_scatter, add, add_1])");
}

TEST(TestAOTAutograd, test_input_mutation_aliases_bases_out_of_order) {
  auto f = program([](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
    b.add_(1);
    d.unsqueeze_(0);
    return std::tuple{a + c + d, b.view(-1)};
  });
  auto made = [](bool grad, bool of_two) {
    return [=] {
      Tensor base1 = aot_leaf(of_two ? two_ones({2, 2}) : ones({2, 2}), grad), x1 = base1.add(1);
      Tensor base2 = aot_leaf(of_two ? two_ones({2, 2}) : ones({2, 2}), grad), x2 = base2.add(1);
      return MadeInputs{{base1, base2}, {x1.view(-1), x2.view(-1), x1.view(-1), x2.view(-1)}};
    };
  };
  verify_aot_autograd(f, made(false, false), {.test_mutation = true});
  for (bool grad : {false, true})
    EXPECT_ERROR(verify_aot_autograd(f, made(grad, true), {.test_mutation = true}),
                 "Metadata mutations are currently not allowed on tensor subclasses");
  GraphModule graph = verify_aot_autograd(f, made(true, false), {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1, primals_2, primals_3):
    clone = torch.ops.aten.clone.default(primals_1);  primals_1 = None
    as_strided = torch.ops.aten.as_strided.default(clone, [4], [1], 0)
    add = torch.ops.aten.add.Tensor(as_strided, 1);  as_strided = None
    as_strided_scatter = torch.ops.aten.as_strided_scatter.default(clone, add, [4], [1], 0);  clone = add = None
    add_1 = torch.ops.aten.add.Tensor(primals_2, primals_3);  primals_2 = primals_3 = None
    as_strided_5 = torch.ops.aten.as_strided.default(as_strided_scatter, [4], [1], 0)
    unsqueeze_1 = torch.ops.aten.unsqueeze.default(as_strided_5, 0);  as_strided_5 = None
    add_2 = torch.ops.aten.add.Tensor(add_1, unsqueeze_1);  add_1 = None
    as_strided_14 = torch.ops.aten.as_strided.default(as_strided_scatter, [4], [1], 0)
    view_2 = torch.ops.aten.view.default(as_strided_14, [-1]);  as_strided_14 = None
    return [as_strided_scatter, add_2, view_2, unsqueeze_1])");
}

TEST(TestAOTAutograd, test_input_mutation_alias_everything) {
  auto f = program([](const Tensor& a, const Tensor& b, const Tensor& c) {
    c.mul_(2);
    b.t_();
    Tensor tmp = a + c, out1 = tmp.view(-1), out2 = b.t();
    return std::tuple{out1, out2, out1.unsqueeze(0)};
  });
  auto made = [](bool grad) {
    return [grad] {
      Tensor base1 = aot_leaf(ones({2, 2}), grad), base2 = aot_leaf(ones({2, 2}), grad);
      Tensor x = base1.add(1), y = base2.add(1);
      return MadeInputs{{base1, base2}, {x.view(-1), y, x.view(-1)}};
    };
  };
  verify_aot_autograd(f, made(false), {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, made(true), {.test_mutation = true});
  EXPECT_SAME_RESULTS(graph, R"(def forward(self, primals_1, primals_2):
    clone = torch.ops.aten.clone.default(primals_1);  primals_1 = None
    view = torch.ops.aten.view.default(primals_2, [2, 2]);  primals_2 = None
    as_strided_1 = torch.ops.aten.as_strided.default(clone, [4], [1], 0)
    mul = torch.ops.aten.mul.Tensor(as_strided_1, 2);  as_strided_1 = None
    as_strided_scatter = torch.ops.aten.as_strided_scatter.default(clone, mul, [4], [1], 0);  clone = mul = None
    t = torch.ops.aten.t.default(view);  view = None
    as_strided_2 = torch.ops.aten.as_strided.default(as_strided_scatter, [4], [1], 0)
    as_strided_5 = torch.ops.aten.as_strided.default(as_strided_scatter, [4], [1], 0)
    add = torch.ops.aten.add.Tensor(as_strided_2, as_strided_5);  as_strided_2 = as_strided_5 = None
    view_1 = torch.ops.aten.view.default(add, [-1])
    t_1 = torch.ops.aten.t.default(t)
    unsqueeze = torch.ops.aten.unsqueeze.default(view_1, 0)
    return [as_strided_scatter, t, view_1, t_1, unsqueeze, add])");
}

// Runs each program twice from a strict cache, as every row does.
TEST(TestAOTAutogradWithCache, test_input_mutation_false_aliasing) {
  auto f = program([](const Tensor& a, const Tensor& b) {
    a.mul_(3);
    b.mul_(2);
    Tensor first = a.clone().view(-1), second = b.clone().view(-1);
    return first + second;
  });
  for (bool overlaps : {false, true}) {
    for (bool grad : {false, true}) {
      SCOPED_TRACE(fmt::format("overlap {}, gradient {}", overlaps, grad));
      auto made = [=] {
        Tensor base = aot_leaf(ones({256}), grad), x = base.add(1);
        return MadeInputs{
            {base}, {x.as_strided({4, 4}, {9, 1}, 0), x.as_strided({4, 4}, {9, 1}, overlaps ? 24 : 22)}};
      };
      verify_aot_autograd(f, made, {.test_mutation = true, .strict_cache = true});
    }
  }
}

TEST(TestAOTAutograd, test_input_mutation_false_aliasing) {
  auto f = program([](const Tensor& a, const Tensor& b) {
    a.mul_(3);
    b.mul_(2);
    Tensor first = a.clone().view(-1), second = b.clone().view(-1);
    return first + second;
  });
  const std::string apart = R"(def forward(self, arg0_1, arg1_1):
    mul = torch.ops.aten.mul.Tensor(arg0_1, 3);  arg0_1 = None
    mul_1 = torch.ops.aten.mul.Tensor(arg1_1, 2);  arg1_1 = None
    clone = torch.ops.aten.clone.default(mul)
    view = torch.ops.aten.view.default(clone, [-1]);  clone = None
    clone_1 = torch.ops.aten.clone.default(mul_1)
    view_1 = torch.ops.aten.view.default(clone_1, [-1]);  clone_1 = None
    add = torch.ops.aten.add.Tensor(view, view_1);  view = view_1 = None
    return (mul, mul_1, add))";
  auto halves = [](bool grad, bool of_two) {
    return [=] {
      Tensor base = aot_leaf(of_two ? two_ones({4, 4}) : ones({4, 4}), grad), x = base.add(1);
      return MadeInputs{{base}, {x.slice(0, 0, 2), x.slice(0, 2, 4)}};
    };
  };
  EXPECT_GRAPH(verify_aot_autograd(f, halves(false, false), {.test_mutation = true}), apart);
  verify_aot_autograd(f, halves(true, false), {.test_mutation = true});
  verify_aot_autograd(f, halves(false, true), {.test_mutation = true});
  EXPECT_ERROR(verify_aot_autograd(f, halves(true, true), {.test_mutation = true}),
               "attempted to compile the backward with incorrect subclass metadata");
  using Views = std::function<std::pair<Tensor, Tensor>(const Tensor&)>;
  const Views not_overlapping[] = {
      [](const Tensor& x) {
        return std::pair{x.as_strided({4, 4}, {8, 1}, 0), x.as_strided({4, 4}, {8, 1}, 28)};
      },
      [](const Tensor& x) {
        return std::pair{x.view({16, 16}).slice(1, 0, 2), x.view({16, 16}).slice(1, 2, 4)};
      },
      [](const Tensor& x) {
        return std::pair{x.as_strided({4, 4}, {9, 1}, 0), x.as_strided({4, 4}, {9, 1}, 22)};
      },
      [](const Tensor& x) {
        return std::pair{x.as_strided({4, 4}, {9, 1}, 0), x.as_strided({4, 4}, {9, 1}, 23)};
      },
      [](const Tensor& x) {
        return std::pair{x.as_strided({2, 4, 3}, {110, 24, 4}, 5), x.slice(0, 196, 220)};
      }};
  const Views overlapping[] = {
      [](const Tensor& x) {
        return std::pair{x.as_strided({4, 4}, {9, 1}, 0), x.as_strided({4, 4}, {9, 1}, 24)};
      },
      [](const Tensor& x) {
        return std::pair{x.as_strided({4, 4}, {9, 1}, 0), x.as_strided({4, 4}, {9, 1}, 25)};
      }};
  auto of_base = [](const Views& views) {
    return [&views] {
      Tensor base = arange(256, DType::kFloat32), x = base.add(1);
      auto [a, b] = views(x);
      return MadeInputs{{base}, {a, b}};
    };
  };
  for (const Views& views : not_overlapping)
    EXPECT_GRAPH(verify_aot_autograd(f, of_base(views), {.test_mutation = true}), apart);
  for (const Views& views : overlapping) {
    GraphModule graph = verify_aot_autograd(f, of_base(views), {.test_mutation = true});
    EXPECT_EQ(testing::counts_of(graph), (testing::Counts{1, 2}));
    EXPECT_NE(graph.code().find("as_strided_scatter"), std::string::npos);
  }
}

TEST(TestAOTAutograd, test_input_mutation_multiple) {
  auto f = program([](const Tensor& a, const Tensor& b, const Tensor& c) {
    a.mul_(2);
    c.mul_(2);
    return a + b + c;
  });
  verify_aot_autograd(f, {ones({3, 3}), ones({3, 3}), ones({3, 3})}, {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(
      f, {aot_leaf(ones({3, 3})), aot_leaf(ones({3, 3})), aot_leaf(ones({3, 3}))}, {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1, primals_2, primals_3):
    clone = torch.ops.aten.clone.default(primals_1);  primals_1 = None
    clone_1 = torch.ops.aten.clone.default(primals_3);  primals_3 = None
    mul = torch.ops.aten.mul.Tensor(clone, 2);  clone = None
    mul_1 = torch.ops.aten.mul.Tensor(clone_1, 2);  clone_1 = None
    add = torch.ops.aten.add.Tensor(mul, primals_2);  primals_2 = None
    add_1 = torch.ops.aten.add.Tensor(add, mul_1);  add = None
    return [mul, mul_1, add_1])");
}

TEST(TestAOTAutograd, test_input_mutation_and_output_view) {
  auto f = program([](const Tensor& a) {
    a.add_(1);
    return a.view(-1);
  });
  verify_aot_autograd(f, {ones({2, 2})}, {.test_mutation = true});
  GraphModule graph = verify_aot_autograd(f, {aot_leaf(ones({2, 2}))}, {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    clone = torch.ops.aten.clone.default(primals_1);  primals_1 = None
    add = torch.ops.aten.add.Tensor(clone, 1);  clone = None
    view_1 = torch.ops.aten.view.default(add, [-1])
    return [add, view_1])");
}

TEST(TestAOTAutograd, test_view_detach) {
  auto f = program([](const Tensor& a) {
    Tensor detached = a.detach();
    a.mul_(2);
    return std::tuple{a, detached};
  });
  for (bool grad : {true, false})
    verify_aot_autograd(f, {aot_leaf(ones({3, 3}), grad)}, {.test_mutation = true});
}

}  // namespace
}  // namespace weft
