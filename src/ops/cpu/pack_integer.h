#pragma once

// Included by pack.h. No instruction set divides integers in lanes: these go lane by lane. A zero divisor
// gives 0 (the functor reports the lane), and INT_MIN / -1 wraps instead of trapping.
namespace weft::cpu {
namespace detail {

template <typename P>
struct LaneDivision {
  using E = typename P::Element;
  E quotient, remainder;

  LaneDivision(E a, E b) {
    if (b == 0) {
      quotient = remainder = 0;
    } else if (P::kCategory == Category::kSigned && b == static_cast<E>(-1)) {
      using U = typename SignedOfSize<sizeof(E)>::unsigned_type;
      quotient = static_cast<E>(U(0) - static_cast<U>(a));
      remainder = 0;
    } else {
      quotient = static_cast<E>(a / b);
      remainder = static_cast<E>(a % b);
    }
  }
  bool rounds_up(E b) const { return remainder != 0 && (remainder < 0) != (b < 0); }
};

template <typename P>
typename P::Element lane_power(typename P::Element base, typename P::Element exponent) {
  using E = typename P::Element;
  // Narrow unsigned numbers would be promoted to int, whose overflow is undefined.
  using U = uint64_t;
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == static_cast<E>(-1)) return static_cast<E>(exponent % 2 ? -1 : 1);
    return 0;
  }
  U result = 1, power = static_cast<U>(base);
  for (U e = static_cast<U>(exponent); e != 0; e >>= 1, power *= power)
    if (e & 1) result *= power;
  return static_cast<E>(result);
}

template <typename P>
typename P::Element lane_shift(typename P::Element x, typename P::Element count, bool is_left) {
  using E = typename P::Element;
  using U = typename SignedOfSize<sizeof(E)>::unsigned_type;
  constexpr int kBits = 8 * sizeof(E);
  const bool is_within = count >= 0 && count < kBits;
  if (is_left) return is_within ? static_cast<E>(static_cast<U>(x) << count) : E(0);
  if (is_within) return static_cast<E>(x >> count);
  return x < 0 ? static_cast<E>(-1) : E(0);
}

}  // namespace detail

#define WEFT_LANEWISE(name, expression)               \
  template <typename T, typename Isa>                 \
    requires Pack<T, Isa>::kIsInteger                 \
  Pack<T, Isa> name(Pack<T, Isa> a, Pack<T, Isa> b) { \
    using P = Pack<T, Isa>;                           \
    P result;                                         \
    for (int i = 0; i < P::kLanes; ++i) {             \
      T x = a.v[i], y = b.v[i];                       \
      result.v[i] = static_cast<T>(expression);       \
    }                                                 \
    return result;                                    \
  }
WEFT_LANEWISE(trunc_div, (detail::LaneDivision<P>(x, y).quotient))
WEFT_LANEWISE(trunc_mod, (detail::LaneDivision<P>(x, y).remainder))
WEFT_LANEWISE(floor_div,
              (detail::LaneDivision<P>(x, y).quotient - detail::LaneDivision<P>(x, y).rounds_up(y)))
WEFT_LANEWISE(floor_mod, (detail::LaneDivision<P>(x, y).remainder +
                          (detail::LaneDivision<P>(x, y).rounds_up(y) ? y : T(0))))
WEFT_LANEWISE(pow, (detail::lane_power<P>(x, y)))
WEFT_LANEWISE(shift_left, (detail::lane_shift<P>(x, y, true)))
WEFT_LANEWISE(shift_right, (detail::lane_shift<P>(x, y, false)))
#undef WEFT_LANEWISE

template <typename T, typename Isa>
  requires(Pack<T, Isa>::kCategory == Category::kReal)
Pack<T, Isa> pow(Pack<T, Isa> base, Pack<T, Isa> exponent) {
  return Isa::pow(base.v, exponent.v);
}

}  // namespace weft::cpu
