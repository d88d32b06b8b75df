#include "weft/aot/aot_function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/verify_aot.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/function.h"
#include "weft/ops/autocast.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::aot_leaf;
using testing::expect_equal;
using ::testing::HasSubstr;

TEST(AotFunction, IsCompiledOnce) {
  int runs = 0, compiled = 0;
  auto count = [&](GraphModule& graph, const ValueList& examples) {
    ++compiled;
    return aot::nop(graph, examples);
  };
  AotFunction f = aot_function(
      [&](const Tensor& x) {
        ++runs;
        return x.sin();
      },
      {.forward_compiler = count});
  Tensor x = randn({3});
  f(x);
  const int first = runs;
  f(randn({3}));
  EXPECT_EQ(runs, first);
  EXPECT_EQ(compiled, 1);
}

TEST(AotFunction, OtherInputsThanItWasCompiledForAreErrorsThatNameThem) {
  aot::reset_graph_counter();
  AotFunction f = aot_function([](const Tensor& x, int64_t n) { return x * n; });
  f(ones({3}), 2);
  EXPECT_ERROR(f(ones({4}), 2), "graph 0 was compiled for f32[3] as input 0, but got f32[4]");
  EXPECT_ERROR(f(ones({3}, DType::kFloat64), 2), "was compiled for f32[3] as input 0, but got f64[3]");
  EXPECT_ERROR(f(ones({3}), 5), "was compiled for 2 as input 1, but got 5");
  EXPECT_ERROR(f.call({ones({3})}), "other arguments than it was compiled for");
}

TEST(AotFunction, SymbolicSizesHoldForOthersWithinTheirGuards) {
  AotFunction f =
      aot_function([](const Tensor& x, const Tensor& y) { return (x * y).sum(0); }, {.dynamic = true});
  Tensor x = randn({4, 3}), y = randn({4, 3});
  EXPECT_TRUE(testing::close(f(x, y), (x * y).sum(0), 1e-6, 1e-6));
  Tensor x2 = randn({7, 5}), y2 = randn({7, 5});
  EXPECT_TRUE(testing::close(f(x2, y2), (x2 * y2).sum(0), 1e-6, 1e-6));
  EXPECT_ERROR(f(x2, randn({7, 4})),
               "does not hold for these inputs: s1 is 5, size(1) of input 0; s3 is 4, size(1) of input 1");
  EXPECT_ERROR(f(randn({1, 5}), randn({1, 5})), "size(0) of input 0 in [2, inf], but got 1");
}

TEST(AotFunction, SaysWhatItDoes) {
  aot::reset_graph_counter();
  AotFunction f = aot_function([](const Tensor& a, const Tensor& b) {
    a.mul_(2);
    return std::tuple{b.view(-1), a + b};
  });
  EXPECT_ERROR(f.explain(), "was not compiled yet");
  f.call({aot_leaf(ones({2, 2})) + 0, aot_leaf(ones({2, 2})) + 0});
  EXPECT_EQ(f.explain(), R"(input 0: written; written back after the graph
output 0: a view of input 1, requires grad
output 1: a value of its own, requires grad
check 2 inputs
change metadata: inputs 
regenerate aliases: outputs 0
copy back: inputs 0
run the forward graph 0, and its backward where gradients are asked for: 0 tensors and 0 sizes saved
)");
}

TEST(AotFunction, ASecondDerivativeIsRefused) {
  Tensor x = aot_leaf(ones({3}));
  Tensor y = aot_function([](const Tensor& t) { return t.sin(); })(x);
  EXPECT_ERROR(autograd::grad({y.sum()}, {x}, {}, {.create_graph = true}), "cannot be differentiated twice");
}

TEST(AotFunction, WhatWasCompiledWithoutGradientsRefusesThem) {
  AotFunction f = aot_function([](const Tensor& t) { return t.sin(); });
  Tensor x = aot_leaf(ones({3}));
  {
    NoGrad no_grad;
    f(x);
  }
  EXPECT_ERROR(f(x), "was compiled while gradients were not recorded");
}

TEST(AotFunction, CompilersThatFailLeaveNothingBehind) {
  bool fails = true;
  auto compiler = [&](GraphModule& graph, const ValueList& examples) {
    if (fails) fail("no room for {}", aot::compilation_context().names[0]);
    return aot::nop(graph, examples);
  };
  AotFunction f = aot_function([](const Tensor& t) { return t.sin(); }, {.forward_compiler = compiler});
  EXPECT_ERROR(f(ones({3})), "no room for");
  EXPECT_TRUE(aot::compilation_context().names.empty());
  EXPECT_EQ(layer_state().active, 0u);
  fails = false;
  expect_equal(f(ones({3})), ones({3}).sin());
}

TEST(AotFunction, ACompiledGraphMustGiveAllOutputs) {
  auto too_few = [](GraphModule&, const ValueList&) -> aot::CompiledGraph {
    return ValueFunction([](Args) { return Value::list({}); });
  };
  EXPECT_ERROR(
      aot_function([](const Tensor& t) { return t.sin(); }, {.forward_compiler = too_few})(ones({3})),
      "the compiled forward gave 0 outputs, but its graph has 1");
  auto no_list = [](GraphModule&, const ValueList&) -> aot::CompiledGraph {
    return ValueFunction([](Args) { return Value(3); });
  };
  EXPECT_ERROR(
      aot_function([](const Tensor& t) { return t.sin(); }, {.forward_compiler = no_list})(ones({3})),
      "a compiled graph gives a list of its outputs");
}

