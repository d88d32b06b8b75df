#pragma once

#include <utility>

#include "ops/cpu/pack_generic.h"
#include "ops/cpu/pointwise.h"
#include "ops/cpu/pointwise_list.h"

// The loop of a functor for one compute type and instruction set. Included by the files of instruction sets
// only; every template here has an Isa among its arguments, so no symbol is shared between them.
namespace weft::cpu {

template <typename T, typename Isa>
struct ValueIo {
  using Value = Pack<T, Isa>;
  static constexpr int kLanes = Value::kLanes, kSize = sizeof(T);
  static Value load(const char* p) { return Value::load(p); }
  static Value broadcast(const void* params, int index) {
    return Value(static_cast<const typename Value::Element*>(params)[index]);
  }
};
template <typename T, typename Isa>
struct ValueIo<Complex<T>, Isa> {
  using Value = scalar::ComplexPair<Pack<T, Isa>>;
  static constexpr int kLanes = Pack<T, Isa>::kLanes, kSize = 2 * sizeof(T);
  static Value load(const char* p) {
    Value value;
    load_pairs(p, value.re, value.im);
    return value;
  }
  static Value broadcast(const void* params, int index) {
    const T* parts = static_cast<const T*>(params) + 2 * index;
    return {Pack<T, Isa>(parts[0]), Pack<T, Isa>(parts[1])};
  }
};

// 16-bit floats compute in float and are rounded as they are stored.
template <typename Isa>
struct ValueIo<Half, Isa> {
  using Value = Pack<float, Isa>;
  static constexpr int kLanes = Value::kLanes, kSize = 2;
  static Value load(const char* p) { return Isa::template from_half<typename Value::V>(p); }
  static Value broadcast(const void* params, int index) {
    return ValueIo<float, Isa>::broadcast(params, index);
  }
};
template <typename Isa>
struct ValueIo<BFloat16, Isa> {
  using Value = Pack<float, Isa>;
  static constexpr int kLanes = Value::kLanes, kSize = 2;
  static Value load(const char* p) { return Isa::template from_bfloat16<typename Value::V>(p); }
  static Value broadcast(const void* params, int index) {
    return ValueIo<float, Isa>::broadcast(params, index);
  }
};

// How a functor's result R is stored for the element type T: the size of an element, and the store that
// returns whether a lane was refused.
template <typename R, typename T>
struct ResultIo;
template <typename P, typename Isa, typename T>
struct ResultIo<Pack<P, Isa>, T> {
  static constexpr int kOutputs = 1, kSize = sizeof(P);
  static bool store(char* const* out, int64_t i, Pack<P, Isa> r) {
    r.store(out[0] + i * kSize);
    return false;
  }
};
template <typename Isa>
struct ResultIo<Pack<float, Isa>, Half> {
  static constexpr int kOutputs = 1, kSize = 2;
  static bool store(char* const* out, int64_t i, Pack<float, Isa> r) {
    Isa::to_half(out[0] + i * kSize, r.v);
    return false;
  }
};
template <typename Isa>
struct ResultIo<Pack<float, Isa>, BFloat16> {
  static constexpr int kOutputs = 1, kSize = 2;
  static bool store(char* const* out, int64_t i, Pack<float, Isa> r) {
    Isa::to_bfloat16(out[0] + i * kSize, r.v);
    return false;
  }
};
template <typename R, typename T>
struct ResultIo<scalar::ComplexPair<R>, T> {
  static constexpr int kOutputs = 1, kSize = 2 * sizeof(typename R::Element);
  static bool store(char* const* out, int64_t i, scalar::ComplexPair<R> r) {
    store_pairs(out[0] + i * kSize, r.re, r.im);
    return false;
  }
};
template <typename M, typename Isa, typename T>
struct ResultIo<LaneMask<M, Isa>, T> {
  static constexpr int kOutputs = 1, kSize = 1;
  static bool store(char* const* out, int64_t i, LaneMask<M, Isa> r) {
    r.store(reinterpret_cast<uint8_t*>(out[0]) + i);
    return false;
  }
};
template <typename R, typename T>
struct ResultIo<scalar::Checked<R>, T> {
  static constexpr int kOutputs = 1, kSize = ResultIo<R, T>::kSize;
  static bool store(char* const* out, int64_t i, scalar::Checked<R> r) {
    ResultIo<R, T>::store(out, i, r.value);
    return any(r.error);
  }
};
template <typename R, typename T>
struct ResultIo<scalar::Two<R>, T> {
  static constexpr int kOutputs = 2, kSize = ResultIo<R, T>::kSize;
  static bool store(char* const* out, int64_t i, scalar::Two<R> r) {
    ResultIo<R, T>::store(out, i, r.first);
    ResultIo<R, T>::store(out + 1, i, r.second);
    return false;
  }
};

template <typename Isa, typename F, typename T, int inputs, int params>
struct PointwiseLoop {
  using Io = ValueIo<T, Isa>;
  using Value = typename Io::Value;
  using Mask = scalar::MaskOf<Value>;
  using Arguments = std::make_integer_sequence<int, inputs + params>;
  static constexpr int kLanes = Io::kLanes;

