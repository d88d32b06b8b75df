#include "weft/base/numbers.h"

#include <gtest/gtest.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace weft {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

// The value of a 16-bit pattern by its definition: `mantissa_bits` of fraction, the given exponent bias.
double value_of(uint16_t bits, int mantissa_bits, int bias) {
  int exponent_bits = 15 - mantissa_bits;
  int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  int fraction = bits & ((1 << mantissa_bits) - 1);
  double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa_bits);
  return sign * std::ldexp(fraction + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

template <typename T>
struct Facts;
template <>
struct Facts<Half> {
  static constexpr int mantissa_bits = 10, bias = 15;
  static constexpr uint16_t infinity = 0x7c00;
};
template <>
struct Facts<BFloat16> {
  static constexpr int mantissa_bits = 7, bias = 127;
  static constexpr uint16_t infinity = 0x7f80;
};

template <typename T>
class SixteenBits : public ::testing::Test {};
using SixteenBitTypes = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(SixteenBits, SixteenBitTypes);

TYPED_TEST(SixteenBits, EveryPatternHasItsValueAndReadsBack) {
  using F = Facts<TypeParam>;
  for (uint32_t pattern = 0; pattern < 65536; ++pattern) {
    uint16_t bits = static_cast<uint16_t>(pattern);
    float value = TypeParam::from_bits(bits);
    double expected = value_of(bits, F::mantissa_bits, F::bias);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << pattern;
      ASSERT_TRUE(std::isnan(float(TypeParam(value)))) << pattern;
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), expected) << pattern;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << pattern;
    ASSERT_EQ(TypeParam(value).bits, bits) << pattern;
  }
}

// Between every two neighbours: the middle goes to the even one, its float neighbours to the nearer one.
TYPED_TEST(SixteenBits, RoundsToNearestAndTiesToEven) {
  using F = Facts<TypeParam>;
  for (uint32_t low = 0; low < F::infinity; ++low) {
    double a = value_of(static_cast<uint16_t>(low), F::mantissa_bits, F::bias);
    // Past the largest finite value the neighbour is what the next exponent would hold.
    uint16_t high = static_cast<uint16_t>(low + 1);
    double b = high == F::infinity
                   ? a + (a - value_of(static_cast<uint16_t>(low - 1), F::mantissa_bits, F::bias))
                   : value_of(high, F::mantissa_bits, F::bias);
    float middle = static_cast<float>((a + b) / 2);
    ASSERT_EQ(static_cast<double>(middle), (a + b) / 2) << "the middle is a float";
    uint16_t even = low % 2 == 0 ? static_cast<uint16_t>(low) : high;
    for (uint16_t sign : {0, 0x8000}) {
      float s = sign ? -1.0f : 1.0f;
      ASSERT_EQ(TypeParam(s * middle).bits, sign | even) << low;
      ASSERT_EQ(TypeParam(s * std::nextafter(middle, 0.0f)).bits, sign | low) << low;
      ASSERT_EQ(TypeParam(s * std::nextafter(middle, kInf)).bits, sign | high) << low;
    }
  }
}

TYPED_TEST(SixteenBits, ConversionOfFloatsIsMonotone) {
  float previous = -kInf;
  // A stride coprime to the mantissa's length, so that all rounding positions are met.
  for (uint64_t step = 0; step <= 2ull * 0x7f800000; step += 9973) {
    int64_t ordered = static_cast<int64_t>(step) - 0x7f800000;
    float x =
        ordered < 0 ? -float_of(static_cast<uint32_t>(-ordered)) : float_of(static_cast<uint32_t>(ordered));
    float rounded = TypeParam(x);
    ASSERT_LE(previous, rounded) << "at " << x;
    previous = rounded;
  }
}

TEST(Half, KnownValues) {
  EXPECT_EQ(Half(1.0f).bits, 0x3c00);
  EXPECT_EQ(Half(-2.0f).bits, 0xc000);
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65519.996f).bits, 0x7bff) << "below the middle of the largest value and 65536";
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(1e30f).bits, 0x7c00);
  EXPECT_EQ(Half(0x1p-24f).bits, 1);
  EXPECT_EQ(Half(0x1p-25f).bits, 0) << "a tie goes to even zero";
  EXPECT_EQ(Half(-0.0f).bits, 0x8000);
  EXPECT_EQ(Half(0.1f).bits, 0x2e66);
  static_assert(Half(1.5f).bits == 0x3e00, "usable in constants");
}

TEST(BFloat16, KnownValues) {
  EXPECT_EQ(BFloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(BFloat16(0.1f).bits, 0x3dcd);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80) << "rounds to infinity";
  EXPECT_EQ(BFloat16(-0.0f).bits, 0x8000);
  EXPECT_EQ(BFloat16(float_of(0xffffffff)).bits, 0x7fc0) << "a NaN never rounds to a number";
  EXPECT_EQ(BFloat16(float_of(0x7f800001)).bits, 0x7fc0);
  static_assert(BFloat16(1.5f).bits == 0x3fc0, "usable in constants");
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) uint16_t hardware_half(float value) {
  return static_cast<uint16_t>(_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(value), 0)));
}
__attribute__((target("f16c"))) float hardware_float(uint16_t bits) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

// Vector kernels use the F16C instructions; scalar tails must give the same bits, NaNs included.
TEST(Half, HasTheBitsOfTheHardwareConversions) {
  if (!__builtin_cpu_supports("f16c")) GTEST_SKIP() << "this CPU has no F16C";
  for (uint32_t pattern = 0; pattern < 65536; ++pattern) {
    uint16_t bits = static_cast<uint16_t>(pattern);
    ASSERT_EQ(bits_of(Half::to_float(bits)), bits_of(hardware_float(bits))) << pattern;
  }
  for (uint64_t step = 0; step <= 0xffffffff; step += 997) {
    float value = float_of(static_cast<uint32_t>(step));
    ASSERT_EQ(Half::from_float(value), hardware_half(value)) << "float bits " << step;
  }
}
#endif

TEST(Complex, ArithmeticIsThatOfPairs) {
  using C = Complex<double>;
  EXPECT_EQ(C(1, 2) + C(3, -5), C(4, -3));
  EXPECT_EQ(C(1, 2) - C(3, -5), C(-2, 7));
  EXPECT_EQ(C(1, 2) * C(3, -5), C(13, 1));
  EXPECT_EQ(-C(1, -2), C(-1, 2));
  EXPECT_EQ(C(3), C(3, 0));
  EXPECT_EQ(Complex<float>(C(0.5, -0.25)), Complex<float>(0.5f, -0.25f));
  static_assert(sizeof(C) == 16 && std::is_trivially_copyable_v<C>);
}

}  // namespace
}  // namespace weft