TEST(AotFunction, AGradientThatNothingAsksForIsNone) {
  Tensor a = aot_leaf(ones({2})), b = aot_leaf(ones({2}));
  const Value out =
      aot_function([](const Tensor& x, const Tensor& y) { return std::tuple{x * 2, y * 3}; }).call({a, b});
  out.elements()[1].to_tensor().sum().backward();
  EXPECT_FALSE(a.grad().defined());
  expect_equal(b.grad(), full({2}, 3.0));
}

struct ConstantGradient : autograd::Function<ConstantGradient> {
  static Tensor forward(autograd::FunctionContext& context, const Tensor& x) {
    context.save_for_backward({x});
    return x.sum();
  }
  static std::vector<Tensor> backward(autograd::FunctionContext& context, const std::vector<Tensor>&) {
    return {ones_like(context.saved_tensors()[0])};
  }
};

TEST(AotFunction, AGradientMayDependOnNoTangent) {
  Tensor x = aot_leaf(randn({3}));
  aot_function([](const Tensor& t) { return ConstantGradient::apply(t); })(x).backward();
  expect_equal(x.grad(), ones({3}));
}

TEST(AotFunction, InputsThatShareWhatIsWrittenMustHaveDoneSoBefore) {
  auto f = [](const Tensor& x, const Tensor& y) {
    x.add_(1);
    return x * y;
  };
  AotFunction apart = aot_function(f);
  apart(ones({4}), ones({4}));
  Tensor x = ones({4});
  EXPECT_ERROR(apart(x, x), "inputs 0 and 1 that share no elements, and writes to input 0, but now they do");
  expect_equal(x, ones({4}));
  AotFunction together = aot_function(f);
  Tensor memory = ones({8});
  together(memory.slice(0, 0, 4), memory.slice(0, 2, 6));
  EXPECT_ERROR(together(memory.slice(0, 1, 5), memory.slice(0, 3, 7)), "another part of the memory");
  EXPECT_ERROR(together(ones({4}), ones({4})), "now input 1 has its own");
  AotFunction strided = aot_function([](const Tensor& t) { return t.reshape({-1}); });
  strided(ones({2, 3}));
  EXPECT_ERROR(strided(ones({3, 2}).t()), "was compiled for strides [3, 1] of input 0, but got [1, 2]");
}

TEST(AotFunction, WritesBesideASharedMemoryAreKept) {
  auto f = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    a.add_(b.sum());
    {
      NoGrad no_grad;
      c.mul_(3);
    }
    return a * b;
  };
  for (bool keep : {false, true}) {
    Tensor leaf = aot_leaf(ones({8})), leaf2 = aot_leaf(ones({8}));
    Tensor ours = leaf.clone(), theirs = leaf2.clone();
    auto parts = [&](const ValueFunction& g, const Tensor& x) {
      return g(ValueList{x.slice(0, 0, 4), x.slice(0, 2, 6), x.slice(0, 6, 8)}).to_tensor();
    };
    AotFunction compiled = aot_function(f, {.keep_inference_input_mutations = keep});
    Tensor expected = parts(testing::program(f), ours), out = parts(compiled.function(), theirs);
    // Of another tensor over that memory it is refused.
    Tensor other = ones({8});
    EXPECT_ERROR(aot_function(f)(other.slice(0, 0, 4), other.slice(0, 2, 6), other.detach().slice(0, 6, 8)),
                 "must be views of one tensor");
    expect_equal(out.detach(), expected.detach());
    expect_equal(theirs.detach(), ours.detach());
  }
}

TEST(AotFunction, ATensorThatIsReturnedTwiceIsOne) {
  const Value out = aot_function([](const Tensor& t) {
                      Tensor y = t.sin();
                      return std::tuple{y, y};
                    }).call({aot_leaf(randn({3}))});
  EXPECT_TRUE(out.elements()[0].to_tensor().is_same(out.elements()[1].to_tensor()));
}

TEST(AotFunction, CastsAreMadeOnce) {
  AotFunction f = aot_function([](const Tensor& a, const Tensor& b) { return mm(a, b); });
  Tensor a = randn({4, 4}), b = randn({4, 4});
  Autocast autocast(DType::kBFloat16);
  Tensor expected = mm(a, b);
  expect_equal(f(a, b), expected);
  expect_equal(f(a, b), expected);
  EXPECT_EQ(expected.dtype(), DType::kBFloat16);
}

TEST(Partition, TheMinimumCutNeverSavesMoreThanEverything) {
  auto f = testing::program([](const Tensor& x) { return (x.sin() * x.cos()).exp().tanh(); });
  Tensor x = aot_leaf(randn({100}));
  aot::SavedReport reports[2];
  int next = 0;
  for (const aot::Partitioner& partitioner :
       {aot::Partitioner(aot::default_partition), aot::min_cut_partitioner()}) {
    auto keep = [&](const GraphModule& joint, size_t outputs) {
      aot::Partition partition = partitioner(joint, outputs);
      reports[next] = aot::report(partition);
      return partition;
    };
    aot_function(f, {.partitioner = keep}).call({x});
    ++next;
  }
  EXPECT_LT(reports[1].total_bytes, reports[0].total_bytes);
  EXPECT_EQ(reports[1].total_bytes, 400);
  EXPECT_FALSE(reports[1].recomputed.empty());
  EXPECT_THAT(reports[1].to_string(), HasSubstr("400 bytes saved in all"));
}

}  // namespace
}  // namespace weft
