// TestAOTAutograd: modules, their buffers, and what is saved for the backward.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/verify_aot.h"
#include "weft/autograd/autograd.h"
#include "weft/base/allocator.h"
#include "weft/func/functionalize.h"
#include "weft/nn/layers.h"
#include "weft/nn/normalisation.h"
#include "weft/ops/autocast.h"
#include "weft/ops/conversions.h"
#include "weft/ops/extension.h"
#include "weft/ops/functions.h"
#include "weft/ops/sparse.h"

namespace weft {
namespace {

using testing::aot_leaf;
using testing::MadeInputs;
using testing::program;
using testing::verify_aot_autograd;
using testing::verify_compiled;

// The graphs that a module and its backward are compiled to.
struct KeptGraphs {
  GraphModule forward, backward;
  AotOptions options(bool keep_writes) {
    auto keep = [](GraphModule& into) {
      return [&into](GraphModule& graph, const ValueList& examples) {
        into = graph;
        return aot::nop(graph, examples);
      };
    };
    return {.forward_compiler = keep(forward),
            .backward_compiler = keep(backward),
            .keep_inference_input_mutations = keep_writes};
  }
};

struct LinearOnly : nn::Module {
  nn::Linear linear = child("linear", nn::Linear(3, 3));
  Tensor forward(const Tensor& a) { return linear(a); }
  WEFT_ARGS(a)
};

TEST(TestAOTAutograd, test_composite_impl_compile) {
  LinearOnly module;
  auto compile = [&](const AotOptions& options) -> ValueFunction {
    AotModule compiled = aot_module(module, options);
    return [compiled](Args args) { return compiled.call(args); };
  };
  auto made = [&](bool grad) {
    return [&, grad] {
      Tensor leaf = aot_leaf(ones({3, 3}), grad);
      return MadeInputs{{leaf, module.linear.weight, module.linear.bias}, {leaf.add(1)}};
    };
  };
  auto f = program([&](const Tensor& a) { return module(a); });
  GraphModule graph = verify_compiled(f, compile, made(true), {.test_mutation = true});
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1, primals_2, primals_3):
    t = torch.ops.aten.t.default(primals_1);  primals_1 = None
    addmm = torch.ops.aten.addmm.default(primals_2, primals_3, t);  primals_2 = None
    return [addmm, primals_3, t])");
  InferenceMode inference;
  GraphModule inferred = verify_compiled(f, compile, made(false), {.test_mutation = true});
  EXPECT_GRAPH(inferred, R"(def forward(self, arg0_1, arg1_1, arg2_1):
    t = torch.ops.aten.t.default(arg0_1);  arg0_1 = None
    addmm = torch.ops.aten.addmm.default(arg1_1, arg2_1, t);  arg1_1 = arg2_1 = t = None
    return (addmm,))");
}

TEST(TestAOTAutograd, test_batchnorm_inference) {
  nn::BatchNorm2d norm(4, {.eps = 4});
  norm.eval();
  KeptGraphs kept;
  AotModule compiled = aot_module(norm, kept.options(true));
  NoGrad no_grad;
  Tensor x = ones({4, 4, 4, 4});
  testing::expect_equal(compiled(x), norm(x));
  EXPECT_EQ(kept.forward.code().find("copy_"), std::string::npos);
}

TEST(TestAOTAutograd, test_batchnorm) {
  nn::BatchNorm2d norm(4);
  AotModule compiled = aot_module(norm);
  compiled(ones({1, 4, 2, 2})).sum().backward();
  EXPECT_TRUE(norm.weight.grad().defined());
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 1);
}

struct Counting : nn::Module {
  Tensor w1 = parameter("w1", zeros({1}).set_requires_grad()),
         w2 = parameter("w2", zeros({1}).set_requires_grad());
  Tensor buf = buffer("buf", zeros({1}));
  Tensor forward(const Tensor& x) {
    buf.add_(1);
    Tensor product = (w1 * x * w2).sum();
    return product + buf.sum();
  }
  WEFT_ARGS(x)
};

