// Operators over functions that only run them: grad mode, autocast, associative scans.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "weft/autograd/autograd.h"
#include "weft/core/callable.h"
#include "weft/core/from_data.h"
#include "weft/dispatch/operator.h"
#include "weft/ops/functions.h"
#include "weft/ops/operators.h"

namespace weft {
namespace {

Value function(Value (*run)(Args)) { return Value(Ref<ValueObject>(make_closure(run))); }

TEST(Regions, GradModeIsThatOfTheRegion) {
  Tensor x = ones({2}).set_requires_grad();
  const Value twice = function([](Args args) { return Value::tuple({args[0].to_tensor() * 2}); });
  auto run = [&](bool enabled) {
    return call(operator_named("higher_order::wrap_with_set_grad_enabled"),
                {enabled, twice, Value::list({x})})
        .elements()[0]
        .to_tensor();
  };
  EXPECT_FALSE(run(false).requires_grad());
  EXPECT_TRUE(run(true).requires_grad());
  NoGrad no_grad;
  EXPECT_TRUE(run(true).requires_grad());
  EXPECT_FALSE(is_grad_enabled());
  const Value fails = function([](Args) -> Value { fail("as it should"); });
  EXPECT_ERROR(
      call(operator_named("higher_order::wrap_with_set_grad_enabled"), {true, fails, Value::list({})}),
      "as it should");
  EXPECT_FALSE(is_grad_enabled());
}

TEST(Regions, AutocastIsThatOfTheRegion) {
  const Value product =
      function([](Args args) { return Value::tuple({matmul(args[0].to_tensor(), args[0].to_tensor())}); });
  auto run = [&](bool enabled) {
    return call(operator_named("higher_order::wrap_with_autocast"),
                {"cpu", kBFloat16, enabled, Value(), product, Value::list({ones({2, 2})})})
        .elements()[0]
        .to_tensor()
        .dtype();
  };
  EXPECT_EQ(run(true), kBFloat16);
  EXPECT_EQ(run(false), kFloat32);
}

TEST(Regions, AnAssociativeScanCombinesRows) {
  const Value combine = function([](Args args) {
    return Value::tuple({args[0].to_tensor() * args[2].to_tensor(),
                         args[1].to_tensor() * args[2].to_tensor() + args[3].to_tensor()});
  });
  const Operator& scan = operator_named("higher_order::associative_scan");
  const Tensor a = from_data<float>({2, 3, 4}), b = from_data<float>({1, 1, 1});
  const ValueList results = call(scan, {combine, Value::list({a, b}), Value::list({})}).elements();
  EXPECT_TRUE(equal(results[0].to_tensor(), from_data<float>({2, 6, 24})));
  EXPECT_TRUE(equal(results[1].to_tensor(), from_data<float>({1, 4, 17})));
  EXPECT_EQ(call(scan, {combine, Value::list({zeros({0}), zeros({0})}), Value::list({})})
                .elements()[0]
                .to_tensor()
                .plain_numel(),
            0);
  EXPECT_ERROR(call(scan, {combine, Value::list({}), Value::list({})}),
               "expected tensors whose rows it goes through");
}

}  // namespace
}  // namespace weft
