#include "weft/ops/close.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/json.h"
#include "support/expect_error.h"
#include "support/recorded.h"
#include "support/tensors.h"

namespace weft {
namespace {

using testing::vec;

// --- what PyTorch says -------------------------------------------------------------------------------------

double real(const Json& text) { return std::strtod(text.as_string().c_str(), nullptr); }

// A number as Python writes it; complex ones are pairs.
Scalar number(const Json& text) {
  if (text.is_array()) return Complex<double>(real(text.at(0)), real(text.at(1)));
  const std::string& digits = text.as_string();
  if (digits == "True" || digits == "False") return digits == "True";
  if (digits.find_first_of(".en") != std::string::npos) return real(text);
  return static_cast<int64_t>(std::strtoll(digits.c_str(), nullptr, 10));
}

Tensor tensor_of(const Json& values, DType dtype, const std::vector<SymInt>& sizes) {
  std::vector<Complex<double>> numbers;
  std::vector<int64_t> integers;
  for (const Json& value : values.as_array()) {
    const Scalar scalar = number(value);
    if (is_floating(dtype) || is_complex(dtype)) numbers.push_back(scalar.to_complex());
    else integers.push_back(scalar.to_int());
  }
  if (is_complex(dtype)) return from_data(numbers, sizes).to(dtype);
  if (!is_floating(dtype)) return from_data(integers, sizes).to(dtype);
  std::vector<double> reals;
  for (const Complex<double>& z : numbers) reals.push_back(z.re);
  return from_data(reals, sizes).to(dtype);
}

CloseOptions options_of(const Json& json) {
  CloseOptions options;
  const Json::Object& object = json.as_object();
  if (const Json* rtol = object.find("rtol")) options.rtol = rtol->as_double();
  if (const Json* atol = object.find("atol")) options.atol = atol->as_double();
  if (const Json* nan = object.find("equal_nan")) options.equal_nan = nan->as_bool();
  return options;
}

std::optional<std::string> mismatch_of(const Json& row) {
  const CloseOptions options = options_of(row.at(4));
  if (row.at(0).as_string() == "number") return find_mismatch(number(row.at(2)), number(row.at(3)), options);
  const DType dtype = dtype_from_name(row.at(0).as_string()).value();
  std::vector<SymInt> sizes;
  for (const Json& size : row.at(1).as_array()) sizes.emplace_back(size.as_int());
  return find_mismatch(tensor_of(row.at(2), dtype, sizes), tensor_of(row.at(3), dtype, sizes), options);
}

TEST(FindMismatch, SaysWhatPyTorchSays) {
  const std::string path = WEFT_SOURCE_DIR "/tests/data/close.json";
  std::ifstream in(path, std::ios::binary);
  const Json rows = Json::parse(std::string{std::istreambuf_iterator<char>(in), {}}, path);
  ASSERT_EQ(rows.size(), 380u);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Json& wanted = rows.at(i).at(5);
    EXPECT_EQ(mismatch_of(rows.at(i)).value_or("close"), wanted.is_null() ? "close" : wanted.as_string())
        << "row " << i << ": " << rows.at(i).to_text();
  }
}

// --- one by one --------------------------------------------------------------------------------------------

std::string text_of(const Tensor& a, const Tensor& b, const CloseOptions& options = {}) {
  return find_mismatch(a, b, options).value_or("close");
}

TEST(FindMismatch, OfTensorsNamesTheWorstElements) {
  EXPECT_EQ(text_of(from_data<float>({1, 2, 3}), from_data<float>({1, 2.5, 3})),
            "Tensor-likes are not close!\n\n"
            "Mismatched elements: 1 / 3 (33.3%)\n"
            "Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)\n"
            "Greatest relative difference: 0.20000000298023224 at index (1,) (up to 1.3e-06 allowed)");
  EXPECT_EQ(text_of(from_data<int64_t>({0, 1, 2, 9}, {2, 2}), from_data<int64_t>({0, 1, 0, 3}, {2, 2})),
            "Tensor-likes are not equal!\n\n"
            "Mismatched elements: 2 / 4 (50.0%)\n"
            "Greatest absolute difference: 6 at index (1, 1)\n"
            "Greatest relative difference: inf at index (1, 0)");
  EXPECT_EQ(text_of(vec({1, 2}), vec({1, 2})), "close");
}

TEST(FindMismatch, OfTensorsWithoutDimensionsNamesTheValues) {
  EXPECT_EQ(text_of(from_data<double>({1}, {}), from_data<double>({2}, {})),
            "Scalars are not close!\n\n"
            "Expected 2.0 but got 1.0.\n"
            "Absolute difference: 1.0 (up to 1e-07 allowed)\n"
            "Relative difference: 0.5 (up to 1e-07 allowed)");
  EXPECT_EQ(text_of(from_data<int64_t>({1}, {}).to(kBool), from_data<int64_t>({0}, {}).to(kBool)),
            "Scalars are not equal!\n\nExpected False but got True.\nAbsolute difference: 1\nRelative "
            "difference: inf");
}

TEST(FindMismatch, OfWhatTensorsAre) {
  const Tensor f = ones({2, 3});
  EXPECT_EQ(text_of(f, ones({3})),
            "The values for attribute 'shape' do not match: torch.Size([2, 3]) != torch.Size([3]).");
  EXPECT_EQ(text_of(f, f.to(kFloat64)),
            "The values for attribute 'dtype' do not match: torch.float32 != torch.float64.");
  EXPECT_EQ(text_of(f, f.to(kFloat64), {.check_dtype = false}), "close");
  EXPECT_EQ(text_of(f, f.to(kInt64) * 2, {.check_dtype = false}),
            "Tensor-likes are not close!\n\n"
            "Mismatched elements: 6 / 6 (100.0%)\n"
            "Greatest absolute difference: 1.0 at index (0, 0) (up to 1e-05 allowed)\n"
            "Greatest relative difference: 0.5 at index (0, 0) (up to 1.3e-06 allowed)");
  const Tensor transposed = f.t().contiguous().t();
  EXPECT_EQ(text_of(f, transposed), "close");
  EXPECT_EQ(text_of(f, transposed, {.check_stride = true}),
            "The values for attribute 'stride()' do not match: (3, 1) != (1, 2).");
  EXPECT_EQ(text_of(ones({2}), ones({1}).expand({2}), {.check_stride = true}),
            "The values for attribute 'stride()' do not match: (1,) != (0,).");
}

TEST(FindMismatch, OfDevices) {
  const Tensor here = vec({1, 2}), there = here.to(Device("sim"), kFloat64);
  EXPECT_EQ(text_of(here, there), "The values for attribute 'device' do not match: cpu != sim:0.");
  EXPECT_EQ(text_of(here, there, {.check_device = false}), "close");
  EXPECT_THAT(text_of(there + 1, here, {.check_device = false}),
              ::testing::HasSubstr("Mismatched elements: 2 / 2 (100.0%)"));
  const Tensor meta = empty({2}, kFloat64, {}, kMeta);
  EXPECT_EQ(text_of(meta, meta), "close");
  EXPECT_EQ(text_of(meta, here, {.check_device = false}), "close") << "there are no values to compare";
}

TEST(FindMismatch, OfNumbers) {
  auto text = [](const Scalar& a, const Scalar& b, const CloseOptions& options = {}) {
    return find_mismatch(a, b, options).value_or("close");
  };
  EXPECT_EQ(text(true, false), "Booleans mismatch: True is not False");
  EXPECT_EQ(text(true, true), "close");
  EXPECT_EQ(text(1, 2.0), "The (d)types do not match: <class 'int'> != <class 'float'>.");
  EXPECT_EQ(text(2, 2.0, {.check_dtype = false}), "close");
  const int64_t large = int64_t{1} << 62;
  EXPECT_EQ(text(large, -large),
            "Scalars are not equal!\n\n"
            "Expected -4611686018427387904 but got 4611686018427387904.\n"
            "Absolute difference: 9223372036854775808\n"
            "Relative difference: 2.0");
  EXPECT_THAT(text(large, large + 1), ::testing::HasSubstr("Absolute difference: 1\n"));
}

TEST(FindMismatch, NeedsBothTolerancesOrNone) {
  EXPECT_USER_ERROR(find_mismatch(vec({1}), vec({1}), {.rtol = 1.0}),
                    "Both 'rtol' and 'atol' must be either specified or omitted, but got no atol.");
  EXPECT_USER_ERROR(find_mismatch(Scalar(1.0), Scalar(1.0), {.atol = 1.0}), "but got no rtol.");
  EXPECT_USER_ERROR(find_mismatch(Tensor(), vec({1})), "both tensors must be defined");
}

TEST(FindMismatch, IsNotSeenByRecordersOrTapes) {
  const Tensor a = vec({1, 2}), b = vec({1, 3}).set_requires_grad();
  EXPECT_THAT(testing::recorded(Recorder::Position::kUpper, [&] { text_of(a, b); }), ::testing::IsEmpty());
  EXPECT_THAT(testing::recorded(Recorder::Position::kLower, [&] { text_of(a, b); }), ::testing::IsEmpty());
  EXPECT_THAT(testing::recorded(Recorder::Position::kLower, [&] { a + b; }), ::testing::SizeIs(1));
}

TEST(AssertClose, ThrowsTheText) {
  assert_close(vec({1}), vec({1}));
  EXPECT_ERROR_TYPE(NotCloseError, assert_close(vec({1}), vec({2})), "Mismatched elements: 1 / 1 (100.0%)");
}

TEST(DefaultTolerances, AreTheLooserOfBothTypes) {
  EXPECT_EQ(default_tolerances(kFloat32, kFloat64).rtol, 1.3e-6);
  EXPECT_EQ(default_tolerances(kFloat32, kFloat64).atol, 1e-5);
  EXPECT_EQ(default_tolerances(kInt64, kBool).atol, 0);
  EXPECT_EQ(default_tolerances(DType::kBFloat16, kFloat32).rtol, 0.016);
}

}  // namespace
}  // namespace weft
