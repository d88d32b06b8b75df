#pragma once

#include <array>
#include <span>
#include <tuple>

#include "weft/core/value.h"

namespace weft {

// Conversions between the C++ types of typed operators and Values, both ways. `Unboxed<T>` keeps what a
// converted argument of type T points into.
namespace boxing {

template <typename T>
struct Unboxed;

#define WEFT_UNBOX_BY(Type, method)                            \
  template <>                                                  \
  struct Unboxed<Type> {                                       \
    explicit Unboxed(const Value& v) : value(v.method()) {}    \
    Type get() { return static_cast<Type>(std::move(value)); } \
    Type value;                                                \
  }
WEFT_UNBOX_BY(bool, to_bool);
WEFT_UNBOX_BY(int64_t, to_int);
WEFT_UNBOX_BY(double, to_double);
WEFT_UNBOX_BY(DType, to_dtype);
WEFT_UNBOX_BY(Device, to_device);
WEFT_UNBOX_BY(Layout, to_layout);
WEFT_UNBOX_BY(MemoryFormat, to_memory_format);
WEFT_UNBOX_BY(SymInt, to_sym_int);
WEFT_UNBOX_BY(SymFloat, to_sym_float);
WEFT_UNBOX_BY(SymBool, to_sym_bool);
WEFT_UNBOX_BY(Scalar, to_scalar);
WEFT_UNBOX_BY(std::string_view, to_string_view);
WEFT_UNBOX_BY(Generator, to_generator);
#undef WEFT_UNBOX_BY

// Tensors are passed by reference, without touching their refcounts.
template <>
struct Unboxed<Tensor> {
  explicit Unboxed(const Value& v) : tensor(v.as_tensor()) {}
  const Tensor& get() { return tensor; }
  const Tensor& tensor;
};

template <typename T>
struct Unboxed<std::optional<T>> {
  explicit Unboxed(const Value& v) {
    if (!v.is_none()) inner.emplace(v);
  }
  std::optional<T> get() {
    if (!inner) return std::nullopt;
    return inner->get();
  }
  std::optional<Unboxed<T>> inner;
};

// A list argument: an owned buffer and the span over it. A single number stands for a list of one, as in
// PyTorch.
template <typename Element, typename Span>
struct UnboxedList {
  explicit UnboxedList(const Value& v) {
    if (!v.is_sequence()) {
      buffer.push_back(Unboxed<Element>(v).get());
      return;
    }
    buffer.reserve(v.elements().size());
    for (const Value& element : v.elements()) buffer.push_back(Unboxed<Element>(element).get());
  }
  Span get() { return Span(ListSpan<Element>(buffer.data(), buffer.size())); }
  SmallVector<Element, 5> buffer;
};
template <>
struct Unboxed<IntSpan> : UnboxedList<int64_t, IntSpan> {
  using UnboxedList::UnboxedList;
};
template <>
struct Unboxed<SymIntSpan> : UnboxedList<SymInt, SymIntSpan> {
  using UnboxedList::UnboxedList;
};
template <>
struct Unboxed<TensorSpan> : UnboxedList<Tensor, TensorSpan> {
  using UnboxedList::UnboxedList;
};
template <>
struct Unboxed<ListSpan<Scalar>> : UnboxedList<Scalar, ListSpan<Scalar>> {
  using UnboxedList::UnboxedList;
};
template <>
struct Unboxed<ListSpan<double>> : UnboxedList<double, ListSpan<double>> {
  using UnboxedList::UnboxedList;
};
template <typename Span>
struct Unboxed<OptionalSpan<Span>> {
  explicit Unboxed(const Value& v) {
    if (!v.is_none()) inner.emplace(v);
  }
  OptionalSpan<Span> get() { return inner ? OptionalSpan<Span>(inner->get()) : OptionalSpan<Span>(); }
  std::optional<Unboxed<Span>> inner;
};
template <size_t n>
struct Unboxed<std::array<bool, n>> {
  explicit Unboxed(const Value& v) {
    const ValueList& list = v.elements();
    require(list.size() == n, "expected a list of {} bools but got {}", n, v.to_string());
    for (size_t i = 0; i < n; ++i) value[i] = list[i].to_bool();
  }
  std::array<bool, n> get() { return value; }
  std::array<bool, n> value;
};

// Results back from a Value.
template <typename R>
struct Result {
  static R from(Value v) { return Unboxed<R>(v).get(); }
};
template <>
struct Result<Tensor> {
  static Tensor from(Value v) { return std::move(v).to_tensor(); }
};
template <>
struct Result<void> {
  static void from(const Value&) {}
};
template <>
struct Result<std::vector<Tensor>> {
  static std::vector<Tensor> from(const Value& v) {
    std::vector<Tensor> tensors;
    tensors.reserve(v.elements().size());
    for (const Value& element : v.elements()) tensors.push_back(element.to_tensor());
    return tensors;
  }
};
template <typename Element, size_t n>
struct Result<SmallVector<Element, n>> {
  static SmallVector<Element, n> from(const Value& v) {
    SmallVector<Element, n> list;
    list.reserve(v.elements().size());
    for (const Value& element : v.elements()) list.push_back(Unboxed<Element>(element).get());
    return list;
  }
};
template <typename... R>
struct Result<std::tuple<R...>> {
  static std::tuple<R...> from(const Value& v) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return std::tuple<R...>(Result<R>::from(v.elements()[i])...);
    }(std::index_sequence_for<R...>{});
  }
};

