#pragma once

#include <concepts>

namespace weft {

// a / b rounded up, for a >= 0 and b > 0. SymInts have their own (weft/sym/sym_int.h).
template <std::integral T>
constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

}  // namespace weft
