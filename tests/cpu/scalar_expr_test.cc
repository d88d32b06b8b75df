// The formula of a functor says what its kernel does.
#include <gtest/gtest.h>

#include <cstring>

#include "ops/cpu/evaluate.h"
#include "ops/cpu/pack_baseline.h"
#include "ops/cpu/pointwise_kernels.h"
#include "ops/scalar/activation.h"
#include "ops/scalar/arithmetic.h"
#include "ops/scalar/scalar_expr.h"
#include "raw_array.h"
#include "weft/base/error.h"

namespace weft::cpu::testing {
namespace {

using scalar::Part;
using scalar::ScalarExpr;
using scalar::ScalarFunction;

TEST(ScalarExpr, Prints) {
  EXPECT_EQ(kAddAlpha.build(DType::kFloat32).outputs[0].to_string(), "add(x0, mul(p0, x1))");
  EXPECT_EQ(kRelu.build(DType::kInt32).outputs[0].to_string(), "where(lt(x0, 0), 0, x0)");
  EXPECT_EQ(kWhere.build(DType::kFloat64).outputs[0].to_string(), "where(x0, x1, x2)");
  EXPECT_EQ(kGelu.build(DType::kFloat32).outputs[0].to_string(), "mul(x0, normal_cdf(x0))");
}

TEST(ScalarExpr, HalfTypesComputeInSinglePrecision) {
  EXPECT_EQ(kAddAlpha.build(DType::kFloat16).outputs[0].to_string(), "f16(add(f32(x0), mul(p0, f32(x1))))");
  EXPECT_EQ(kGt.build(DType::kBFloat16).outputs[0].to_string(), "gt(f32(x0), f32(x1))");
  EXPECT_EQ(kDivTruncHalf.build(DType::kFloat16).outputs[0].to_string(),
            "f16(trunc(f32(f16(div(f32(x0), f32(x1))))))");
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
  EXPECT_EQ(kDivFloor.role, KernelRole::kDivides);
  EXPECT_EQ(kDiv.role, KernelRole::kPlain);
}

TEST(ScalarExpr, SharedPartsAreListedOnce) {
  ScalarFunction f = kSiluBackward.build(DType::kFloat32);
  int sigmoids = 0;
  for (const scalar::ScalarNode* node : scalar::topological_order(f.outputs))
    sigmoids += node->op == scalar::ScalarOp::k_sigmoid;
  EXPECT_EQ(sigmoids, 1);
}

TEST(ScalarExpr, RefusesWhatTheKernelRefuses) { EXPECT_THROW(kSub.build(DType::kBool), UnsupportedError); }

template <typename T>
T value_of(const ScalarExpr& expr) {
  std::vector<char> bytes = evaluate({&expr, 1}, 1, {})[0];
  T value;
  EXPECT_EQ(bytes.size(), sizeof(T));
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

TEST(ScalarExpr, ConstantsKeepEveryBit) {
  constexpr int64_t kOdd = (int64_t{1} << 62) + 1;  // no double is this number
  ScalarExpr big = ScalarExpr::constant(kOdd, DType::kInt64);
  EXPECT_EQ(big.to_string(), "4611686018427387905");
  EXPECT_EQ(value_of<int64_t>(big), kOdd);
  EXPECT_EQ(value_of<uint8_t>(ScalarExpr::constant(int64_t{-1}, DType::kUInt8)), 255);
  EXPECT_EQ(value_of<float>(ScalarExpr::constant(0.1, DType::kFloat32)), 0.1F);
  EXPECT_EQ(value_of<double>(ScalarExpr::constant(0.1, DType::kFloat64)), 0.1);
}

TEST(ScalarExpr, ConvertsAndShifts) {
  ScalarExpr x = ScalarExpr::constant(int64_t{300}, DType::kInt64);
  EXPECT_EQ(value_of<uint8_t>(x.converted(DType::kUInt8)), 44);
  EXPECT_EQ(value_of<double>(x.converted(DType::kFloat64)), 300);
  EXPECT_EQ(x.converted(DType::kFloat32).to_string(), "f32(300)");
  using I8 = scalar::Expr<DType::kInt8>;
  using U8 = scalar::Expr<DType::kUInt8>;
  EXPECT_EQ(value_of<int8_t>(shift_left(I8(3), I8(6)).expr), -64);
  EXPECT_EQ(value_of<int8_t>(shift_left(I8(3), I8(8)).expr), 0);
  EXPECT_EQ(value_of<int8_t>(shift_right(I8(-5), I8(1)).expr), -3);
  EXPECT_EQ(value_of<int8_t>(shift_right(I8(-5), I8(100)).expr), -1);
  EXPECT_EQ(value_of<uint8_t>(shift_right(U8(200), U8(9)).expr), 0);
  EXPECT_EQ(value_of<uint8_t>(shift_right(U8(200), U8(3)).expr), 25);
}

TEST(ScalarExpr, ExtremesOfTypes) {
  EXPECT_EQ(value_of<int16_t>(lowest(scalar::Expr<DType::kInt16>()).expr), INT16_MIN);
  EXPECT_EQ(value_of<int64_t>(highest(scalar::Expr<DType::kInt64>()).expr), INT64_MAX);
  EXPECT_EQ(value_of<uint8_t>(highest(scalar::Expr<DType::kUInt8>()).expr), 255);
  EXPECT_EQ(value_of<uint8_t>(highest(scalar::Expr<DType::kBool>()).expr), 1);
  EXPECT_EQ(value_of<float>(lowest(scalar::Expr<DType::kFloat32>()).expr), -INFINITY);
}

// NaNs have no one bit pattern: which operand's is kept is up to the compiler.
bool same_bits(const char* a, const char* b, DType dtype) {
  if (is_complex(dtype)) {
    DType part = dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
    return same_bits(a, b, part) && same_bits(a + item_size(part), b + item_size(part), part);
  }
  return visit_dtype(dtype, [&]<typename T>() {
    T x, y;
    std::memcpy(&x, a, sizeof(T));
    std::memcpy(&y, b, sizeof(T));
    return std::memcmp(a, b, sizeof(T)) == 0 || (!(x == x) && !(y == y));
  });
}

// Arrays of random and special values for a kernel's inputs.
std::vector<RawArray> inputs_for(const PointwiseKernel& kernel, DType t, int64_t n, std::mt19937& rng) {
  std::vector<RawArray> arrays;
  for (int k = 0; k < kernel.inputs; ++k) {
    arrays.push_back(RawArray::contiguous(kernel.input_dtype(t, k), {n}));
    std::vector<Number> special = special_values(arrays.back().dtype);
    for (int64_t i = 0; i < n; ++i) {
      const bool is_special = rng() % 4 == 0;
      Number x = is_special ? special[rng() % special.size()] : random_value(arrays.back().dtype, rng);
      if (kernel.role == KernelRole::kDivides && is_integral(t) && k == 1 && x == Number(0)) x = 3;
      arrays.back().set(i, x);
    }
  }
  return arrays;
}

// Every kernel, type and instruction set: the formula gives the kernel's bits.
TEST(ScalarExpr, EvaluatesToTheBitsOfTheKernel) {
  std::mt19937 rng(9);
  constexpr int64_t n = 203;
  for (IsaLevel isa : available_isas())
    for (const PointwiseKernel* kernel : pointwise_kernels())
      for (DType t : all_dtypes()) {
        if (!kernel->supports(t)) continue;
        UseIsa use(isa);
        SCOPED_TRACE(std::string(kernel->name) + " " + std::string(dtype_name(t)) + " " + isa_name(isa));
        const ScalarFunction f = kernel->build(t);
        std::vector<RawArray> arrays = inputs_for(*kernel, t, n, rng);
        RawArray out = RawArray::contiguous(kernel->result_dtype(t), {n});
        std::vector<Operand> operands = {out.operand()};
        std::vector<const char*> inputs, params;
        for (RawArray& array : arrays) {
          operands.push_back(array.operand());
          inputs.push_back(operands.back().data);
        }
        std::vector<ParamValue> values;
        alignas(16) char bytes[kMaxParams][16];
        for (int k = 0; k < kernel->params; ++k) {
          values.emplace_back(is_integer_like(t) ? ParamValue(k + 2) : ParamValue(0.75 * k - 0.6, 0.5));
          write_param(bytes[k], values.back(), param_dtype(t));
          params.push_back(bytes[k]);
        }
        run_strided(*kernel, t, operands, out.sizes, values);
        std::vector<std::vector<char>> got = evaluate(f.outputs, n, {inputs, params});
        const int64_t item = item_size(out.dtype) / static_cast<int64_t>(got.size());
        for (int64_t i = 0; i < n; ++i)
          for (size_t part = 0; part < got.size(); ++part) {
            const DType part_type = f.outputs[part].node().dtype;
            const char* want =
                operands[0].data + i * item_size(out.dtype) + static_cast<int64_t>(part) * item;
            ASSERT_TRUE(same_bits(want, got[part].data() + i * item, part_type))
                << "element " << i << ", part " << part << " of " << f.outputs[part].to_string();
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
  run_strided(kGelu, DType::kFloat32, operands, x.sizes);
  for (int64_t i = 0; i < x.count(); ++i)
    EXPECT_EQ(scalar::Gelu{}(One(static_cast<float>(x.get(i).real()))).v[0],
              static_cast<float>(y.get(i).real()));
  run_strided(kSin, DType::kFloat32, operands, x.sizes);
  for (int64_t i = 0; i < x.count(); ++i)
    EXPECT_EQ(sin(One(static_cast<float>(x.get(i).real()))).v[0], static_cast<float>(y.get(i).real()));
}

}  // namespace
}  // namespace weft::cpu::testing
