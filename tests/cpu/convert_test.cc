// Conversions between all pairs of types.
#include <gtest/gtest.h>

#include "ops/cpu/convert.h"
#include "raw_array.h"

namespace weft::cpu::testing {
namespace {

RawArray converted(const RawArray& from, DType to) {
  RawArray result = RawArray::contiguous(to, from.sizes);
  char* pointers[] = {result.data(), const_cast<char*>(from.data())};
  converter(to, from.dtype)(from.count(), pointers, nullptr);
  return result;
}

TEST(Convert, AllPairsAgreeWithCasts) {
  for (IsaLevel isa : available_isas()) {
    UseIsa use(isa);
    for (DType from : all_dtypes())
      for (DType to : all_dtypes()) {
        std::vector<Number> values = special_values(is_complex(from) ? real_type(from) : from);
        for (size_t i = 0; is_complex(from) && i < values.size(); ++i)
          values[i] = Number(values[i].real(), values[values.size() - 1 - i].real());
        // Floats out of an integer's range have their own test.
        if (!is_integer_like(from) && is_integral(to))
          std::erase_if(values, [](Number x) { return !(std::fabs(x.real()) < 100) || x.real() < 0; });
        RawArray array = RawArray::contiguous(from, {static_cast<int64_t>(values.size())});
        for (int64_t i = 0; i < array.count(); ++i) array.set(i, values[i]);
        RawArray got = converted(array, to), want = RawArray::contiguous(to, array.sizes);
        for (int64_t i = 0; i < array.count(); ++i) {
          want.set(i, array.get(i));
          Number a = got.get(i), b = want.get(i);
          bool both_nan = std::isnan(a.real()) && std::isnan(b.real());
          EXPECT_TRUE(a == b || both_nan ||
                      (a.real() == b.real() && std::isnan(a.imag()) && std::isnan(b.imag())))
              << dtype_name(from) << " to " << dtype_name(to) << ": " << array.get(i) << " gave " << a;
        }
      }
  }
}

TEST(Convert, SixteenBitFloatsExhaustively) {
  for (IsaLevel isa : available_isas())
    for (DType t : {DType::kFloat16, DType::kBFloat16}) {
      UseIsa use(isa);
      RawArray all = RawArray::contiguous(t, {65536});
      for (int i = 0; i < 65536; ++i) {
        uint16_t bits = static_cast<uint16_t>(i);
        std::memcpy(all.data() + 2 * i, &bits, 2);
      }
      RawArray wide = converted(all, DType::kFloat32), back = converted(wide, t);
      for (int64_t i = 0; i < all.count(); ++i) {
        long double want = all.get(i).real(), got = wide.get(i).real();
        ASSERT_TRUE(want == got || (std::isnan(want) && std::isnan(got))) << i;
        if (!std::isnan(want)) {
          ASSERT_EQ(std::memcmp(all.data() + 2 * i, back.data() + 2 * i, 2), 0) << i;
        }
      }
    }
}

// Every rounding case of narrowing: all 16-bit neighbours, their midpoints, and a little to each side.
TEST(Convert, NarrowingRoundsToNearestEven) {
  for (IsaLevel isa : available_isas())
    for (DType t : {DType::kFloat16, DType::kBFloat16}) {
      UseIsa use(isa);
      std::vector<float> values;
      for (uint32_t i = 0; i < 65536; ++i) {
        float x = t == DType::kFloat16 ? Half::to_float(static_cast<uint16_t>(i))
                                       : static_cast<float>(BFloat16::from_bits(static_cast<uint16_t>(i)));
        uint32_t bits = std::bit_cast<uint32_t>(x);
        uint32_t half = t == DType::kFloat16 ? 0x1000u : 0x8000u;
        for (uint32_t step : {0u, half - 1, half, half + 1})
          values.push_back(std::bit_cast<float>(bits + step));
      }
      RawArray wide = RawArray::contiguous(DType::kFloat32, {static_cast<int64_t>(values.size())});
      std::memcpy(wide.data(), values.data(), values.size() * 4);
      RawArray narrow = converted(wide, t);
      for (size_t i = 0; i < values.size(); ++i) {
        uint16_t got;
        std::memcpy(&got, narrow.data() + 2 * i, 2);
        uint16_t want = t == DType::kFloat16 ? Half::from_float(values[i]) : BFloat16::from_float(values[i]);
        ASSERT_EQ(got, want) << values[i];
      }
    }
}

TEST(Convert, FloatsOutOfRangeDoWhatX86Does) {
  constexpr double inf = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  for (IsaLevel isa : available_isas())
    for (DType from : {DType::kFloat32, DType::kFloat64}) {
      UseIsa use(isa);
      for (double x : {nan, inf, -inf, 1e20, -1e20}) {
        RawArray one = RawArray::contiguous(from, {9});
        for (int i = 0; i < 9; ++i) one.set(i, x);
        for (int i : {0, 8}) {
          EXPECT_EQ(converted(one, DType::kUInt8).get(i), Number(0));
          EXPECT_EQ(converted(one, DType::kInt8).get(i), Number(0));
          EXPECT_EQ(converted(one, DType::kInt32).get(i), Number(-0x1p31L));
          EXPECT_EQ(converted(one, DType::kInt64).get(i), Number(-0x1p63L));
        }
      }
      RawArray some = RawArray::contiguous(from, {4});
      some.set(0, 300), some.set(1, -1.5L), some.set(2, 0x1p40L), some.set(3, -0x1p40L);
      EXPECT_EQ(converted(some, DType::kUInt8).get(0), Number(44));
      EXPECT_EQ(converted(some, DType::kInt8).get(0), Number(44));
      EXPECT_EQ(converted(some, DType::kUInt8).get(1), Number(255));
      EXPECT_EQ(converted(some, DType::kInt64).get(2), Number(0x1p40L));
      EXPECT_EQ(converted(some, DType::kInt64).get(3), Number(-0x1p40L));
    }
}

TEST(Convert, WholeNumbersBeyond32Bits) {
  for (IsaLevel isa : available_isas()) {
    UseIsa use(isa);
    for (long double x : {0x1p51L - 1, 0x1p51L, 0x1p53L + 2, -0x1p62L, 1e15L, -123456789012.0L}) {
      RawArray one = RawArray::contiguous(DType::kFloat64, {4});
      for (int i = 0; i < 4; ++i) one.set(i, x);
      EXPECT_EQ(converted(one, DType::kInt64).get(0), Number(x));
    }
  }
}

}  // namespace
}  // namespace weft::cpu::testing
