#pragma once

#include <bit>
#include <cstdint>

namespace weft {

// IEEE binary16, stored; arithmetic happens in float. Conversions round to nearest even.
struct Half {
  uint16_t bits = 0;

  Half() = default;
  constexpr explicit Half(float value) : bits(from_float(value)) {}
  constexpr operator float() const { return to_float(bits); }  // NOLINT(google-explicit-constructor)

  static constexpr Half from_bits(uint16_t bits) {
    Half h;
    h.bits = bits;
    return h;
  }

  static constexpr uint16_t from_float(float value) {
    uint32_t x = std::bit_cast<uint32_t>(value);
    uint32_t sign = (x >> 16) & 0x8000u;
    uint32_t magnitude = x & 0x7fffffffu;
    // A NaN becomes quiet and keeps the top of its payload, as the F16C instructions do.
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
    if (magnitude < 0x38800000u) {                                               // subnormal or zero
      // Adding 0.5f puts the rounding position of the result at the end of the float's mantissa.
      float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
    }
    uint32_t odd = (magnitude >> 13) & 1u;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
  }
  static constexpr float to_float(uint16_t h) {
    uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
    uint32_t exponent = (h >> 10) & 0x1fu, mantissa = h & 0x3ffu;
    if (exponent == 0x1f) {
      uint32_t quiet = mantissa ? 0x400000u : 0u;
      return std::bit_cast<float>(sign | 0x7f800000u | quiet | (mantissa << 13));
    }
    if (exponent == 0) {
      float value = static_cast<float>(mantissa) * 0x1p-24f;
      return sign ? -value : value;
    }
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
};

// The upper half of a float, stored; arithmetic happens in float.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  constexpr explicit BFloat16(float value) : bits(from_float(value)) {}
  constexpr operator float() const {  // NOLINT(google-explicit-constructor)
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }

  static constexpr BFloat16 from_bits(uint16_t bits) {
    BFloat16 b;
    b.bits = bits;
    return b;
  }
  static constexpr uint16_t from_float(float value) {
    uint32_t x = std::bit_cast<uint32_t>(value);
    if ((x & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
    return static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
  }
};

// A complex number as a plain pair: no COMDATs of std, so that each instruction set compiles its own copy.
template <typename T>
struct Complex {
  T re{}, im{};

  constexpr Complex() = default;
  constexpr Complex(T re, T im = T(0)) : re(re), im(im) {}  // NOLINT(google-explicit-constructor)
  template <typename U>
  constexpr explicit Complex(const Complex<U>& other)
      : re(static_cast<T>(other.re)), im(static_cast<T>(other.im)) {}

  constexpr bool operator==(const Complex&) const = default;
  friend constexpr Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend constexpr Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend constexpr Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  constexpr Complex operator-() const { return {-re, -im}; }
};

}  // namespace weft
