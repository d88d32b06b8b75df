// The accuracy of our own single-precision functions, over floats of every magnitude.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "ops/cpu/pointwise_kernels.h"
#include "raw_array.h"

namespace weft::cpu::testing {
namespace {

// The error in units of the last place of the exact result; below the normal numbers, of the smallest.
double ulps(float got, long double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  if (std::fabs(want) > 3.4028235e38L) return std::isinf(got) || std::fabs(got) > 3.4e38f ? 0 : 1e9;
  int exponent = want == 0 ? -126 : std::max(-126, std::ilogb(want));
  return static_cast<double>(std::fabs(got - want) / std::ldexp(1.0L, exponent - 23));
}

// The worst error over every 997th float, both signs.
double worst(const PointwiseKernel& kernel, long double (*exact)(long double), float limit = INFINITY) {
  std::vector<float> values;
  for (uint64_t bits = 0; bits < 0x100000000u; bits += 997) {
    float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!std::isnan(x) && std::fabs(x) <= limit) values.push_back(x);
  }
  std::vector<float> results(values.size());
  const int64_t sizes[] = {static_cast<int64_t>(values.size())}, strides[] = {1};
  Operand operands[] = {{reinterpret_cast<char*>(results.data()), DType::kFloat32, strides},
                        {reinterpret_cast<char*>(values.data()), DType::kFloat32, strides}};
  run_pointwise(kernel, DType::kFloat32, operands, sizes);
  double most = 0;
  float at = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    double error = ulps(results[i], exact(values[i]));
    if (error > most) most = error, at = values[i];
  }
  ::testing::Test::RecordProperty(kernel.name, std::to_string(most));
  std::printf("%s: at most %.2f ulp (x = %g)\n", kernel.name, most, at);
  return most;
}

class Accuracy : public ::testing::TestWithParam<IsaLevel> {};

TEST_P(Accuracy, OfExp) {
  UseIsa use(GetParam());
  EXPECT_LE(worst(kExp, std::exp), 1.1);
}
TEST_P(Accuracy, OfTanh) {
  UseIsa use(GetParam());
  EXPECT_LE(worst(kTanh, std::tanh), 1.6);
}
TEST_P(Accuracy, OfErf) {
  UseIsa use(GetParam());
  EXPECT_LE(worst(kErf, std::erf), 1.5);
}
TEST_P(Accuracy, OfSigmoid) {
  UseIsa use(GetParam());
  // Where exp overflows the result is 0, not a subnormal number.
  EXPECT_LE(worst(kSigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }, 87), 2.6);
}
TEST_P(Accuracy, OfGelu) {
  UseIsa use(GetParam());
  // Far in the negative tail the error grows with x * x; the value is below 1e-7 there.
  EXPECT_LE(worst(kGelu, [](long double x) { return x * 0.5L * std::erfc(-x * std::sqrt(0.5L)); }, 4), 16);
}
INSTANTIATE_TEST_SUITE_P(Isas, Accuracy, ::testing::ValuesIn(available_isas()),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace weft::cpu::testing
