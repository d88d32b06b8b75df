#pragma once

#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "guarded_memory.h"
#include "ops/cpu/pointwise.h"
#include "weft/base/dtype.h"

namespace weft::cpu {
// Names of tests contain their parameters.
inline void PrintTo(IsaLevel isa, std::ostream* out) { *out << isa_name(isa); }
}  // namespace weft::cpu

// Arrays for testing the CPU engine: any dtype and strides, elements read and written by plain C++ casts that
// share nothing with the engine.
namespace weft::cpu::testing {

using Number = std::complex<long double>;

inline bool is_integer_like(DType t) { return t <= DType::kInt64; }

// A C++ conversion of a number to dtype `t` and back: what storing it does. Integers keep their low bits.
template <typename T>
T stored(Number x) {
  if constexpr (std::is_same_v<T, bool>) return x.real() != 0 || x.imag() != 0;
  else if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<int64_t>(x.real()));
  else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return T(static_cast<float>(x.real()));
  else if constexpr (std::is_floating_point_v<T>) return static_cast<T>(x.real());
  else return T(static_cast<decltype(T::re)>(x.real()), static_cast<decltype(T::re)>(x.imag()));
}
template <typename T>
Number widened(T x) {
  if constexpr (requires { x.im; }) return {x.re, x.im};
  else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) return static_cast<float>(x);
  else return static_cast<long double>(x);
}

struct RawArray {
  DType dtype;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;           // elements from the start of the storage to index 0
  GuardedVector<char> storage;  // the last element is the last of its page

  // Strides as given; the storage is as large as they need.
  RawArray(DType dtype, std::vector<int64_t> sizes_, std::vector<int64_t> strides_, int64_t lead = 0)
      : dtype(dtype), sizes(std::move(sizes_)), strides(std::move(strides_)) {
    int64_t low = 0, high = 0;
    for (size_t d = 0; d < sizes.size(); ++d) {
      int64_t reach = (sizes[d] - 1) * strides[d];
      if (sizes[d] > 0) (reach < 0 ? low : high) += reach;
    }
    offset = lead - low;
    storage.resize((offset + high + 1) * item_size(dtype), 0x5a);
  }
  static RawArray contiguous(DType dtype, std::vector<int64_t> sizes, int64_t lead = 0) {
    std::vector<int64_t> strides(sizes.size());
    int64_t next = 1;
    for (size_t d = sizes.size(); d-- > 0; next *= sizes[d]) strides[d] = next;
    return RawArray(dtype, std::move(sizes), std::move(strides), lead);
  }

