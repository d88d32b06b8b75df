// Batch norm writes to its running statistics though its schema does not say so: functionalize(f) knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tensors.h"
#include "weft/capture/make_graph.h"
#include "weft/func/functionalize.h"
#include "weft/nn/functional_call.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using testing::close;
using testing::expect_equal;
using ::testing::HasSubstr;
using ::testing::Not;

struct Block : nn::Module {
  nn::Conv2d conv = child("conv", nn::Conv2d(2, 3, 1));
  nn::BatchNorm2d bn = child("bn", nn::BatchNorm2d(3));
  Tensor forward(const Tensor& x) { return bn(conv(x)).relu(); }
  WEFT_ARGS(x)
};

// The module as a function of its input and its statistics.
auto with_statistics(Block& block) {
  return [&block](const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& batches) {
    return nn::functional_call(
        block, {{"bn.running_mean", mean}, {"bn.running_var", var}, {"bn.num_batches_tracked", batches}}, x);
  };
}

struct Statistics {
  Tensor mean = zeros({3}), var = ones({3}), batches = zeros(SymIntSpan(), kInt64);
};

TEST(FunctionalizeBatchNorm, TheStatisticsThatAreGivenAreWrittenAtTheEnd) {
  Block block;
  auto f = with_statistics(block);
  Tensor x = randn({2, 2, 4, 4});
  Statistics eager;
  Tensor expected = f(x, eager.mean, eager.var, eager.batches);
  ASSERT_FALSE(close(eager.mean, zeros({3}), 1e-6, 1e-6));

  Statistics run;
  expect_equal(func::functionalize(f)(x, run.mean, run.var, run.batches), expected);
  expect_equal(run.mean, eager.mean);
  expect_equal(run.var, eager.var);
  expect_equal(run.batches, eager.batches);

  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake}) {
    Statistics traced;
    GraphModule g = make_graph(func::functionalize(f), {.mode = mode, .allow_real_inputs = true})(
        x, traced.mean, traced.var, traced.batches);
    EXPECT_EQ(g.code(), R"(


def forward(self, arg0_1, arg1_1, arg2_1, arg3_1):
    _param_constant0 = self._param_constant0
    _param_constant1 = self._param_constant1
    convolution = torch.ops.aten.convolution.default(arg0_1, _param_constant0, _param_constant1, [1, 1], [0, 0], [1, 1], False, [0, 0], 1);  arg0_1 = _param_constant0 = _param_constant1 = None
    add = torch.ops.aten.add.Tensor(arg3_1, 1)
    _param_constant2 = self._param_constant2
    _param_constant3 = self._param_constant3
    _native_batch_norm_legit_functional = torch.ops.aten._native_batch_norm_legit_functional.default(convolution, _param_constant2, _param_constant3, arg1_1, arg2_1, True, 0.1, 1e-05);  convolution = _param_constant2 = _param_constant3 = None
    getitem = _native_batch_norm_legit_functional[0]
    getitem_3 = _native_batch_norm_legit_functional[3]
    getitem_4 = _native_batch_norm_legit_functional[4];  _native_batch_norm_legit_functional = None
    relu = torch.ops.aten.relu.default(getitem);  getitem = None
    copy_ = torch.ops.aten.copy_.default(arg1_1, getitem_3);  arg1_1 = getitem_3 = copy_ = None
    copy__1 = torch.ops.aten.copy_.default(arg2_1, getitem_4);  arg2_1 = getitem_4 = copy__1 = None
    copy__2 = torch.ops.aten.copy_.default(arg3_1, add);  arg3_1 = add = copy__2 = None
    return relu
    )");
    Statistics replayed;
    expect_equal(g(x, replayed.mean, replayed.var, replayed.batches), expected);
    expect_equal(replayed.mean, eager.mean);
    expect_equal(replayed.var, eager.var);
    expect_equal(replayed.batches, eager.batches);
  }
}

TEST(FunctionalizeBatchNorm, CopiesThatTheProgramMakesKeepTheOldValue) {
  auto f = [](const Tensor& x, const Tensor& mean, const Tensor& var) {
    Tensor before = mean * 1, same = mean.view({3});
    batch_norm(x, {}, {}, mean, var, true, 0.5, 1e-5, false);
    batch_norm(x, {}, {}, mean, var, true, 0.5, 1e-5, false);
    return std::tuple(before, same * 1);
  };
  Tensor x = randn({4, 3}) + 5;
  Statistics eager, run;
  auto expected = f(x, eager.mean, eager.var);
  func::Tensors results = func::functionalize(f)(func::Tensors{x, run.mean, run.var});
  expect_equal(results[0], zeros({3}));
  expect_equal(results[1], std::get<1>(expected));
  expect_equal(run.mean, eager.mean);
  expect_equal(run.var, eager.var);
}

TEST(FunctionalizeBatchNorm, TheOperatorItselfAndItsGradient) {
  auto f = [](const Tensor& x, const Tensor& mean, const Tensor& var) {
    return (std::get<0>(native_batch_norm(x, {}, {}, mean, var, true, 0.1, 1e-5)) * x).sum();
  };
  Tensor x = randn({4, 3});
  Statistics eager, run;
  Tensor value = f(x, eager.mean, eager.var);
  GraphModule g = make_graph(func::functionalize(f))(x, zeros({3}), ones({3}));
  EXPECT_THAT(g.code(), HasSubstr("_native_batch_norm_legit_functional.default("));
  EXPECT_THAT(g.code(), Not(HasSubstr("aten.native_batch_norm.default(")));
  expect_equal(g(x, run.mean, run.var), value);
  expect_equal(run.mean, eager.mean);
  Statistics of_gradient, expected_statistics;
  Tensor expected = func::grad(f)(x, expected_statistics.mean, expected_statistics.var);
  GraphModule gradient = make_graph(func::functionalize(func::grad(f)))(x, zeros({3}), ones({3}));
  EXPECT_THAT(gradient.code(), HasSubstr("_native_batch_norm_legit_functional.default("));
  EXPECT_TRUE(close(gradient(x, of_gradient.mean, of_gradient.var), expected, 1e-6, 1e-6));
  expect_equal(of_gradient.mean, eager.mean);
}

TEST(FunctionalizeBatchNorm, NothingIsWrittenInEvaluation) {
  Block block;
  block.eval();
  GraphModule g = make_graph(func::functionalize(with_statistics(block)))(
      randn({2, 2, 4, 4}), zeros({3}), ones({3}), zeros(SymIntSpan(), kInt64));
  EXPECT_THAT(g.code(), Not(HasSubstr("copy_")));
}

TEST(FunctionalizeBatchNorm, StatisticsFromOutsideAreWrittenBelow) {
  Tensor x = randn({2, 2, 4, 4});
  Tensor mean = zeros({2}), var = ones({2}), expected_mean = zeros({2}), expected_var = ones({2});
  Tensor expected = batch_norm(x, {}, {}, expected_mean, expected_var, true, 0.1, 1e-5, false);
  auto f = [&](const Tensor& y) { return batch_norm(y, {}, {}, mean, var, true, 0.1, 1e-5, false); };
  expect_equal(func::functionalize(f)(x), expected);
  expect_equal(mean, expected_mean);
  expect_equal(var, expected_var);
}

}  // namespace
}  // namespace weft
