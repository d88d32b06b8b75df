#include "weft/base/dtype.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <type_traits>

#include "support/expect_error.h"
#include "weft/base/device.h"

namespace weft {
namespace {

// What torch.result_type (PyTorch 2.13) answers for 1-D tensors; rows and columns in the enumeration's order.
constexpr const char* kPromotions[kDTypeCount] = {
    "b8 u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128",
    "u8 u8 i16 i16 i32 i64 f16 bf16 f32 f64 c64 c128",
    "i8 i16 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128",
    "i16 i16 i16 i16 i32 i64 f16 bf16 f32 f64 c64 c128",
    "i32 i32 i32 i32 i32 i64 f16 bf16 f32 f64 c64 c128",
    "i64 i64 i64 i64 i64 i64 f16 bf16 f32 f64 c64 c128",
    "f16 f16 f16 f16 f16 f16 f16 f32 f32 f64 c64 c128",
    "bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64 c64 c128",
    "f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64 c128",
    "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128",
    "c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 c64 c128",
    "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
};

DType dtype_at(int i) { return static_cast<DType>(i); }

TEST(DType, PromotionIsThatOfPyTorch) {
  for (int a = 0; a < kDTypeCount; ++a) {
    std::istringstream row(kPromotions[a]);
    for (int b = 0; b < kDTypeCount; ++b) {
      std::string expected;
      row >> expected;
      EXPECT_EQ(short_name(promote(dtype_at(a), dtype_at(b))), expected)
          << dtype_name(dtype_at(a)) << " with " << dtype_name(dtype_at(b));
    }
  }
}

TEST(DType, PromotionIsCommutativeAndIdempotent) {
  for (int a = 0; a < kDTypeCount; ++a) {
    EXPECT_EQ(promote(dtype_at(a), dtype_at(a)), dtype_at(a));
    for (int b = 0; b < kDTypeCount; ++b)
      EXPECT_EQ(promote(dtype_at(a), dtype_at(b)), promote(dtype_at(b), dtype_at(a)));
  }
}

TEST(DType, NamesReadBack) {
  for (int i = 0; i < kDTypeCount; ++i) EXPECT_EQ(dtype_from_name(dtype_name(dtype_at(i))), dtype_at(i));
  EXPECT_EQ(dtype_name(kBFloat16), "bfloat16");
  EXPECT_EQ(short_name(kComplex128), "c128");
  EXPECT_EQ(dtype_from_name("float"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
}

TEST(DType, ItemSizesAreThoseOfTheCppTypes) {
  for (int i = 0; i < kDTypeCount; ++i) {
    visit_dtype(dtype_at(i), [&]<typename T>() {
      EXPECT_EQ(item_size(dtype_at(i)), static_cast<int64_t>(sizeof(T)));
      EXPECT_EQ(dtype_of<T>, dtype_at(i));
    });
  }
}

TEST(DType, CategoriesPartitionTheTypes) {
  for (int i = 0; i < kDTypeCount; ++i) {
    DType t = dtype_at(i);
    EXPECT_EQ((t == kBool) + is_integral(t) + is_floating(t) + is_complex(t), 1) << dtype_name(t);
    EXPECT_EQ(is_differentiable(t), is_floating(t) || is_complex(t)) << dtype_name(t);
  }
}

TEST(DType, RealAndComplexCounterparts) {
  EXPECT_EQ(real_type(kComplex64), kFloat32);
  EXPECT_EQ(real_type(kComplex128), kFloat64);
  EXPECT_EQ(real_type(kInt8), kInt8);
  EXPECT_EQ(complex_type(kFloat16), kComplex64);
  EXPECT_EQ(complex_type(kBFloat16), kComplex64);
  EXPECT_EQ(complex_type(kFloat32), kComplex64);
  EXPECT_EQ(complex_type(kFloat64), kComplex128);
  EXPECT_EQ(complex_type(kComplex64), kComplex64);
  EXPECT_EQ(complex_type(kComplex128), kComplex128);
}

TEST(Device, ParsesAndPrints) {
  EXPECT_EQ(Device("cpu"), kCpu);
  EXPECT_EQ(Device("meta"), kMeta);
  EXPECT_EQ(Device("sim"), Device(DeviceType::kSim, 0));
  EXPECT_EQ(Device("sim:3"), Device(DeviceType::kSim, 3));
  for (const char* text : {"cpu", "meta", "sim:0", "sim:3", "sim:127"})
    EXPECT_EQ(Device(std::string_view(text)).to_string(), text);
}

TEST(Device, RefusesOtherTextWithTheChoices) {
  for (const char* text :
       {"", "gpu", "cuda:0", "sim:", "sim:-1", "sim:128", "sim:1x", "sim:99999999999", "CPU", "cpu "})
    EXPECT_USER_ERROR(Device(std::string_view(text)),
                      fmt::format("\"{}\" is not a device; expected cpu, meta, sim, or sim:N", text));
}

TEST(Device, MemoryFormatsAreNamedAsInPyTorch) {
  EXPECT_EQ(memory_format_name(MemoryFormat::kContiguous), "contiguous_format");
  EXPECT_EQ(memory_format_name(MemoryFormat::kPreserve), "preserve_format");
  EXPECT_EQ(memory_format_name(MemoryFormat::kChannelsLast), "channels_last");
  EXPECT_EQ(memory_format_name(MemoryFormat::kChannelsLast3d), "channels_last_3d");
}

}  // namespace
}  // namespace weft