TEST(TestAOTAutograd, test_buffer_copied_in_graph) {
  Counting module;
  Counting eager = nn::deep_copy(module);
  KeptGraphs kept;
  AotModule compiled = aot_module(module, kept.options(true));
  Tensor leaf = aot_leaf(ones({1})), leaf2 = aot_leaf(ones({1}));
  Tensor expected = eager(leaf.clone()), out = compiled(leaf2.clone());
  EXPECT_GRAPH(kept.forward, R"(def forward(self, primals_1, primals_2, primals_3, primals_4):
    add = torch.ops.aten.add.Tensor(primals_3, 1)
    mul = torch.ops.aten.mul.Tensor(primals_1, primals_4)
    mul_1 = torch.ops.aten.mul.Tensor(mul, primals_2)
    sum_1 = torch.ops.aten.sum.default(mul_1);  mul_1 = None
    sum_2 = torch.ops.aten.sum.default(add)
    add_1 = torch.ops.aten.add.Tensor(sum_1, sum_2);  sum_1 = sum_2 = None
    copy_ = torch.ops.aten.copy_.default(primals_3, add);  primals_3 = add = copy_ = None
    return [add_1, primals_1, primals_2, primals_4, mul])");
  testing::expect_equal(out.detach(), expected.detach());
  testing::expect_equal(module.buf, eager.buf);
  expected.sum().backward();
  out.sum().backward();
  testing::expect_equal(module.w1.grad(), eager.w1.grad());
  testing::expect_equal(module.w2.grad(), eager.w2.grad());
  testing::expect_equal(leaf2.grad(), leaf.grad());
}

struct Normalising : nn::Module {
  nn::BatchNorm1d bn = child("bn", nn::BatchNorm1d(100));
  Tensor forward(const Tensor& x) { return bn(x); }
  WEFT_ARGS(x)
};

TEST(TestAOTAutograd, test_buffer_batch_norm) {
  Normalising module;
  Normalising eager = nn::deep_copy(module);
  KeptGraphs kept;
  AotModule compiled = aot_module(module, kept.options(true));
  Tensor leaf = aot_leaf(ones({20, 100})), leaf2 = aot_leaf(ones({20, 100}));
  Tensor expected = eager(leaf.clone()), out = compiled(leaf2.clone());
  EXPECT_TRUE(testing::close(out, expected, 1e-6, 1e-6));
  EXPECT_GRAPH(kept.forward,
               R"(def forward(self, primals_1, primals_2, primals_3, primals_4, primals_5, primals_6):
    add = torch.ops.aten.add.Tensor(primals_5, 1)
    _native_batch_norm_legit_functional = torch.ops.aten._native_batch_norm_legit_functional.default(primals_6, primals_1, primals_2, primals_3, primals_4, True, 0.1, 1e-05);  primals_2 = None
    getitem = _native_batch_norm_legit_functional[0]
    getitem_1 = _native_batch_norm_legit_functional[1]
    getitem_2 = _native_batch_norm_legit_functional[2]
    getitem_3 = _native_batch_norm_legit_functional[3]
    getitem_4 = _native_batch_norm_legit_functional[4];  _native_batch_norm_legit_functional = None
    copy_ = torch.ops.aten.copy_.default(primals_3, getitem_3);  primals_3 = copy_ = None
    copy__1 = torch.ops.aten.copy_.default(primals_4, getitem_4);  primals_4 = copy__1 = None
    copy__2 = torch.ops.aten.copy_.default(primals_5, add);  primals_5 = add = copy__2 = None
    return [getitem, primals_1, primals_6, getitem_1, getitem_2, getitem_3, getitem_4])");
  expected.sum().backward();
  out.sum().backward();
  EXPECT_GRAPH(
      kept.backward,
      R"(def forward(self, primals_1, primals_6, getitem_1, getitem_2, getitem_3, getitem_4, tangents_1):
    native_batch_norm_backward = torch.ops.aten.native_batch_norm_backward.default(tangents_1, primals_6, primals_1, getitem_3, getitem_4, getitem_1, getitem_2, True, 1e-05, [True, True, True]);  tangents_1 = primals_6 = primals_1 = getitem_3 = getitem_4 = getitem_1 = getitem_2 = None
    getitem_5 = native_batch_norm_backward[0]
    getitem_6 = native_batch_norm_backward[1]
    getitem_7 = native_batch_norm_backward[2];  native_batch_norm_backward = None
    return [getitem_6, getitem_7, None, None, None, getitem_5])");
  testing::expect_equal(leaf2.grad(), leaf.grad());
  testing::expect_equal(module.bn.running_mean, eager.bn.running_mean);
}

struct BagView : nn::Module {
  nn::EmbeddingBag emb = child("emb", nn::EmbeddingBag(100, 8, {.sparse = true}));
  Tensor forward(const Tensor& x, const Tensor& y) { return emb(x, y).view(-1); }
  WEFT_ARGS(x, y)
};