// An InternalError unless there are as many arguments as a function has.
void check_count(size_t given, size_t expected);

// What a meta function answers becomes a tensor without memory.
Value box(const TensorSpec& spec);
template <typename T>
Value box(const T& value) {
  return Value(value);
}
inline Value box(Flag flag) { return Value(static_cast<bool>(flag)); }
inline Value box(Tensor&& tensor) { return Value(std::move(tensor)); }
template <typename T>
Value box(const ListSpan<T>& list) {
  return Value::list_of(list);
}
inline Value box(const SymIntSpan& list) { return Value::list_of(list); }
inline Value box(const std::vector<Tensor>& list) { return Value::list_of(list); }
template <typename Element, size_t n>
Value box(const SmallVector<Element, n>& list) {
  return Value::list_of(list);
}
template <size_t n>
Value box(const std::array<bool, n>& list) {
  return Value::list_of(list);
}
template <typename T>
Value box(const std::optional<T>& value) {
  return value ? box(*value) : Value();
}
template <typename Span>
Value box(const OptionalSpan<Span>& list) {
  return list ? box(*list) : Value();
}
template <typename Span>
Value box(const OneOrMore<Span>& list) {
  return box(static_cast<const Span&>(list));
}
template <typename... T>
Value box(const std::tuple<T...>& values) {
  return std::apply([](const auto&... v) { return Value::tuple({box(v)...}); }, values);
}

// The boxed form of plain typed functions, made from their signature: `cell` is where the pointer to one is.
// Converted arguments live until the call is over.
template <typename Signature>
struct Trampoline;
template <typename R, typename... A>
struct Trampoline<R(A...)> {
  static Value call(const void* cell, Args args) {
    check_count(args.size(), sizeof...(A));
    return call(*static_cast<R (*const*)(A...)>(cell), args, std::index_sequence_for<A...>());
  }

 private:
  template <size_t... i>
  static Value call(R (*fn)(A...), Args args, std::index_sequence<i...>) {
    if constexpr (std::is_void_v<R>) return fn(Unboxed<std::remove_cvref_t<A>>(args[i]).get()...), Value();
    else return box(fn(Unboxed<std::remove_cvref_t<A>>(args[i]).get()...));
  }
};

}  // namespace boxing
}  // namespace weft
