#pragma once

#include <utility>

#include "ops/cpu/pack_generic.h"
#include "ops/cpu/pointwise.h"
#include "ops/cpu/pointwise_list.h"
#include "ops/cpu/tail_loop.h"

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

  static constexpr uint32_t mask_inputs() {
    if constexpr (requires { F::kMaskInputs; }) return F::kMaskInputs & ((1u << inputs) - 1);
    else return 0;
  }

  template <int index>
  static auto argument(char* const* in, int64_t i, const Value* uniform) {
    if constexpr (mask_inputs() >> index & 1)
      return Mask::load(reinterpret_cast<const uint8_t*>(in[index]) + i);
    else if constexpr (index < inputs) return Io::load(in[index] + i * Io::kSize);
    else return uniform[index - inputs];
  }
  template <int... index>
  static auto apply(char* const* in, int64_t i, const Value* uniform, std::integer_sequence<int, index...>) {
    return F{}(argument<index>(in, i, uniform)...);
  }
  using Store = ResultIo<decltype(apply(nullptr, 0, nullptr, Arguments())), T>;
  static constexpr int kOutputs = Store::kOutputs;

  static constexpr TailShape kTail = {kLanes, kOutputs, Store::kSize, inputs, Io::kSize, mask_inputs()};

  // Whole packs only. Not inlined: the tail calls it too.
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
  static bool run(int64_t n, char* const* pointers, const void* params_) {
    if (n % kLanes == 0) return run_packs(n, pointers, params_);
    if (n < kLanes) return run_few<Isa, kTail>(n, pointers, params_, &run_packs);
    return run_with_tail<Isa, kTail>(n, pointers, params_, &run_packs);
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
