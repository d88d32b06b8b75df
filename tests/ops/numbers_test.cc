// What numbers operators take for tensors of a type, and what they make of special ones: as PyTorch has it.
#include <cmath>

#include "ops/table_support.h"
#include "support/expect_error.h"
#include "weft/core/from_data.h"
#include "weft/ops/operators.h"

namespace weft::table {
namespace {

constexpr double kInfinity = INFINITY;
constexpr const char* kOverflow = "without overflow";

std::vector<double> values_of(const Tensor& tensor) {
  Tensor wide = contiguous(tensor.to(kFloat64)).view({-1});
  return {wide.data<double>(), wide.data<double>() + wide.plain_numel()};
}
using ::testing::Each;
using ::testing::ElementsAre;

// --- range -----------------------------------------------------------------------------------------------

TEST(Range, OfAFillIsThatOfTheType) {
  EXPECT_ERROR(full({2}, 300, kUInt8), "value cannot be converted to type uint8_t without overflow");
  EXPECT_ERROR(full({2}, -1.0, kUInt8), kOverflow);
  EXPECT_THAT(values_of(full({2}, -1, kUInt8)), Each(255));
  EXPECT_ERROR(full({2}, kInfinity, kInt64), "type int64_t without overflow");
  EXPECT_ERROR(full({2}, NAN, kInt32), "type int without overflow");
  EXPECT_ERROR(full({2}, 1e39, kFloat32), "type float without overflow");
  EXPECT_ERROR(full({2}, 70000, kFloat16), "type c10::Half without overflow");
  EXPECT_THAT(values_of(full({1}, 70000, kFloat16)), Each(kInfinity));
  EXPECT_THAT(values_of(full({2}, kInfinity, kFloat16)), Each(kInfinity));
  EXPECT_ERROR(full({2}, Complex<double>(2, 1), kFloat32), kOverflow);
  EXPECT_THAT(values_of(full({2}, Complex<double>(2, 0), kFloat32)), Each(2));
  EXPECT_THAT(values_of(full({2}, Complex<double>(0, 1), kBool)), Each(1));
  EXPECT_THAT(values_of(full({2}, NAN, kBool)), Each(1));
  EXPECT_ERROR(full_like(zeros({2}, kInt8), -200), kOverflow);
  EXPECT_ERROR(scalar_tensor(300, kUInt8), kOverflow);
  Tensor bytes = zeros({2}, kUInt8);
  EXPECT_ERROR(fill_(bytes, 256), kOverflow);
  EXPECT_ERROR(fill_(empty({0}, kUInt8), 256), kOverflow);
  EXPECT_ERROR(full_out(bytes, {2}, 256), kOverflow);
  EXPECT_THAT(values_of(fill_(bytes, 255)), Each(255));
}

TEST(Range, OfMaskedFill) {
  Tensor mask = ones({2}, kBool), bytes = zeros({2}, kInt8);
  EXPECT_ERROR(masked_fill_(bytes, mask, 300), "type int8_t without overflow");
  EXPECT_ERROR(masked_fill(bytes, mask, full({}, 300)), kOverflow);
  EXPECT_THAT(values_of(masked_fill(bytes, mask, 2.5)), Each(2));
  Tensor real = full({}, Complex<double>(2, 0), kComplex64),
         other = full({}, Complex<double>(2, 1), kComplex64);
  EXPECT_THAT(values_of(masked_fill(zeros({2}), mask, real)), Each(2));
  EXPECT_ERROR(masked_fill(zeros({2}), mask, other), kOverflow);
  EXPECT_THAT(values_of(masked_fill(zeros({2}, kBool), mask, full({}, 0.5))), Each(1));
}

TEST(Range, OfIndexPutWithAMaskIsThatOfAFill) {
  Tensor mask = ones({3}, kBool);
  Tensor x = zeros({3, 2}, kInt64);
  index_put_(x, {mask}, ones({1}, kBool));
  EXPECT_THAT(values_of(x), Each(1));
  index_put_(x, {Tensor(), ones({2}, kBool)}, full({}, 2.5));
  EXPECT_THAT(values_of(x), Each(2));
  EXPECT_ERROR(index_put_(x, {mask}, full({}, kInfinity)), kOverflow);
  EXPECT_ERROR(index_put_(x, {zeros({3}, kInt64)}, ones({2}, kFloat32)), "dtypes match");
}

TEST(Range, OfNumbersThatAKernelComputesWith) {
  Tensor x = ones({2}, kInt8), y = ones({2});
  EXPECT_ERROR(add(x, x, -200), kOverflow);
  EXPECT_ERROR(sub(x, x, 300), kOverflow);
  EXPECT_ERROR(add(y, y, 1e39), kOverflow);
  EXPECT_ERROR(clamp(x, Scalar(300)), kOverflow);
  EXPECT_ERROR(pow(x, 300), kOverflow);
  EXPECT_ERROR(where(ones({2}, kBool), x, Scalar(300)), kOverflow);
  EXPECT_ERROR(scatter(x, 0, zeros({1}, kInt64), 300), kOverflow);
  EXPECT_ERROR(scatter(ones({2}, kInt64), 0, zeros({1}, kInt64), NAN), kOverflow);
  EXPECT_ERROR(index_add(x, 0, zeros({1}, kInt64), ones({1}, kInt8), 300), kOverflow);
  Tensor m = ones({2, 2}, kInt64);
  EXPECT_ERROR(addmm(m, m, m, 1, NAN), kOverflow);
  EXPECT_ERROR(addmm(ones({2, 2}), ones({2, 2}), ones({2, 2}), 1, Complex<double>(2, 1)), kOverflow);
  // Numbers beside tensors take part in promotion instead.
  EXPECT_THAT(values_of(add(x, 300)), Each(45));
}

TEST(Range, OfRandomIntegers) {
  EXPECT_ERROR(randint(300, {3}, kUInt8), "to - 1 is out of bounds for");
  EXPECT_ERROR(randint(-1, 5, {3}, kUInt8), "from is out of bounds for");
  EXPECT_ERROR(randint_like(zeros({2}, kBool), 10), "to - 1 is out of bounds for");
  EXPECT_ERROR(randint(70000, {3}, kFloat16), "out of bounds");
  EXPECT_ERROR(randn({2}, kFloat32, {}, {}, true), "pinned memory");
  EXPECT_ERROR(rand_like(ones({2}), kFloat32, {}, {}, true), "pinned memory");
  EXPECT_EQ(randint(256, {3}, kUInt8).dim(), 1);
  EXPECT_EQ(randint(2, {3}, kBool).dim(), 1);
  EXPECT_EQ(randint(-128, 128, {3}, kInt8).dim(), 1);
}

// --- in place --------------------------------------------------------------------------------------------

TEST(SharedElements, MayBeFilled) {
  auto spread = [] { return expand(zeros({1}), {3}); };
  EXPECT_THAT(values_of(fill_(spread(), 2)), Each(2));
  EXPECT_THAT(values_of(zero_(expand(ones({1}), {3}))), Each(0));
  Tensor target = spread();
  ones_out(target, {3});
  EXPECT_THAT(values_of(target), Each(1));
  full_out(target, {3}, 4);
  EXPECT_THAT(values_of(target), Each(4));
  Tensor first = from_data(std::vector<int64_t>{1, 0, 0}).to(kBool);
  EXPECT_THAT(values_of(masked_fill_(spread(), first, 2)), Each(2));
  EXPECT_THAT(values_of(masked_fill_(spread(), first, full({}, 3.0))), Each(3));
  EXPECT_THAT(values_of(index_put_(spread(), {first}, full({}, 5.0))), Each(5));
  EXPECT_THAT(values_of(index_put_(spread(), {from_data(std::vector<int64_t>{0, 1})}, full({2}, 6.0))),
              Each(6));
}

TEST(SharedElements, MayNotBeComputedOn) {
  Tensor spread = expand(zeros({1}), {3});
  EXPECT_ERROR(add_(spread, 1), "more than one element");
  EXPECT_ERROR(fill_(spread, full({}, 1.0)), "more than one element");
  EXPECT_ERROR(copy_(spread, ones({3})), "more than one element");
  EXPECT_ERROR(ones_like_out(spread, ones({3})), "more than one element");
}

TEST(InPlace, RefusesWhatTheTypeCannotHold) {
  Tensor z = ones({2}, kComplex64), truth = ones({2}, kBool);
  EXPECT_ERROR(abs_(z), "In-place abs is not supported for complex tensors.");
  EXPECT_ERROR(cumsum_(truth, 0), "\"cumsum_out_cpu\" not implemented for 'Bool'");
}

// --- special values --------------------------------------------------------------------------------------

TEST(Pow, OfAHalfIsARoot) {
  for (DType dtype : {kFloat32, kFloat64}) {
    // Enough elements for whole vectors and a rest.
    Tensor low = full({19}, -kInfinity, dtype), zero = full({19}, -0.0, dtype);
    EXPECT_THAT(values_of(pow(low, -0.5)), Each(::testing::IsNan()));
    EXPECT_THAT(values_of(pow(low, 0.5)), Each(::testing::IsNan()));
    EXPECT_THAT(values_of(pow(zero, -0.5)), Each(-kInfinity));
    EXPECT_THAT(values_of(pow(full({19}, 4, dtype), -0.5)), Each(0.5));
  }
  EXPECT_THAT(values_of(pow(full({19}, -kInfinity, kFloat16), 0.5)), Each(kInfinity));
  EXPECT_THAT(values_of(pow(full({19}, -0.0, kFloat16), -0.5)), Each(kInfinity));
}

std::vector<double> parts(const Tensor& z) { return values_of(view_as_real(z)); }
Tensor number(double re, double im) { return full({1}, Complex<double>(re, im), kComplex64); }

TEST(ComplexNumbers, KeepZerosBesideInfinities) {
  EXPECT_THAT(parts(tanh(number(kInfinity, kInfinity))), ElementsAre(1, 0));
  EXPECT_THAT(parts(sin(number(0, 100))), ElementsAre(0, kInfinity));
  EXPECT_THAT(parts(cos(number(0, 100))), ElementsAre(kInfinity, 0));
  EXPECT_THAT(parts(sin(number(kInfinity, -kInfinity))), ElementsAre(::testing::IsNan(), kInfinity));
  EXPECT_THAT(parts(cos(number(NAN, kInfinity))), ElementsAre(kInfinity, ::testing::IsNan()));
  EXPECT_THAT(parts(tanh(number(NAN, 0))), ElementsAre(::testing::IsNan(), 0));
  EXPECT_THAT(parts(tanh(number(100, kInfinity))), ElementsAre(::testing::IsNan(), ::testing::IsNan()));
  EXPECT_THAT(parts(exp(number(100, kInfinity))), ElementsAre(::testing::IsNan(), ::testing::IsNan()));
  EXPECT_THAT(parts(pow(number(kInfinity, 0), 1)), ElementsAre(kInfinity, 0));
  EXPECT_THAT(parts(number(1, 2) / number(kInfinity, 0)), ElementsAre(0, 0));
  EXPECT_THAT(parts(number(1, 2) / number(kInfinity, kInfinity)),
              ElementsAre(::testing::IsNan(), ::testing::IsNan()));
  EXPECT_THAT(parts(number(1, 2) / number(0, 2)), ElementsAre(1, -0.5));
  EXPECT_THAT(parts(rsqrt(number(0, kInfinity))), ElementsAre(::testing::IsNan(), ::testing::IsNan()));
}

TEST(Topk, OfANumberIsTheNumber) {
  auto [values, indices] = topk(full({}, 5.0), 0);
  EXPECT_THAT(values_of(values), ElementsAre(5));
  EXPECT_THAT(values_of(indices), ElementsAre(0));
}

// --- powers ----------------------------------------------------------------------------------------------

TEST(ComplexPowers, OfZeroToThePowerOfZeroAreNotNumbers) {
  for (DType dtype : {kComplex64, kComplex128}) {
    Tensor zero = zeros({3}, dtype), both = view_as_real(pow(zero, zero));
    EXPECT_TRUE(both.ne(both).all().item().to_bool());
    EXPECT_TRUE(view_as_real(pow(Scalar(0), zero)).isnan().all().item().to_bool());
    EXPECT_TRUE(pow(zero + 2, zero).eq(1).all().item().to_bool());
    EXPECT_TRUE(pow(zero, zero + 2).eq(0).all().item().to_bool());
    // An exponent that is a number asks nothing of the base.
    EXPECT_TRUE(pow(zero, 0).eq(1).all().item().to_bool());
    EXPECT_TRUE(pow(zero, Complex<double>(0, 0)).eq(1).all().item().to_bool());
  }
}

}  // namespace
}  // namespace weft::table
