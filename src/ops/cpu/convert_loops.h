#pragma once

#include "ops/cpu/convert.h"
#include "ops/cpu/pack_generic.h"

// Conversion loops of one instruction set. Every template has the Isa among its arguments.
namespace weft::cpu {

// The type whose vectors hold an element once it is loaded.
template <typename T>
struct NativeOf {
  using type = T;
  using Part = T;
  static constexpr bool kComplex = false;
};
template <>
struct NativeOf<bool> : NativeOf<uint8_t> {};
template <>
struct NativeOf<Half> : NativeOf<float> {
  using Part = Half;
};
template <>
struct NativeOf<BFloat16> : NativeOf<float> {
  using Part = BFloat16;
};
template <typename T>
struct NativeOf<Complex<T>> : NativeOf<T> {
  static constexpr bool kComplex = true;
};

template <typename T>
inline constexpr bool kIsFloat = false;
template <>
inline constexpr bool kIsFloat<float> = true;
template <>
inline constexpr bool kIsFloat<double> = true;
template <typename A, typename B>
inline constexpr bool kSame = false;
template <typename A>
inline constexpr bool kSame<A, A> = true;

template <typename Isa, typename To, typename From>
struct Conversion {
  using S = typename NativeOf<From>::type;
  using D = typename NativeOf<To>::type;
  static constexpr int kWidest = sizeof(S) > sizeof(D) ? sizeof(S) : sizeof(D);
  static constexpr int kLanes = Isa::kBytes / (kWidest < 4 ? 4 : kWidest);
  template <typename T>
  using Lanes = typename VectorOf<T, kLanes * sizeof(T)>::type;

  template <typename T>
  static Lanes<T> read(const void* p) {
    Lanes<T> v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
  }
  template <typename T>
  static void write(void* p, Lanes<T> v) {
    __builtin_memcpy(p, &v, sizeof(v));
  }

  // The real part, in native form.
  static Lanes<S> load(const char* p) {
    if constexpr (kSame<From, Half>) return Isa::template from_half<Lanes<float>>(p);
    else if constexpr (kSame<From, BFloat16>) return Isa::template from_bfloat16<Lanes<float>>(p);
    else if constexpr (NativeOf<From>::kComplex) return parts(p, 0);
    else return read<S>(p);
  }
  static Lanes<S> parts(const char* p, int which) {
    Lanes<S> v;
    for (int i = 0; i < kLanes; ++i)
      __builtin_memcpy(reinterpret_cast<char*>(&v) + i * sizeof(S), p + (2 * i + which) * sizeof(S),
                       sizeof(S));
    return v;
  }

  template <typename B, typename A>
  static Lanes<B> cast(Lanes<A> v) {
    if constexpr (kSame<A, B>) return v;
    else if constexpr (kIsFloat<A> && !kIsFloat<B> && sizeof(B) < 4)
      return __builtin_convertvector(cast<int32_t, A>(v), Lanes<B>);
    else if constexpr (kIsFloat<A> && kSame<B, int64_t>) return Isa::template truncate_to_int64<Lanes<B>>(v);
    else if constexpr (kIsFloat<A> && kSame<B, int32_t>) return Isa::template truncate<Lanes<int32_t>>(v);
    else if constexpr (!kIsFloat<A> && sizeof(A) < 4 && kIsFloat<B>)
      return __builtin_convertvector(__builtin_convertvector(v, Lanes<int32_t>), Lanes<B>);
    else return __builtin_convertvector(v, Lanes<B>);
  }
  static void store_truth(char* out, const char* in) {
    uint8_t* to = reinterpret_cast<uint8_t*>(out);
    auto mask = load(in) != Lanes<S>{};
    if constexpr (NativeOf<From>::kComplex) mask |= parts(in, 1) != Lanes<S>{};
    write<uint8_t>(to, (Lanes<uint8_t>)__builtin_convertvector(mask, Lanes<int8_t>) & 1);
  }

  static void step(char* out, const char* in) {
    if constexpr (kSame<To, bool>) {
      store_truth(out, in);
    } else if constexpr (NativeOf<To>::kComplex) {
      Lanes<D> re = cast<D, S>(load(in)), im = {};
      if constexpr (NativeOf<From>::kComplex) im = cast<D, S>(parts(in, 1));
      for (int i = 0; i < kLanes; ++i) {
        D pair[2] = {re[i], im[i]};
        __builtin_memcpy(out + i * sizeof(pair), pair, sizeof(pair));
      }
    } else if constexpr (kSame<To, Half>) {
      Isa::to_half(out, cast<float, S>(load(in)));
    } else if constexpr (kSame<To, BFloat16>) {
      Isa::to_bfloat16(out, cast<float, S>(load(in)));
    } else {
      write<D>(out, cast<D, S>(load(in)));
    }
  }
  static bool run(int64_t n, char* const* pointers, const void*) {
    char* out = pointers[0];
    const char* in = pointers[1];
    if constexpr (kSame<To, From>) {
      __builtin_memcpy(out, in, static_cast<size_t>(n) * sizeof(To));
      return false;
    }
    int64_t whole = n & ~static_cast<int64_t>(kLanes - 1);
    for (int64_t i = 0; i < whole; i += kLanes) step(out + i * sizeof(To), in + i * sizeof(From));
    if (whole == n) return false;
    alignas(64) char from[kLanes * sizeof(From)] = {}, to[kLanes * sizeof(To)];
    __builtin_memcpy(from, in + whole * sizeof(From), (n - whole) * sizeof(From));
    step(to, from);
    __builtin_memcpy(out + whole * sizeof(To), to, (n - whole) * sizeof(To));
    return false;
  }
};

template <typename Isa>
constexpr ConvertTable convert_table() {
  ConvertTable table;
  // clang-format off
#define WEFT_FROM(to, from, name)                                              \
  table.loops[static_cast<int>(dtype_of<to>)][static_cast<int>(DType::name)] = \
      &Conversion<Isa, to, from>::run;
#define WEFT_TO(to, unused)                                                                           \
  WEFT_FROM(to, bool, kBool)                                                                          \
  WEFT_FROM(to, uint8_t, kUInt8)                                                                      \
  WEFT_FROM(to, int8_t, kInt8)                                                                        \
  WEFT_FROM(to, int16_t, kInt16) WEFT_FROM(to, int32_t, kInt32) WEFT_FROM(to, int64_t, kInt64)        \
      WEFT_FROM(to, Half, kFloat16) WEFT_FROM(to, BFloat16, kBFloat16) WEFT_FROM(to, float, kFloat32) \
          WEFT_FROM(to, double, kFloat64) WEFT_FROM(to, Complex<float>, kComplex64)                   \
              WEFT_FROM(to, Complex<double>, kComplex128)
  // clang-format on
  WEFT_FOR_EACH_DTYPE(WEFT_TO)
#undef WEFT_TO
#undef WEFT_FROM
  return table;
}

}  // namespace weft::cpu