  static constexpr bool is_mask(int index) {
    if constexpr (requires { F::kMaskInputs; }) return index < inputs && ((F::kMaskInputs >> index) & 1);
    else return false;
  }
  static constexpr int input_size(int index) { return is_mask(index) ? 1 : Io::kSize; }

  template <int index>
  static auto argument(char* const* in, int64_t i, const Value* uniform) {
    if constexpr (is_mask(index)) return Mask::load(reinterpret_cast<const uint8_t*>(in[index]) + i);
    else if constexpr (index < inputs) return Io::load(in[index] + i * Io::kSize);
    else return uniform[index - inputs];
  }
  template <int... index>
  static auto apply(char* const* in, int64_t i, const Value* uniform, std::integer_sequence<int, index...>) {
    return F{}(argument<index>(in, i, uniform)...);
  }
  using Store = ResultIo<decltype(apply(nullptr, 0, nullptr, Arguments())), T>;
  static constexpr int kOutputs = Store::kOutputs;

  // Whole packs only. Not inlined: `run` calls it for the tail too.
  [[gnu::noinline]] static bool run_packs(int64_t n, char* const* pointers, const void* params_) {
    char* local[kOutputs + inputs];  // the stores might otherwise be taken to change the pointers
    for (int k = 0; k < kOutputs + inputs; ++k) local[k] = pointers[k];
    Value uniform[params + 1];
    for (int k = 0; k < params; ++k) uniform[k] = Io::broadcast(params_, k);
    bool refused = false;
    for (int64_t i = 0; i < n; i += kLanes)
      refused |= Store::store(local, i, apply(local + kOutputs, i, uniform, Arguments()));
    return refused;
  }

  // The tail goes through the same packs, in buffers whose spare lanes repeat its first element: results do
  // not depend on the place in the array, and a spare lane is never refused on its own.
  static bool run_tail(int64_t begin, int count, char* const* pointers, const void* params_) {
    constexpr int kBytes = kLanes * Io::kSize;
    alignas(64) char buffers[kOutputs + inputs][kBytes < 64 ? 64 : kBytes];
    char* local[kOutputs + inputs];
    for (int k = 0; k < kOutputs + inputs; ++k) local[k] = buffers[k];
    for (int k = 0; k < inputs; ++k) {
      const char* source = pointers[kOutputs + k] + begin * input_size(k);
      if (is_mask(k)) copy_lanes<1>(buffers[kOutputs + k], source, count);
      else copy_lanes<Io::kSize>(buffers[kOutputs + k], source, count);
    }
    bool refused = run_packs(kLanes, local, params_);
    constexpr int kSize = Store::kSize;
    for (int k = 0; k < kOutputs; ++k) keep_lanes<kSize>(pointers[k] + begin * kSize, buffers[k], count);
    return refused;
  }
  // An instruction set's own way needs as many elements as fill its registers.
  template <int size>
  static void copy_lanes(char* buffer, const char* source, int count) {
    if constexpr (size * kLanes == Isa::kBytes) {
      Isa::template spread<size>(buffer, source, count);
    } else {
      for (int i = 0; i < kLanes; ++i)
        __builtin_memcpy(buffer + i * size, source + (i < count ? i : 0) * size, size);
    }
  }
  template <int size>
  static void keep_lanes(char* target, const char* buffer, int count) {
    if constexpr (size * kLanes == Isa::kBytes) Isa::template keep<size>(target, buffer, count);
    else
      for (int i = 0; i < kLanes; ++i)
        if (i < count) __builtin_memcpy(target + i * size, buffer + i * size, size);
  }

  static bool run(int64_t n, char* const* pointers, const void* params_) {
    int64_t whole = n & ~static_cast<int64_t>(kLanes - 1);
    bool refused = whole != 0 && run_packs(whole, pointers, params_);
    if (whole != n) refused |= run_tail(whole, static_cast<int>(n - whole), pointers, params_);
    return refused;
  }
};

template <typename Isa, typename F, int inputs, int params, uint16_t dtypes>
constexpr LoopTable loop_table() {
  LoopTable table;
#define WEFT_X(cpp, name)                        \
  if constexpr (dtypes & dtype_bit(DType::name)) \
    table.loops[static_cast<int>(DType::name)] = &PointwiseLoop<Isa, F, cpp, inputs, params>::run;
  WEFT_X(bool, kBool)
  WEFT_X(uint8_t, kUInt8)
  WEFT_X(int8_t, kInt8)
  WEFT_X(int16_t, kInt16)
  WEFT_X(int32_t, kInt32)
  WEFT_X(int64_t, kInt64)
  WEFT_X(Half, kFloat16)
  WEFT_X(BFloat16, kBFloat16)
  WEFT_X(float, kFloat32)
  WEFT_X(double, kFloat64)
  WEFT_X(Complex<float>, kComplex64)
  WEFT_X(Complex<double>, kComplex128)
#undef WEFT_X
  return table;
}

}  // namespace weft::cpu

// Defines the tables of a family inside the namespace of an instruction set.
#define WEFT_DEFINE_LOOP(symbol, name, functor, inputs, params, dtypes) \
  extern const LoopTable symbol;                                        \
  constinit const LoopTable symbol = loop_table<Isa, scalar::functor, inputs, params, dtypes>();
