#include "weft/core/scalar.h"

#include <fmt/format.h>

#include <cmath>

#include "weft/base/error.h"

namespace weft {
namespace {
template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;
}  // namespace

Scalar::Scalar(SymFloat v) {
  if (auto plain = v.maybe_plain()) value_ = *plain;
  else value_ = std::move(v);
}
Scalar::Scalar(SymBool v) {
  if (v.is_symbolic()) value_ = std::move(v);
  else value_ = v.plain();
}

bool Scalar::to_bool() const {
  return std::visit(
      Overloaded{[](bool v) { return v; }, [](int64_t v) { return v != 0; }, [](double v) { return v != 0; },
                 [](Complex<double> v) { return v.re != 0 || v.im != 0; },
                 [](const SymInt& v) { return guard(v != 0); },
                 [](const SymFloat& v) { return static_cast<double>(v) != 0; },
                 [](const SymBool& v) { return guard(v); }},
      value_);
}

int64_t Scalar::to_int() const {
  return std::visit(Overloaded{[](bool v) { return int64_t{v}; }, [](int64_t v) { return v; },
                               [](double v) {
                                 require(v >= -0x1p63 && v < 0x1p63,
                                         "value {} cannot be converted to type int64 without overflow", v);
                                 return static_cast<int64_t>(v);
                               },
                               [](Complex<double> v) {
                                 require(v.im == 0,
                                         "the complex number {}+{}j cannot be converted to an integer", v.re,
                                         v.im);
                                 return static_cast<int64_t>(v.re);
                               },
                               [](const SymInt& v) { return guard_int(v); },
                               [](const SymFloat& v) { return static_cast<int64_t>(static_cast<double>(v)); },
                               [](const SymBool& v) { return int64_t{guard(v)}; }},
                    value_);
}

double Scalar::to_double() const {
  return std::visit(Overloaded{[](bool v) { return double(v); },
                               [](int64_t v) { return static_cast<double>(v); }, [](double v) { return v; },
                               [](Complex<double> v) {
                                 require(v.im == 0,
                                         "the complex number {}+{}j cannot be converted to a real one", v.re,
                                         v.im);
                                 return v.re;
                               },
                               [](const SymInt& v) { return static_cast<double>(guard_int(v)); },
                               [](const SymFloat& v) { return static_cast<double>(v); },
                               [](const SymBool& v) { return double(guard(v)); }},
                    value_);
}

Complex<double> Scalar::to_complex() const {
  if (const auto* v = std::get_if<Complex<double>>(&value_)) return *v;
  return to_double();
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
  return std::visit(
      Overloaded{[](bool v) { return std::string(v ? "True" : "False"); },
                 [](int64_t v) { return fmt::format("{}", v); }, [](double v) { return real_text(v); },
                 [](Complex<double> v) { return complex_text(v); },
                 [](const auto& v) { return v.to_string(); }},
      value_);
}

bool Scalar::equals(const Scalar& other) const {
  if (value_.index() != other.value_.index()) return false;
  return std::visit(
      [&](const auto& v) {
        const auto& w = std::get<std::decay_t<decltype(v)>>(other.value_);
        if constexpr (requires { v.same_as(w); }) return v.same_as(w);
        else return v == w;
      },
      value_);
}

}  // namespace weft
