// Division with a rounding mode in 16-bit floats: PyTorch rounds every step to 16 bits, except with one
// divisor for all elements.
#include <gtest/gtest.h>

#include "support/tensors.h"

namespace weft {
namespace {

using testing::values;

Tensor numbers(DType dtype, int64_t lowest, int64_t highest) {
  Tensor scale = pow(Scalar(2), randint(lowest, highest, {20000}).to(kFloat32));
  return (randn({20000}) * scale).to(dtype);
}

void expect_values(const Tensor& got, const Tensor& wanted) { EXPECT_EQ(values(got), values(wanted)); }

// Python's floor division by operators, each of which rounds its result.
Tensor floor_quotient(const Tensor& a, const Tensor& b) {
  Tensor mod = fmod(a, b), div = (a - mod) / b, quotient = a / b;
  div = where(mod.ne(0).logical_and(b.lt(0).ne(mod.lt(0))), div - 1, div);
  Tensor floored = floor(div);
  floored = where((div - floored).gt(0.5), floored + 1, floored);
  Tensor result = where(div.eq(0), quotient * 0, floored);
  return where(b.eq(0), quotient, result);
}

TEST(RoundedDivision, OfSixteenBitFloatsRoundsQuotientsFirst) {
  manual_seed(3);
  for (DType dtype : {kFloat16, kBFloat16}) {
    Tensor x = numbers(dtype, -6, 10), y = numbers(dtype, -6, 6);
    Tensor quotient = x / y;
    expect_values(div(x, y, "trunc"), where(quotient.lt(0), ceil(quotient), floor(quotient)));
    expect_values(div(x, y, "floor"), floor_quotient(x, y));
    expect_values(floor_divide(x, y), floor_quotient(x, y));
    EXPECT_FALSE(
        testing::close(div(x, y, "trunc"), div(x.to(kFloat32), y.to(kFloat32), "trunc").to(dtype), 0, 0));
  }
}

TEST(RoundedDivision, GivesPyTorchsNumbers) {
  auto half = [](std::vector<double> v) { return from_data(v).to(kFloat16); };
  Tensor x = half({22.84375, 6.19921875, -62.1875}),
         y = half({-0.040008544921875, 0.31005859375, -1.26953125});
  EXPECT_EQ(values(div(x, y, "trunc")), (std::vector<double>{-571, 20, 49}));
  x = half({45.34375, -78.3125, 100.5625});
  y = half({0.029998779296875, 0.01000213623046875, -0.04998779296875});
  EXPECT_EQ(values(div(x, y, "floor")), (std::vector<double>{1512, -7828, -2011}));
}

TEST(RoundedDivision, ByOneDivisorIsExactUntilTheEnd) {
  manual_seed(4);
  for (DType dtype : {kFloat16, kBFloat16}) {
    Tensor x = numbers(dtype, -6, 10), one = full({1}, 0.3, dtype), wide = x.to(kFloat32);
    for (const char* mode : {"trunc", "floor"}) {
      Tensor expected = div(wide, one.to(kFloat32), mode).to(dtype);
      expect_values(div(x, one, mode), expected);
      expect_values(div(x, one.squeeze(), mode), expected);
      expect_values(div(x, one.expand({20000}), mode), expected);
      expect_values(div(x, 0.3, mode), div(wide, 0.3, mode).to(dtype));
    }
  }
}

}  // namespace
}  // namespace weft