  char* data() { return storage.data() + offset * item_size(dtype); }
  const char* data() const { return storage.data() + offset * item_size(dtype); }
  Operand operand() { return {data(), dtype, strides.data()}; }
  int64_t count() const {
    int64_t n = 1;
    for (int64_t size : sizes) n *= size;
    return n;
  }
  // The offset of logical element i in row-major order, in elements from data().
  int64_t offset_of(int64_t i) const {
    int64_t at = 0;
    for (size_t d = sizes.size(); d-- > 0;) {
      at += i % sizes[d] * strides[d];
      i /= sizes[d];
    }
    return at;
  }
  Number get(int64_t i) const {
    return visit_dtype(dtype, [&]<typename T>() {
      T x;
      std::memcpy(&x, data() + offset_of(i) * static_cast<int64_t>(sizeof(T)), sizeof(T));
      return widened(x);
    });
  }
  void set(int64_t i, Number x) {
    visit_dtype(dtype, [&]<typename T>() {
      T value = stored<T>(x);
      std::memcpy(data() + offset_of(i) * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
    });
  }
  // An integer beyond the 64 bits of a long double's mantissa does not exist: get() is exact.
  std::string bits() const {
    std::string result;
    for (int64_t i = 0; i < count(); ++i)
      result.append(data() + offset_of(i) * item_size(dtype), static_cast<size_t>(item_size(dtype)));
    return result;
  }
};

inline Number round_to(DType t, Number x) {
  return visit_dtype(t, [&]<typename T>() { return widened(stored<T>(x)); });
}

// Values at the corners of a type.
inline std::vector<Number> special_values(DType t) {
  constexpr long double inf = std::numeric_limits<long double>::infinity();
  constexpr long double nan = std::numeric_limits<long double>::quiet_NaN();
  if (t == DType::kBool) return {0, 1};
  if (is_integral(t)) {
    std::vector<Number> result;
    int bits = static_cast<int>(item_size(t)) * 8;
    bool is_signed = t != DType::kUInt8;
    long double low = is_signed ? -std::ldexp(1.0L, bits - 1) : 0;
    long double high = is_signed ? -low - 1 : 255;
    for (long double x : {0.L, 1.L, 2.L, 3.L, 7.L, 100.L, low, low + 1, high, high - 1}) result.push_back(x);
    if (is_signed)
      for (long double x : {-1.L, -2.L, -3.L, -7.L, -100.L}) result.push_back(x);
    return result;
  }
  std::vector<Number> result;
  long double largest = t == DType::kFloat64 ? std::numeric_limits<double>::max() : 3e38L;
  if (t == DType::kFloat16) largest = 65504;
  for (long double x : {0.0L, 0.5L, 1.0L, 1.5L, 2.0L, 2.5L, 3.0L, 0.1L, 1e-3L, 7.25L, 20.0L, 88.5L, 200.0L,
                        1e-6L, 1e-40L, largest, inf}) {
    result.push_back(round_to(t, x).real());
    result.push_back(-round_to(t, x).real());
  }
  result.push_back(nan);
  return result;
}

inline Number random_value(DType t, std::mt19937& rng) {
  if (t == DType::kBool) return static_cast<long double>(rng() & 1);
  if (t == DType::kUInt8) return static_cast<long double>(rng() % 256);
  if (is_integral(t)) return static_cast<long double>(static_cast<int>(rng() % 201)) - 100;
  std::uniform_real_distribution<double> dist(-4, 4);
  Number x = is_complex(t) ? Number(dist(rng), dist(rng)) : Number(dist(rng));
  return round_to(t, x);
}

inline const std::vector<DType>& all_dtypes() {
  static const std::vector<DType> types = {DType::kBool,    DType::kUInt8,     DType::kInt8,
                                           DType::kInt16,   DType::kInt32,     DType::kInt64,
                                           DType::kFloat16, DType::kBFloat16,  DType::kFloat32,
                                           DType::kFloat64, DType::kComplex64, DType::kComplex128};
  return types;
}

inline std::vector<IsaLevel> available_isas() {
  std::vector<IsaLevel> result;
  for (int level = 0; level <= static_cast<int>(best_isa()); ++level)
    result.push_back(static_cast<IsaLevel>(level));
  return result;
}

// Uses an instruction set for a scope.
struct UseIsa {
  IsaLevel before = active_isa();
  explicit UseIsa(IsaLevel isa) { set_active_isa(isa); }
  ~UseIsa() { set_active_isa(before); }
};

// The distance of two reals in units of the type's precision, relative to the larger; equal infinities and
// NaNs are 0 apart.
inline long double relative_error(DType t, long double got, long double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : INFINITY;
  if (got == want) return 0;
  if (std::isinf(got) || std::isinf(want)) return INFINITY;
  long double epsilon = t == DType::kFloat64 || t == DType::kComplex128 ? 0x1p-52L
                        : t == DType::kFloat16                          ? 0x1p-10L
                        : t == DType::kBFloat16                         ? 0x1p-7L
                                                                        : 0x1p-23L;
  long double smallest = t == DType::kFloat64 || t == DType::kComplex128 ? 0x1p-1022L
                         : t == DType::kFloat16                          ? 0x1p-14L
                                                                         : 0x1p-126L;
  long double scale = std::max({std::fabs(got), std::fabs(want), smallest});
  return std::fabs(got - want) / scale / epsilon;
}

}  // namespace weft::cpu::testing
