// TestAOTAutograd: complex numbers, narrow types under autocast, and normalisation that writes its
// statistics.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/verify_aot.h"
#include "weft/autograd/autograd.h"
#include "weft/nn/layers.h"
#include "weft/ops/autocast.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::aot_leaf;
using testing::close;
using testing::MadeInputs;
using testing::program;
using testing::verify_aot_autograd;
using testing::verify_compiled;

struct ComplexLinear : nn::Module {
  nn::Linear linear = child("linear", nn::Linear(10, 10, {.dtype = kComplex64}));
  Tensor forward(const Tensor& x) { return linear(x).sum().abs(); }
  WEFT_ARGS(x)
};

TEST(TestAOTAutograd, test_complex_linear) {
  ComplexLinear module;
  const Tensor x = randn({1, 10, 10}, kComplex64);
  auto compile = [&](const AotOptions& options) -> ValueFunction {
    AotModule compiled = aot_module(module, options);
    return [compiled](Args args) { return compiled.call(args); };
  };
  auto made = [&] { return MadeInputs{{module.linear.weight, module.linear.bias}, {x.clone()}}; };
  verify_compiled(program([&](const Tensor& a) { return module(a); }), compile, made, {});
  // As a function of its parameters it is also captured first, and kept in a cache.
  auto f =
      program([](const Tensor& a, const Tensor& w, const Tensor& b) { return linear(a, w, b).sum().abs(); });
  verify_aot_autograd(f, {x, aot_leaf(randn({10, 10}, kComplex64)), aot_leaf(randn({10}, kComplex64))});
}

TEST(TestAOTAutograd, test_input_mutation_batchnorm) {
  auto f = program(
      [](const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var) {
        return _native_batch_norm_legit(x, weight, bias, mean, var, true, 0.5, 1e-5);
      });
  const Decompositions decompositions = aot::get_decompositions(
      {"aten::_native_batch_norm_legit_functional", "aten::native_batch_norm_backward"});
  EXPECT_EQ(decompositions.size(), 2u);
  for (bool grad : {true, false}) {
    SCOPED_TRACE(grad);
    const ValueList inputs = {aot_leaf(ones({2, 5, 5, 5}), grad), aot_leaf(ones({5}), grad),
                              aot_leaf(ones({5}), grad), ones({5}), ones({5})};
    verify_aot_autograd(f, inputs, {.test_mutation = true, .decompositions = decompositions});
  }
}

TEST(TestAOTAutograd, test_nonidempotent_amp) {
  auto f =
      program([](const Tensor& a, const Tensor& b) { return log_softmax(einsum("ah,th->t", {a, b}), -1); });
  Autocast autocast(kBFloat16);
  for (bool grad : {false, true}) {
    SCOPED_TRACE(grad);
    verify_aot_autograd(f, {aot_leaf(rand({1, 256}), grad), aot_leaf(rand({30, 256}, kBFloat16), grad)});
  }
}

TEST(TestAOTAutograd, test_batch_norm_amp) {
  auto f = [](const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
              const Tensor& var) { return cudnn_batch_norm(x, weight, bias, mean, var, false, 0.1, 1e-5); };
  const Decompositions decompositions = aot::get_decompositions({"aten::cudnn_batch_norm"});
  ASSERT_EQ(decompositions.size(), 1u);
  const Tensor x = ones({16, 64, 112, 112}, kFloat16), one = ones({64});
  GraphModule graph =
      make_graph(f, {.decompositions = decompositions})(x, one, one.clone(), one.clone(), one.clone());
  EXPECT_EQ(graph.code().find("cudnn_batch_norm"), std::string::npos) << graph.code();
  const ValueList got = graph.call({x, one, one, one, one}).elements();
  const auto [out, mean, rstd, reserve] = f(x, one, one, one, one);
  EXPECT_TRUE(close(got[0].to_tensor(), out, 1e-3, 1e-3));
  const auto [native, native_mean, native_rstd] = native_batch_norm(x, one, one, one, one, false, 0.1, 1e-5);
  EXPECT_EQ(out.dtype(), kFloat16);
  EXPECT_TRUE(close(out, native, 0, 0));
}

struct ResizesBuffer : nn::Module {
  Tensor own = buffer("buffer", ones({4, 5}));
  Tensor forward(const Tensor& x) {
    Tensor y = own.add_(3);
    y.resize_({20});
    require(std::ranges::equal(y.sizes(), own.sizes(),
                               [](const SymInt& a, const SymInt& b) { return a.same_as(b); }),
            "the buffer itself was resized");
    Tensor sum = x.sum();
    return sum + own.sum();
  }
  WEFT_ARGS(x)
};

TEST(TestAOTAutograd, test_real_weights_in_symbolic_mode_with_inplace_ops) {
  ResizesBuffer module;
  module.eval();
  EXPECT_ERROR(make_graph(module, {.mode = CaptureMode::kSymbolic, .allow_real_inputs = true})(randn({2, 5})),
               "Can't call metadata mutating ops on tensors that are no inputs");
  testing::expect_equal(module.own, ones({4, 5}));
}

}  // namespace
}  // namespace weft
