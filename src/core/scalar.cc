#include "weft/core/scalar.h"

#include <fmt/format.h>

#include <cmath>

#include "weft/base/error.h"

namespace weft {

Scalar::Scalar(const SymInt& v) : Scalar() {
  if (const std::optional<int64_t> plain = v.maybe_plain()) {
    bits_.integer = *plain;
    return;
  }
  kind_ = Kind::kSymInt;
  sym::detail::retain(bits_.expr = v.expr());
}
Scalar::Scalar(const SymFloat& v) : Scalar(0.0) {
  if (const std::optional<double> plain = v.maybe_plain()) {
    bits_.number = *plain;
    return;
  }
  kind_ = Kind::kSymFloat;
  sym::detail::retain(bits_.expr = v.expr());
}
Scalar::Scalar(const SymBool& v) : Scalar(false) {
  if (!v.is_symbolic()) {
    bits_.integer = v.plain();
    return;
  }
  kind_ = Kind::kSymBool;
  sym::detail::retain(bits_.expr = v.expr());
}

SymInt Scalar::to_sym_int() const {
  return kind_ == Kind::kSymInt ? SymInt::from_expr(bits_.expr) : SymInt(to_int());
}
SymFloat Scalar::to_sym_float() const {
  return kind_ == Kind::kSymFloat ? SymFloat::from_expr(bits_.expr) : SymFloat(to_double());
}
SymBool Scalar::to_sym_bool() const {
  return kind_ == Kind::kSymBool ? SymBool::from_expr(bits_.expr) : SymBool(to_bool());
}

bool Scalar::to_bool() const {
  switch (kind_) {
    case Kind::kBool:
    case Kind::kInt:
      return bits_.integer != 0;
    case Kind::kDouble:
      return bits_.number.re != 0;
    case Kind::kComplex:
      return bits_.number.re != 0 || bits_.number.im != 0;
    case Kind::kSymInt:
      return guard(to_sym_int() != 0);
    case Kind::kSymFloat:
      return static_cast<double>(to_sym_float()) != 0;
    case Kind::kSymBool:
      return guard(to_sym_bool());
  }
  __builtin_unreachable();
}

int64_t Scalar::to_int() const {
  switch (kind_) {
    case Kind::kBool:
    case Kind::kInt:
      return bits_.integer;
    case Kind::kDouble: {
      const double v = bits_.number.re;
      require(v >= -0x1p63 && v < 0x1p63, "value {} cannot be converted to type int64 without overflow", v);
      return static_cast<int64_t>(v);
    }
    case Kind::kComplex: {
      const auto [re, im] = bits_.number;
      require(im == 0, "the complex number {}+{}j cannot be converted to an integer", re, im);
      return Scalar(re).to_int();
    }
    case Kind::kSymInt:
      return guard_int(to_sym_int());
    case Kind::kSymFloat:
      return Scalar(static_cast<double>(to_sym_float())).to_int();
    case Kind::kSymBool:
      return guard(to_sym_bool());
  }
  __builtin_unreachable();
}

double Scalar::to_double() const {
  switch (kind_) {
    case Kind::kBool:
    case Kind::kInt:
      return static_cast<double>(bits_.integer);
    case Kind::kDouble:
      return bits_.number.re;
    case Kind::kComplex: {
      const auto [re, im] = bits_.number;
      require(im == 0, "the complex number {}+{}j cannot be converted to a real one", re, im);
      return re;
    }
    case Kind::kSymInt:
      return static_cast<double>(guard_int(to_sym_int()));
    case Kind::kSymFloat:
      return static_cast<double>(to_sym_float());
    case Kind::kSymBool:
      return guard(to_sym_bool());
  }
  __builtin_unreachable();
}

Complex<double> Scalar::to_complex() const {
  return is_complex() ? bits_.number : Complex<double>(to_double());
}

DType Scalar::dtype() const {
  if (is_bool()) return DType::kBool;
  if (is_integral()) return DType::kInt64;
  return is_floating() ? DType::kFloat64 : DType::kComplex128;
}

namespace {

// fmt shows the sign of a NaN, which means nothing.
std::string real_text(double v) { return std::isnan(v) ? "nan" : fmt::format("{}", v); }

// As Python writes it: "2j", "(1+2j)", "(-0+2j)", "(1+nanj)".
std::string complex_text(Complex<double> v) {
  const std::string imaginary = real_text(v.im) + "j";
  if (v.re == 0 && !std::signbit(v.re)) return imaginary;
  return fmt::format("({}{}{})", real_text(v.re), imaginary[0] == '-' ? "" : "+", imaginary);
}

}  // namespace

std::string Scalar::to_string() const {
  switch (kind_) {
    case Kind::kBool:
      return bits_.integer ? "True" : "False";
    case Kind::kInt:
      return fmt::format("{}", bits_.integer);
    case Kind::kDouble:
      return real_text(bits_.number.re);
    case Kind::kComplex:
      return complex_text(bits_.number);
    case Kind::kSymInt:
      return to_sym_int().to_string();
    case Kind::kSymFloat:
      return to_sym_float().to_string();
    case Kind::kSymBool:
      return to_sym_bool().to_string();
  }
  __builtin_unreachable();
}

bool Scalar::equals(const Scalar& other) const {
  if (kind_ != other.kind_) return false;
  if (is_symbolic()) return bits_.expr == other.bits_.expr;
  if (is_complex()) return bits_.number == other.bits_.number;
  return is_floating() ? bits_.number.re == other.bits_.number.re : bits_.integer == other.bits_.integer;
}

}  // namespace weft
