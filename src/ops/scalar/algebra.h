#pragma once

#include <cstdint>

// The scalar algebra: what a pointwise functor may use.
//
// A functor is a struct with a template call operator over a value type T:
//   struct Silu { template <typename T> T operator()(T x) const { return x / (T(1) + exp(-x)); } };
// T is a SIMD pack (weft::cpu::Pack), a complex pair of such (ComplexPair), or an expression (Expr): meaning
// is written once. Rules that keep the three uses alike:
//  * no `?:` and no `if` on values: comparisons give a mask, `where(mask, a, b)` evaluates both sides;
//  * mathematical functions are called without qualification (argument-dependent lookup), never `std::`;
//  * integers wrap; `/` is for real and complex values, integers use floor_div, trunc_div, floor_mod,
//  trunc_mod;
//  * what depends on the kind of number is `if constexpr (IsReal<T>)` and the like;
//  * everything is a template over T: no function without it, or two instruction sets would share a symbol.
namespace weft::scalar {

enum class Category : uint8_t { kBool, kUnsigned, kSigned, kReal, kComplex };

template <typename T>
concept IsBool = T::kCategory == Category::kBool;
template <typename T>
concept IsInteger = T::kCategory == Category::kUnsigned || T::kCategory == Category::kSigned;
template <typename T>
concept IsSigned = T::kCategory == Category::kSigned;
template <typename T>
concept IsReal = T::kCategory == Category::kReal;
template <typename T>
concept IsComplex = T::kCategory == Category::kComplex;

// What comparisons of T give.
template <typename T>
using MaskOf = typename T::Mask;

// A result that may be refused in some lanes: integer division by zero cannot throw in a lane.
template <typename T>
struct Checked {
  T value;
  MaskOf<T> error;
};

// The results of a functor with two outputs.
template <typename T>
struct Two {
  T first, second;
};

}  // namespace weft::scalar