TEST(TestAOTAutograd, test_embedding_bag_view_dynamic) {
  BagView module;
  const Tensor x = arange(3), y = arange(3);
  auto run = [&](const Tensor& a, const Tensor& b) { return module(a, b); };
  auto made = [&] { return testing::MadeInputs{{module.emb.weight}, {x, y}}; };
  for (bool dynamic : {false, true}) {
    SCOPED_TRACE(dynamic);
    auto compile = [&](const AotOptions& options) -> ValueFunction {
      AotModule compiled = aot_module(module, options);
      return [compiled](Args args) { return compiled.call(args); };
    };
    testing::verify_compiled(testing::program(run), compile, made, {.dynamic = dynamic});
    BagView eager = nn::deep_copy(module), other = nn::deep_copy(module);
    AotModule compiled = aot_module(other, {.dynamic = dynamic});
    const Tensor weights = randn({24});
    (eager(x, y) * weights).sum().backward();
    (compiled(x, y) * weights).sum().backward();
    const Tensor got = other.emb.weight.grad(), wanted = eager.emb.weight.grad();
    ASSERT_TRUE(is_sparse(got) && is_sparse(wanted));
    EXPECT_EQ(layout_of(got), "sparse_coo");
    EXPECT_EQ(got.storage()->bytes(), 0u);
    testing::expect_equal(sparse_indices(got), sparse_indices(wanted));
    testing::expect_equal(sparse_values(got), sparse_values(wanted));
  }
}

TEST(TestAOTAutograd, test_input_mutation_return) {
  auto f = program([](const Tensor& a, const Tensor& b) { return sin_out(b, a); });
  GraphModule graph = verify_aot_autograd(f, {randn({3, 3}), ones({3, 3})},
                                          {.test_mutation = true, .keep_input_mutations = true});
  EXPECT_GRAPH(graph, R"(def forward(self, arg0_1, arg1_1):
    sin = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
    copy_ = torch.ops.aten.copy_.default(arg1_1, sin);  arg1_1 = sin = None
    return (copy_,))");
}

TEST(TestAOTAutograd, test_output_op_depending_on_symint) {
  auto f = [](const Tensor& x) { return x.expand(x.sizes()); };
  Tensor x = aot_leaf(randn({5}));
  Tensor out = aot_function(f, {.partitioner = aot::min_cut_partitioner(), .dynamic = true})(x);
  testing::expect_equal(out.detach(), f(x).detach());
}

TEST(TestAOTAutograd, test_default_partitioner_saves_symints_not_tensors_for_bw) {
  auto f = [](const Tensor& a) {
    Tensor b = a[0];
    return b.masked_fill_(ones_like(b, DType::kBool), 0);
  };
  Tensor leaf = aot_leaf(ones({2, 2})), leaf2 = aot_leaf(ones({2, 2}));
  Tensor expected = f(leaf.clone()), out = aot_function(f, {.dynamic = true})(leaf2.clone());
  testing::expect_equal(out.detach(), expected.detach());
  expected.sum().backward();
  out.sum().backward();
  testing::expect_equal(leaf2.grad(), leaf.grad());
}

TEST(TestAOTAutograd, test_mem_leak_from_save_for_bw) {
  auto f = [](const Tensor& a, const Tensor& b) {
    Tensor sum = a + a;
    Tensor half = sum.split_with_sizes({4, 4}, 1)[1].unsqueeze(-1);
    return std::tuple{half, half * b};
  };
  Tensor a = aot_leaf(ones({8, 8})), b = aot_leaf(ones({1, 4, 1}));
  AotFunction compiled = aot_function(f);
  compiled.call({a, b});
  const Ref<Storage> probe = a.storage();
  const auto before = allocator_stats().bytes_in_use;
  const auto handles = probe->use_count();
  compiled.call({a, b});
  EXPECT_EQ(allocator_stats().bytes_in_use, before);
  EXPECT_EQ(probe->use_count(), handles);
}

TEST(TestAOTAutograd, test_autocast_disable_guard) {
  Autocast autocast(DType::kBFloat16);
  Tensor x = rand({4, 4});
  EXPECT_EQ(matmul(x, x).dtype(), DType::kBFloat16);
  Autocast off(DType::kBFloat16, false);
  EXPECT_EQ(matmul(x, x).dtype(), DType::kFloat32);
}

TEST(TestAOTAutograd, test_real_weights_in_symbolic_mode) {
  nn::Linear linear(5, 5);
  linear.eval();
  auto f = [linear](const Tensor& x) { return linear(x); };
  MakeGraphOptions options{.mode = CaptureMode::kSymbolic, .allow_real_inputs = true};
  GraphModule graph = make_graph(f, options)(randn({2, 5}));
  EXPECT_EQ(graph.graph().placeholders().size(), 1u);
  Tensor x = ones({2, 5});
  EXPECT_TRUE(testing::close(graph(x), linear(x), 1e-6, 1e-6));
  GraphModule functional =
      make_graph(func::functionalize([graph](const Tensor& t) { return graph(t); }), options)(randn({2, 5}));
  EXPECT_EQ(functional.graph().placeholders().size(), 1u);
  EXPECT_TRUE(testing::close(functional(x), linear(x), 1e-6, 1e-6));
  EXPECT_ERROR(make_graph(f, {.mode = CaptureMode::kSymbolic})(randn({2, 5})),
               "Please convert all Tensors to FakeTensors");
}

}  // namespace
}  // namespace weft
