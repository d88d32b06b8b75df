// TestAOTAutograd: backward passes that write.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/verify_aot.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/function.h"
#include "weft/ops/define.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::aot_leaf;
using testing::program;
using testing::verify_aot_autograd;
using Context = autograd::FunctionContext;

struct DoublesItsInput : autograd::Function<DoublesItsInput> {
  static Tensor forward(Context& context, const Tensor& x) {
    context.save_for_backward({x});
    return x.clone();
  }
  static std::vector<Tensor> backward(Context& context, const std::vector<Tensor>& grads) {
    context.saved_tensors()[0].mul_(2);
    return {grads[0].clone()};
  }
};

TEST(TestAOTAutograd, test_backward_mutation_data) {
  auto f = program([](const Tensor& a, const Tensor& b) { return a * DoublesItsInput::apply(b); });
  for (bool grad : {false, true})
    verify_aot_autograd(f, {aot_leaf(ones({3, 3})), aot_leaf(ones({3, 3}), grad)},
                        {.test_mutation = true, .strict_cache = false});
}

struct TransposesItsInput : autograd::Function<TransposesItsInput> {
  static std::tuple<Tensor, Tensor> forward(Context& context, const Tensor& a, const Tensor& b) {
    context.save_for_backward({b});
    return {a.clone(), b.clone()};
  }
  static std::vector<Tensor> backward(Context& context, const std::vector<Tensor>& grads) {
    context.saved_tensors()[0].transpose_(1, 0);
    return {grads[0].clone(), grads[1].clone()};
  }
};

TEST(TestAOTAutograd, test_backward_mutation_metadata) {
  auto f = program([](const Tensor& a, const Tensor& b) {
    auto [x, y] = TransposesItsInput::apply(a, b);
    return x * y;
  });
  EXPECT_ERROR(verify_aot_autograd(f, {aot_leaf(ones({3, 3})), ones({3, 3})}),
               "input that had its metadata mutated in the backward");
}

struct DoublesItsGradient : autograd::Function<DoublesItsGradient> {
  static Tensor forward(Context&, const Tensor& x) { return x.clone(); }
  static std::vector<Tensor> backward(Context&, const std::vector<Tensor>& grads) {
    grads[0].mul_(2);
    return {grads[0].clone()};
  }
};

TEST(TestAOTAutograd, test_backward_mutation_on_grad_out) {
  auto f = [](const Tensor& a, const Tensor& b) { return DoublesItsGradient::apply(a * b); };
  EXPECT_ERROR(aot_function(f)(aot_leaf(ones({3, 3})), aot_leaf(ones({3, 3}))),
               "input to the backward that was mutated during the backward");
}

// A clone whose gradient zeroes the second argument, and is twice what it should be.
const Operator& clone_that_writes(const std::string& name) {
  return define_operator("_test::" + name + "(Tensor x, Tensor x1) -> Tensor",
                         {.kernel = [](const Tensor& x, const Tensor&) { return x.clone(); },
                          .meta = [](const Tensor& x, const Tensor&) { return spec_of(x); },
                          .vjp = {.saves = inputs(0, 1), .rule = [](const Vjp& v) {
                                    NoGrad no_grad;
                                    v.input(1).zero_();
                                    return Grads{v.grad() * 2, Tensor()};
                                  }}});
}

TEST(TestAOTAutograd, test_backward_mutation_forward_inputs) {
  const Operator& op = clone_that_writes("_clone");
  auto f = [&](const Tensor& x, const Tensor& x1) { return call(op, {x, x1}).to_tensor(); };
  Tensor leaf = aot_leaf(randn({3})), leaf2 = aot_leaf(leaf.detach().clone());
  Tensor x = leaf.clone(), x2 = leaf2.clone(), x1 = randn({3}), x12 = x1.clone();
  Tensor y = f(x, x1), y2 = aot_function(f)(x2, x12);
  y.sum().backward();
  y2.sum().backward();
  testing::expect_equal(x2.detach(), x.detach());
  testing::expect_equal(x12, x1);
  testing::expect_equal(x12, zeros({3}));
  testing::expect_equal(y2.detach(), y.detach());
  testing::expect_equal(leaf2.grad(), leaf.grad());
}

TEST(TestAOTAutograd, test_backward_mutation_forward_inputs_create_graph) {
  const Operator& op = clone_that_writes("_clone_create_graph");
  auto f = [&](const Tensor& x, const Tensor& x1) { return call(op, {x, x1}).to_tensor(); };
  Tensor x = aot_leaf(randn({3})), x1 = aot_leaf(randn({3}));
  Tensor y = aot_function(f)(x.clone(), x1.clone());
  EXPECT_ERROR(
      autograd::grad({y.sum()}, {x}, {}, {.create_graph = true}),
      "aot_autograd does not support input mutations with requires_grad in backward for create_graph=True");
}

}  // namespace
}  // namespace weft
