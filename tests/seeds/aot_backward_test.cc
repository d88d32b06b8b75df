// TestAOTAutograd: backward passes that write.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/verify_aot.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/function.h"
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
    verify_aot_autograd(f, {aot_leaf(ones({3, 3})), aot_leaf(ones({3, 3}), grad)}, {.test_mutation = true});
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

}  // namespace
}  // namespace weft
