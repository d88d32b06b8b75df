#pragma once

#include <concepts>
#include <string>

#include "weft/base/dtype.h"
#include "weft/sym/sym_int.h"

namespace weft {

// A number of no particular width, as operators take them: bool, integer, real or complex, and the symbolic
// forms of the first three. Weak in type promotion: only its category counts.
class Scalar {
 public:
  enum class Kind : uint8_t { kBool, kInt, kDouble, kComplex, kSymInt, kSymFloat, kSymBool };

  Scalar() noexcept : Scalar(int64_t{0}) {}
  // NOLINTBEGIN(google-explicit-constructor)
  Scalar(bool v) noexcept : kind_(Kind::kBool) { bits_.integer = v; }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Scalar(T v) noexcept : kind_(Kind::kInt) {
    bits_.integer = static_cast<int64_t>(v);
  }
  template <std::floating_point T>
  Scalar(T v) noexcept : kind_(Kind::kDouble) {
    bits_.number = {static_cast<double>(v), 0};
  }
  Scalar(Half v) noexcept : Scalar(float(v)) {}
  Scalar(BFloat16 v) noexcept : Scalar(float(v)) {}
  Scalar(Complex<double> v) noexcept : kind_(Kind::kComplex) { bits_.number = v; }
  Scalar(Complex<float> v) noexcept : Scalar(Complex<double>(v)) {}
  // What is known without a guard becomes a plain number.
  Scalar(const SymInt& v);
  Scalar(const SymFloat& v);
  Scalar(const SymBool& v);
  // NOLINTEND(google-explicit-constructor)
  Scalar(const Scalar& other) noexcept : kind_(other.kind_), bits_(other.bits_) {
    if (is_symbolic()) [[unlikely]]
      sym::detail::retain(bits_.expr);
  }
  Scalar(Scalar&& other) noexcept : kind_(std::exchange(other.kind_, Kind::kInt)), bits_(other.bits_) {}
  Scalar& operator=(Scalar other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(bits_, other.bits_);
    return *this;
  }
  ~Scalar() {
    if (is_symbolic()) [[unlikely]]
      sym::detail::release(bits_.expr);
  }

  Kind kind() const noexcept { return kind_; }
  bool is_bool() const noexcept { return kind_ == Kind::kBool || kind_ == Kind::kSymBool; }
  // Without bool.
  bool is_integral() const noexcept { return kind_ == Kind::kInt || kind_ == Kind::kSymInt; }
  bool is_floating() const noexcept { return kind_ == Kind::kDouble || kind_ == Kind::kSymFloat; }
  bool is_complex() const noexcept { return kind_ == Kind::kComplex; }
  bool is_symbolic() const noexcept { return kind_ >= Kind::kSymInt; }

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
  // An integer with its expression, where it has one; a symbolic bool or float likewise. Only
  // for a Scalar of that category.
  SymInt to_sym_int() const;
  SymFloat to_sym_float() const;
  SymBool to_sym_bool() const;

  // The dtype of a 0-dim tensor made from it: bool, int64, float64 or complex128.
  DType dtype() const;
  std::string to_string() const;
  // Same category and same value.
  bool equals(const Scalar& other) const;
  bool equals_number(double v) const { return !is_complex() && !is_symbolic() && to_double() == v; }

 private:
  union Bits {
    int64_t integer;         // of bools too
    Complex<double> number;  // of real numbers the real part
    const sym::Expr* expr;
    Bits() : number() {}
  };

  Kind kind_;
  Bits bits_;
};

}  // namespace weft
