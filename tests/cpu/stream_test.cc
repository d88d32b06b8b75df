// Results too large for the caches are written around them: the same values at the same offsets.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ops/cpu/pointwise_kernels.h"
#include "ops/cpu/stream_copy.h"

namespace weft::cpu {
namespace {

constexpr int64_t kLarge = kStreamBytes / 4 + 1003;

std::vector<float> numbers(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 8191);
  return values;
}
Operand operand(std::vector<float>& values, const int64_t* strides, int64_t offset = 0) {
  return {reinterpret_cast<char*>(values.data() + offset), DType::kFloat32, strides};
}

TEST(Stream, CopiesAnyBytesToAnyOffset) {
  std::vector<char> source(300), target(300);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i);
  for (int64_t offset : {0, 1, 15, 16, 17})
    for (int64_t bytes : {0, 1, 7, 16, 31, 64, 200}) {
      std::fill(target.begin(), target.end(), '\0');
      stream_copy(target.data() + offset, source.data() + 3, bytes);
      finish_streams();
      for (int64_t i = 0; i < bytes; ++i)
        ASSERT_EQ(target[static_cast<size_t>(offset + i)], source[static_cast<size_t>(3 + i)]);
      ASSERT_EQ(target[static_cast<size_t>(offset + bytes)], '\0');
    }
}

TEST(Stream, ArraysFromAnyElement) {
  std::vector<float> a = numbers(kLarge), b = numbers(kLarge), out(static_cast<size_t>(kLarge) + 2, -1.0f);
  const int64_t strides[] = {1}, sizes[] = {kLarge};
  Operand operands[] = {operand(out, strides, 1), operand(a, strides), operand(b, strides)};
  run_strided(kAdd, DType::kFloat32, operands, sizes);
  EXPECT_EQ(out.front(), -1.0f);
  EXPECT_EQ(out.back(), -1.0f);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(out[i + 1], 2 * a[i]) << i;
}

// Streamed as a whole, from an odd offset, against parts that are too small for it.
void expect_same_in_parts(const PointwiseKernel& kernel, DType type) {
  const DType result = kernel.result_dtype(type);
  const int64_t item = item_size(type), out_item = item_size(result), n = kStreamBytes / out_item + 1003;
  std::vector<char> in(static_cast<size_t>(n * item)), whole(static_cast<size_t>((n + 1) * out_item)),
      parts = whole;
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<char>(i * i % 61);
  const int64_t strides[] = {1};
  auto run = [&](std::vector<char>& out, int64_t begin, int64_t count) {
    const Operand input{in.data() + begin * item, type, strides};
    Operand operands[] = {{out.data() + (begin + 1) * out_item, result, strides}, input, input};
    const int64_t sizes[] = {count};
    run_strided(kernel, type, operands, sizes);
  };
  run(whole, 0, n);
  for (int64_t begin = 0; begin < n; begin += n / 3) run(parts, begin, std::min(n / 3, n - begin));
  EXPECT_TRUE(whole == parts) << kernel.name << " " << dtype_name(type);
}

TEST(Stream, ElementsOfEverySize) {
  expect_same_in_parts(kLe, DType::kUInt8);
  expect_same_in_parts(kAdd, DType::kFloat16);
  expect_same_in_parts(kMul, DType::kComplex128);
}

TEST(Stream, RowsWithGapsBetweenThem) {
  constexpr int64_t kColumns = 1001, kPitch = 1010, kRows = kLarge / kColumns + 1;
  std::vector<float> a = numbers(kRows * kColumns), row = numbers(kColumns),
                     out(static_cast<size_t>(kRows * kPitch), -1.0f);
  const int64_t gaps[] = {kPitch, 1}, dense[] = {kColumns, 1}, repeated[] = {0, 1},
                sizes[] = {kRows, kColumns};
  Operand operands[] = {operand(out, gaps), operand(a, dense), operand(row, repeated)};
  run_strided(kAdd, DType::kFloat32, operands, sizes);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c)
      ASSERT_EQ(out[static_cast<size_t>(r * kPitch + c)],
                a[static_cast<size_t>(r * kColumns + c)] + row[static_cast<size_t>(c)]);
    for (int64_t c = kColumns; c < kPitch; ++c) ASSERT_EQ(out[static_cast<size_t>(r * kPitch + c)], -1.0f);
  }
}

TEST(Stream, AResultThatIsAnInputToo) {
  std::vector<float> a = numbers(kLarge), b = numbers(kLarge);
  const int64_t strides[] = {1}, sizes[] = {kLarge};
  Operand operands[] = {operand(a, strides), operand(a, strides), operand(b, strides)};
  run_strided(kAdd, DType::kFloat32, operands, sizes);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], 2 * b[i]) << i;
}

}  // namespace
}  // namespace weft::cpu
