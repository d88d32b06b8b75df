#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <source_location>
#include <vector>

#include "weft/core/from_data.h"
#include "weft/ops/operators.h"

namespace weft::testing {

// The elements of any tensor as doubles, row by row; of complex ones both parts.
inline std::vector<double> values(const Tensor& tensor) {
  if (tensor.is_complex()) {
    Tensor wide = tensor.detach().to(kComplex128).contiguous();
    const auto* data = wide.data<Complex<double>>();
    std::vector<double> parts;
    for (int64_t i = 0; i < wide.plain_numel(); ++i) parts.insert(parts.end(), {data[i].re, data[i].im});
    return parts;
  }
  Tensor wide = tensor.detach().to(kFloat64).contiguous();
  const double* data = wide.data<double>();
  return {data, data + wide.plain_numel()};
}
inline Tensor vec(std::vector<double> v) { return from_data(v); }

// Same sizes, and values within rtol and atol of each other.
inline ::testing::AssertionResult close(const Tensor& got, const Tensor& wanted, double rtol = 1e-9,
                                        double atol = 1e-9) {
  if (describe_sizes(got.sizes()).str() != describe_sizes(wanted.sizes()).str())
    return ::testing::AssertionFailure()
           << describe(got).str() << " is not of the sizes of " << describe(wanted).str();
  std::vector<double> a = values(got), b = values(wanted);
  for (size_t i = 0; i < a.size(); ++i) {
    bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
    if (!both_nan && !(std::abs(a[i] - b[i]) <= atol + rtol * std::abs(b[i])))
      return ::testing::AssertionFailure() << "element " << i << ": got " << a[i] << ", wanted " << b[i];
  }
  return ::testing::AssertionSuccess();
}

// The same dtype, device, sizes and elements.
inline void expect_equal(const Tensor& got, const Tensor& wanted,
                         std::source_location where = std::source_location::current()) {
  const ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "expect_equal");
  EXPECT_EQ(dtype_name(got.dtype()), dtype_name(wanted.dtype()));
  EXPECT_EQ(got.device(), wanted.device());
  EXPECT_TRUE(close(got, wanted, 0, 0));
}

// Evenly spread values that do not repeat.
inline Tensor ramp(SymIntSpan sizes, double low = -1, double high = 1) {
  Tensor t = empty(sizes, kFloat64);
  for (int64_t i = 0; i < t.plain_numel(); ++i) {
    double x = 0.5 + 0.6180339887498949 * static_cast<double>(i + 1);
    t.data<double>()[i] = low + (high - low) * (x - std::floor(x));
  }
  return t;
}

}  // namespace weft::testing
