// The formula of a functor says what its kernel does.
#include <gtest/gtest.h>

#include "ops/cpu/pack_baseline.h"
#include "ops/cpu/pointwise_kernels.h"
#include "ops/scalar/activation.h"
#include "ops/scalar/arithmetic.h"
#include "ops/scalar/scalar_expr.h"
#include "raw_array.h"
#include "weft/base/error.h"

namespace weft::cpu::testing {
namespace {

using scalar::ScalarFunction;

TEST(ScalarExpr, Prints) {
  EXPECT_EQ(kAddAlpha.build(DType::kFloat32).outputs[0].to_string(), "add(x0, mul(p0, x1))");
  EXPECT_EQ(kRelu.build(DType::kInt32).outputs[0].to_string(), "where(lt(x0, 0), 0, x0)");
  EXPECT_EQ(kWhere.build(DType::kFloat64).outputs[0].to_string(), "where(x0, x1, x2)");
  EXPECT_EQ(kGelu.build(DType::kFloat32).outputs[0].to_string(), "mul(x0, normal_cdf(x0))");
}

TEST(ScalarExpr, ComplexIsPairs) {
  ScalarFunction f = kMul.build(DType::kComplex64);
  ASSERT_EQ(f.outputs.size(), 2u);
  EXPECT_EQ(f.outputs[0].to_string(), "sub(mul(x0.re, x1.re), mul(x0.im, x1.im))");
  EXPECT_EQ(kAbs.build(DType::kComplex64).outputs.size(), 1u);
}

TEST(ScalarExpr, DivisionHasAnErrorMask) {
  EXPECT_EQ(kDivFloor.build(DType::kInt32).error.to_string(), "eq(x1, 0)");
  EXPECT_FALSE(kDivFloor.build(DType::kFloat32).error);
}

TEST(ScalarExpr, SharedPartsAreListedOnce) {
  ScalarFunction f = kSiluBackward.build(DType::kFloat32);
  int sigmoids = 0;
  for (const scalar::ScalarNode* node : scalar::topological_order(f.outputs))
    sigmoids += node->op == scalar::ScalarOp::k_sigmoid;
  EXPECT_EQ(sigmoids, 1);
}

TEST(ScalarExpr, RefusesWhatTheKernelRefuses) { EXPECT_THROW(kSub.build(DType::kBool), UnsupportedError); }

// Every kernel and kind of number: the evaluated formula is the kernel's result.
TEST(ScalarExpr, EvaluatesToWhatTheKernelComputes) {
  std::mt19937 rng(9);
  for (const PointwiseKernel* kernel : pointwise_kernels())
    for (DType t : {DType::kBool, DType::kUInt8, DType::kInt64, DType::kFloat64, DType::kComplex128}) {
      if (!kernel->supports(t)) continue;
      ScalarFunction f = kernel->build(t);
      DType result = kernel->result_dtype(t);
      constexpr int64_t n = 60;
      std::vector<RawArray> arrays = {RawArray::contiguous(result, {n})};
      for (int k = 0; k < kernel->inputs; ++k) {
        bool mask = (kernel->mask_inputs >> k) & 1;
        arrays.push_back(RawArray::contiguous(mask ? DType::kBool : t, {n}));
        for (int64_t i = 0; i < n; ++i) {
          Number x = random_value(arrays.back().dtype, rng);
          // Small numbers: the evaluator works in double and does not wrap. No zero divisors.
          if (t == DType::kInt64 || t == DType::kUInt8)
            x = Number(1 + std::abs(static_cast<int>(x.real())) % 3);
          arrays.back().set(i, x);
        }
      }
      std::vector<Operand> operands;
      for (RawArray& array : arrays) operands.push_back(array.operand());
      std::vector<ParamValue> params(kernel->params, ParamValue(1));
      if (t == DType::kUInt8 && (kernel == &kSub || kernel == &kSubAlpha || kernel == &kNeg))
        continue;  // wrap
      run_pointwise(*kernel, t, operands, arrays[0].sizes, params);
      for (int64_t i = 0; i < n; ++i) {
        std::vector<double> inputs, uniform;
        for (int k = 0; k < kernel->inputs; ++k) {
          Number x = arrays[k + 1].get(i);
          inputs.push_back(static_cast<double>(x.real()));
          if (is_complex(t)) inputs.push_back(static_cast<double>(x.imag()));
        }
        // A mask among complex inputs is one number, not two.
        if (is_complex(t) && kernel->mask_inputs == 1) inputs[1] = 0, inputs[0] = inputs[0] != 0;
        for (int k = 0; k < kernel->params; ++k) {
          uniform.push_back(1);
          if (is_complex(t)) uniform.push_back(0);
        }
        Number got = arrays[0].get(i);
        double re = scalar::evaluate(f.outputs[0], inputs, uniform);
        double tolerance = is_integer_like(t) ? 0 : 1e-12 * (1 + std::abs(static_cast<double>(got.real())));
        if (!(std::isnan(re) && std::isnan(got.real()))) {
          ASSERT_NEAR(static_cast<double>(got.real()), re, tolerance) << kernel->name << " " << dtype_name(t);
        }
        if (f.outputs.size() > 1) {
          double im = scalar::evaluate(f.outputs[1], inputs, uniform);
          ASSERT_NEAR(static_cast<double>(got.imag()), im, 1e-12 * (1 + std::abs(im))) << kernel->name;
        }
      }
    }
}

// One lane: the functor on plain numbers gives the baseline kernel's bits.
TEST(ScalarExpr, PlainNumbersGiveTheBaselineKernelsBits) {
  using One = Pack<float, single::Isa>;
  UseIsa use(IsaLevel::kBaseline);
  std::mt19937 rng(10);
  RawArray x = RawArray::contiguous(DType::kFloat32, {200}), y = x;
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, random_value(x.dtype, rng));
  Operand operands[] = {y.operand(), x.operand()};
  run_pointwise(kGelu, DType::kFloat32, operands, x.sizes);
  for (int64_t i = 0; i < x.count(); ++i)
    EXPECT_EQ(scalar::Gelu{}(One(static_cast<float>(x.get(i).real()))).v[0],
              static_cast<float>(y.get(i).real()));
  run_pointwise(kSin, DType::kFloat32, operands, x.sizes);
  for (int64_t i = 0; i < x.count(); ++i)
    EXPECT_EQ(sin(One(static_cast<float>(x.get(i).real()))).v[0], static_cast<float>(y.get(i).real()));
}

}  // namespace
}  // namespace weft::cpu::testing
