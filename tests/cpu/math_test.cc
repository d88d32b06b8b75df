// The accuracy of our own single-precision functions, over floats of every magnitude.
#include <gmock/gmock.h>
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

std::vector<float> results_of(const PointwiseKernel& kernel, const std::vector<float>& inputs) {
  GuardedVector<float> values(inputs.begin(), inputs.end()), results(values.size());
  const int64_t sizes[] = {static_cast<int64_t>(values.size())}, strides[] = {1};
  Operand operands[] = {{reinterpret_cast<char*>(results.data()), DType::kFloat32, strides},
                        {reinterpret_cast<char*>(values.data()), DType::kFloat32, strides}};
  run_strided(kernel, DType::kFloat32, operands, sizes);
  return {results.begin(), results.end()};
}

// The worst error over every 997th float, both signs.
double worst(const PointwiseKernel& kernel, long double (*exact)(long double), float limit = INFINITY) {
  std::vector<float> values;
  for (uint64_t bits = 0; bits < 0x100000000u; bits += 997) {
    float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!std::isnan(x) && std::fabs(x) <= limit) values.push_back(x);
  }
  const std::vector<float> results = results_of(kernel, values);
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
long double exact_gelu(long double x) { return x * 0.5L * std::erfc(-x * std::sqrt(0.5L)); }
TEST_P(Accuracy, OfGelu) {
  UseIsa use(GetParam());
  // By one formula for all numbers, the error grows with x * x in the negative tail.
  EXPECT_LE(worst(kGelu, exact_gelu, 4), GetParam() == IsaLevel::kAvx512 ? 2.5 : 16);
}
// Around the ends of the intervals of AVX-512's table, and of the table itself, which begins at -4.03.
TEST_P(Accuracy, OfGeluBetweenItsIntervals) {
  UseIsa use(GetParam());
  constexpr float kWidth = 0.30078125f;
  std::vector<float> values;
  for (int interval = -14; interval <= 18; ++interval)
    for (float end : {(interval + 0.5f) * kWidth, (interval + 0.6f) * kWidth})
      for (float x : {std::nextafter(end, -9.0f), end, std::nextafter(end, 9.0f)}) values.push_back(x);
  for (float x = 5.2f; x < 5.6f; x += 0.01f) values.push_back(x);
  const std::vector<float> results = results_of(kGelu, values);
  for (size_t i = 0; i < values.size(); ++i) {
    const bool is_looked_up = GetParam() == IsaLevel::kAvx512 && values[i] > -4.03f;
    EXPECT_LE(ulps(results[i], exact_gelu(values[i])), is_looked_up ? 2.5 : 16) << values[i];
  }
}
TEST_P(Accuracy, OfTanhAtItsEnds) {
  UseIsa use(GetParam());
  const std::vector<float> large = {9.02f, 9.1f, 9.3f, 200, 3e38f, INFINITY},
                           small = {0, 1e-45f, 1e-38f, 1e-20f, 1e-5f, 1e-4f};
  EXPECT_THAT(results_of(kTanh, large), ::testing::Each(1));
  EXPECT_EQ(results_of(kTanh, small), small);
  for (float x : results_of(kTanh, {-0.0f, -1e-45f, -9.5f, -INFINITY})) EXPECT_TRUE(std::signbit(x));
  EXPECT_TRUE(std::signbit(results_of(kErf, {-0.0f})[0]));
  EXPECT_TRUE(std::isnan(results_of(kTanh, {NAN})[0]));
}
TEST_P(Accuracy, OfGeluAtItsEnds) {
  UseIsa use(GetParam());
  const std::vector<float> large = {5.5f, 6, 20, 1e30f};
  EXPECT_EQ(results_of(kGelu, large), large);
  EXPECT_THAT(results_of(kGelu, {0, -20, -1e10f, -3e38f}), ::testing::Each(0));
  EXPECT_TRUE(std::isnan(results_of(kGelu, {NAN})[0]));
  EXPECT_EQ(results_of(kGelu, {INFINITY})[0], INFINITY);
  // Below the table, by the formula.
  EXPECT_NEAR(results_of(kGelu, {-12})[0] / -2.1317780e-32, 1, 1e-4);
}
// An element's result is its own: not a matter of where in a pack it is, nor of what is beside it.
TEST_P(Accuracy, IsTheSameBesideOtherNumbers) {
  UseIsa use(GetParam());
  std::vector<float> values;
  for (int i = 0; i < 999; ++i) values.push_back(i % 7 == 0 ? -4 - 0.01f * i : 0.012f * i - 5);
  for (const PointwiseKernel* kernel : {&kTanh, &kGelu, &kErf, &kExp, &kSigmoid}) {
    const std::vector<float> together = results_of(*kernel, values);
    for (size_t i = 0; i < values.size(); ++i) {
      const float alone = results_of(*kernel, {values[i]})[0];
      EXPECT_EQ(std::bit_cast<uint32_t>(together[i]), std::bit_cast<uint32_t>(alone))
          << kernel->name << values[i];
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Isas, Accuracy, ::testing::ValuesIn(available_isas()),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace weft::cpu::testing
