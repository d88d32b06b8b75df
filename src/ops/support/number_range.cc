#include "ops/support/number_range.h"

#include <cmath>
#include <limits>

#include "weft/base/error.h"

namespace weft {
namespace {

// The words of the message are C++'s names.
const char* type_words(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kUInt8:
      return "uint8_t";
    case DType::kInt8:
      return "int8_t";
    case DType::kInt16:
      return "int16_t";
    case DType::kInt32:
      return "int";
    case DType::kInt64:
      return "int64_t";
    case DType::kFloat16:
      return "c10::Half";
    case DType::kBFloat16:
      return "c10::BFloat16";
    case DType::kFloat32:
      return "float";
    case DType::kFloat64:
      return "double";
    case DType::kComplex64:
      return "c10::complex<float>";
    case DType::kComplex128:
      return "c10::complex<double>";
  }
  __builtin_unreachable();
}

double largest(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 65504;
    case DType::kBFloat16:
      return 0x1.fep127;
    case DType::kFloat32:
    case DType::kComplex64:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}
bool real_fits_real(double value, DType dtype) {
  return !std::isfinite(value) || std::abs(value) <= largest(dtype);
}

// False for NaN.
template <typename T, typename Value>
bool is_inside(Value value) {
  constexpr auto low = static_cast<Value>(std::numeric_limits<T>::lowest());
  constexpr auto high = static_cast<Value>(std::numeric_limits<T>::max());
  constexpr bool wraps = std::integral<Value> && std::unsigned_integral<T>;
  return value >= (wraps ? -high : low) && value <= high;
}
bool fits_integer(const Scalar& number, DType dtype) {
  return visit_dtype(dtype, [&]<typename T>() {
    if constexpr (!std::integral<T>) return false;
    else if (number.is_integral()) return is_inside<T>(number.to_int());
    else return is_inside<T>(number.to_double());
  });
}

}  // namespace

bool fits(const Scalar& number, DType dtype) {
  if (dtype == DType::kBool || number.is_bool()) return true;
  if (number.is_complex()) {
    const Complex<double> z = number.to_complex();
    if (is_complex(dtype)) return real_fits_real(z.re, dtype) && real_fits_real(z.im, dtype);
    return z.im == 0 && fits(Scalar(z.re), dtype);
  }
  if (is_floating(dtype) || is_complex(dtype)) return real_fits_real(number.to_double(), dtype);
  return fits_integer(number, dtype);
}

void require_fits(const Scalar& number, DType dtype) {
  if (number.is_symbolic() || fits(number, dtype)) [[likely]]
    return;
  fail("value cannot be converted to type {} without overflow: got {}", type_words(dtype),
       number.to_string());
}

void require_value_fits(const Tensor& number, DType dtype) {
  visit_dtype(number.dtype(),
              [&]<typename T>() { require_fits(Scalar(*static_cast<const T*>(number.raw_data())), dtype); });
}

void require_fits_computation(const Scalar& number, DType dtype) {
  const bool is_half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  require_fits(number, is_half ? DType::kFloat32 : dtype);
}

}  // namespace weft
