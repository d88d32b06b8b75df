#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "weft/base/numbers.h"

namespace weft {

// The element types. The order is the order of promotion within a category, and indexes tables.
enum class DType : uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
};
inline constexpr int kDTypeCount = 12;

inline constexpr DType kBool = DType::kBool, kUInt8 = DType::kUInt8, kInt8 = DType::kInt8,
                       kInt16 = DType::kInt16, kInt32 = DType::kInt32, kInt64 = DType::kInt64,
                       kFloat16 = DType::kFloat16, kBFloat16 = DType::kBFloat16, kFloat32 = DType::kFloat32,
                       kFloat64 = DType::kFloat64, kComplex64 = DType::kComplex64,
                       kComplex128 = DType::kComplex128;

namespace detail {
inline constexpr uint8_t kItemSize[kDTypeCount] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
}
constexpr int64_t item_size(DType t) { return detail::kItemSize[static_cast<int>(t)]; }
constexpr bool is_complex(DType t) { return t >= DType::kComplex64; }
constexpr bool is_floating(DType t) { return t >= DType::kFloat16 && t <= DType::kFloat64; }
constexpr bool is_integral(DType t) { return t >= DType::kUInt8 && t <= DType::kInt64; }  // without bool
constexpr bool is_differentiable(DType t) { return t >= DType::kFloat16; }

// "float32", as PyTorch and files spell it.
std::string_view dtype_name(DType t);
// "f32", as weft's messages spell it.
std::string_view short_name(DType t);
// The inverse of `dtype_name`; nothing for a name that is not one of ours.
std::optional<DType> dtype_from_name(std::string_view name);

// Type promotion, as for two tensors of at least one dimension.
DType promote(DType a, DType b);
// The real type of a complex type's parts, and back (f16 and bf16 pair with complex64).
DType real_type(DType t);
DType complex_type(DType t);

template <typename T>
struct DTypeOf;
template <DType t>
struct TypeOf;
#define WEFT_FOR_EACH_DTYPE(X)                                                                    \
  X(bool, kBool)                                                                                  \
  X(uint8_t, kUInt8)                                                                              \
  X(int8_t, kInt8) X(int16_t, kInt16) X(int32_t, kInt32) X(int64_t, kInt64) X(Half, kFloat16)     \
      X(BFloat16, kBFloat16) X(float, kFloat32) X(double, kFloat64) X(Complex<float>, kComplex64) \
          X(Complex<double>, kComplex128)
#define WEFT_X(cpp, name)                       \
  template <>                                   \
  struct DTypeOf<cpp> {                         \
    static constexpr DType value = DType::name; \
  };                                            \
  template <>                                   \
  struct TypeOf<DType::name> {                  \
    using type = cpp;                           \
  };
WEFT_FOR_EACH_DTYPE(WEFT_X)
#undef WEFT_X
template <typename T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

// Calls f.template operator()<T>() with the C++ type of `t`.
template <typename F>
decltype(auto) visit_dtype(DType t, F&& f) {
  switch (t) {
#define WEFT_X(cpp, name) \
  case DType::name:       \
    return f.template operator()<cpp>();
    WEFT_FOR_EACH_DTYPE(WEFT_X)
#undef WEFT_X
  }
  __builtin_unreachable();
}

}  // namespace weft
