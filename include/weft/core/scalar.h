#pragma once

#include <string>
#include <variant>

#include "weft/base/dtype.h"
#include "weft/sym/sym_int.h"

namespace weft {

// A number of no particular width, as operators take them: bool, integer, real or complex, and the symbolic
// forms of the first three. Weak in type promotion: only its category counts.
class Scalar {
 public:
  Scalar() : value_(int64_t{0}) {}
  // NOLINTBEGIN(google-explicit-constructor)
  Scalar(bool v) : value_(v) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Scalar(T v) : value_(static_cast<int64_t>(v)) {}
  template <std::floating_point T>
  Scalar(T v) : value_(static_cast<double>(v)) {}
  Scalar(Half v) : value_(static_cast<double>(float(v))) {}
  Scalar(BFloat16 v) : value_(static_cast<double>(float(v))) {}
  Scalar(Complex<double> v) : value_(v) {}
  Scalar(Complex<float> v) : value_(Complex<double>(v)) {}
  Scalar(const SymInt& v) {
    if (v.is_symbolic()) value_ = v;
    else value_ = v.plain();
  }
  Scalar(SymFloat v);
  Scalar(SymBool v);
  // NOLINTEND(google-explicit-constructor)

  bool is_bool() const { return value_.index() == 0 || value_.index() == 6; }
  bool is_integral() const { return value_.index() == 1 || value_.index() == 4; }  // without bool
  bool is_floating() const { return value_.index() == 2 || value_.index() == 5; }
  bool is_complex() const { return value_.index() == 3; }
  bool is_symbolic() const { return value_.index() >= 4; }

  // Conversions; a symbolic number guards, and a complex one with an imaginary part is an error.
  bool to_bool() const;
  int64_t to_int() const;
  double to_double() const;
  Complex<double> to_complex() const;
  template <typename T>
  T to() const {
    if constexpr (std::same_as<T, bool>) return to_bool();
    else if constexpr (std::integral<T>) return static_cast<T>(to_int());
    else if constexpr (std::same_as<T, Complex<double>> || std::same_as<T, Complex<float>>)
      return T(to_complex());
    else return T(static_cast<double>(to_double()));
  }

  // The dtype of a 0-dim tensor made from it: bool, int64, float64 or complex128.
  DType dtype() const;
  const std::variant<bool, int64_t, double, Complex<double>, SymInt, SymFloat, SymBool>& value() const {
    return value_;
  }
  std::string to_string() const;
  // Same category and same value.
  bool equals(const Scalar& other) const;
  bool equals_number(double v) const { return !is_complex() && !is_symbolic() && to_double() == v; }

 private:
  std::variant<bool, int64_t, double, Complex<double>, SymInt, SymFloat, SymBool> value_;
};

}  // namespace weft
