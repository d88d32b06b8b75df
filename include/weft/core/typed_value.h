#pragma once

#include <array>
#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/core/struct.h"
#include "weft/core/value.h"

namespace weft {

// C++ types as Values and back:
//   Value v = to_value(std::map<std::string, std::vector<Tensor>>{{"a", {x, y}}});   {'a': [f32[2], f32[2]]}
//   auto tensors = from_value<std::map<std::string, std::vector<Tensor>>>(v);
// Tensors, numbers, strings and what else a Value holds; std::optional (None), vector and array (lists), pair
// and tuple (tuples), map and Dict (dictionaries), registered structs; in any nesting.
template <typename T>
Value to_value(const T& value);
// An error that says where, what was expected and what is there: `at ['a'][1]: expected a tensor but got an
// integer (3)`. Numbers widen (bool, integer, real, complex) but never narrow; sequences may be lists or
// tuples.
template <typename T>
T from_value(const Value& value);

// Names the fields of a struct, inside it, so that it converts and pytrees walk through it:
//   struct Batch {
//     Tensor images;
//     std::optional<Tensor> labels;
//     WEFT_STRUCT(Batch, images, labels)
//   };
// WEFT_STRUCT_AS gives it another name in files. With `static constexpr bool kKeepsNone = true;` fields that
// are None are leaves of pytrees. For a struct of someone else, specialise StructTraits.
#define WEFT_STRUCT(Type, ...) WEFT_STRUCT_AS(#Type, __VA_ARGS__)
#define WEFT_STRUCT_AS(file_name, ...)                           \
  static const char* weft_struct_name() { return file_name; }    \
  static const char* weft_field_names() { return #__VA_ARGS__; } \
  auto weft_fields() { return std::tie(__VA_ARGS__); }           \
  auto weft_fields() const { return std::tie(__VA_ARGS__); }

// What is known of a registered struct: its name in files, its fields' names separated by commas, and
// references to its fields.
template <typename T>
struct StructTraits {
  static const char* name()
    requires requires { T::weft_struct_name(); }
  {
    return T::weft_struct_name();
  }
  static const char* field_names() { return T::weft_field_names(); }
  static constexpr bool keeps_none() {
    if constexpr (requires { T::kKeepsNone; }) return T::kKeepsNone;
    else return false;
  }
  template <typename S>
  static auto fields(S& object) {
    return object.weft_fields();
  }
};

template <typename T>
concept RegisteredStruct = requires { StructTraits<T>::name(); };

namespace detail {
StructTypeRef register_fields(const char* name, const char* comma_separated_fields, bool keeps_none);

template <typename T>
constexpr bool keeps_none() {
  if constexpr (requires { StructTraits<T>::keeps_none(); }) return StructTraits<T>::keeps_none();
  else return false;
}
}  // namespace detail

template <RegisteredStruct T>
const StructTypeRef& struct_type() {
  static const StructTypeRef type = detail::register_fields(
      StructTraits<T>::name(), StructTraits<T>::field_names(), detail::keeps_none<T>());
  return type;
}

namespace detail {

// The key path to a value: a linked list on the stack, only read to word an error.
struct Place {
  enum class Kind : uint8_t { kArgument, kIndex, kKey, kField };
  const Place* outer;
  Kind kind;
  size_t index = 0;
  const Value* key = nullptr;
  std::string_view field = {};
};
std::string place_text(const Place* place);
[[noreturn]] void wrong_value(const Place* place, std::string_view expected, const Value& got);
[[noreturn]] void wrong_integer(const Place* place, int64_t low, uint64_t high, int64_t got);
const ValueList& sequence_at(const Place* place, const Value& value);
const ValueList& sequence_at(const Place* place, const Value& value, size_t count);
const Dict& dict_at(const Place* place, const Value& value);
// The record's fields in the order of `type`; an error unless it is of that name and has those fields.
ValueList record_at(const Place* place, const Value& value, const StructType& type);

template <typename T>
inline constexpr bool kNever = false;

// How one type converts. `get` throws through `place` when the value is something else.
template <typename T>
struct Converter {
  static constexpr bool kMissing = true;
  static Value put(const T&) {
    static_assert(kNever<T>, "this type does not convert to a Value; is WEFT_STRUCT missing?");
    return {};
  }
  static T get(const Value& value, const Place*) {
    static_assert(kNever<T>, "this type does not convert from a Value; is WEFT_STRUCT missing?");
    return get(value, nullptr);
  }
};
// Whether the type itself (of a container: the container) travels in Values.
template <typename T>
concept ConvertsToValue = std::is_void_v<T> || !requires { Converter<T>::kMissing; };

template <typename T>
T value_at(const Value& value, const Place* place) {
  return Converter<T>::get(value, place);
}

inline bool is_bool_value(const Value& v) { return v.is_bool(); }
inline bool is_int_value(const Value& v) { return v.is_int() || v.is_bool(); }
inline bool is_real_value(const Value& v) { return v.is_double() || is_int_value(v); }
inline bool is_number_value(const Value& v) { return v.is_number(); }
inline bool is_string_value(const Value& v) { return v.is_string(); }
inline bool is_tensor_value(const Value& v) { return v.is_tensor() || v.is_none(); }
inline bool is_dict_value(const Value& v) { return v.is_dict(); }
template <Value::Kind kind>
bool is_of(const Value& v) {
  return v.kind() == kind;
}

// Types that a Value holds as they are: what accepts them, and how they are read.
#define WEFT_HELD_IN_VALUE(Type, accepts, read, expected)        \
  template <>                                                    \
  struct Converter<Type> {                                       \
    static Value put(const Type& value) { return Value(value); } \
    static Type get(const Value& value, const Place* place) {    \
      if (!accepts(value)) wrong_value(place, expected, value);  \
      return value.read();                                       \
    }                                                            \
  };
WEFT_HELD_IN_VALUE(Tensor, is_tensor_value, to_tensor, "a tensor")
WEFT_HELD_IN_VALUE(bool, is_bool_value, to_bool, "a bool")
WEFT_HELD_IN_VALUE(double, is_real_value, to_double, "a real number")
WEFT_HELD_IN_VALUE(Complex<double>, is_number_value, to_complex, "a number")
WEFT_HELD_IN_VALUE(Scalar, is_number_value, to_scalar, "a number")
WEFT_HELD_IN_VALUE(SymInt, is_int_value, to_sym_int, "an integer")
WEFT_HELD_IN_VALUE(SymFloat, is_real_value, to_sym_float, "a real number")
WEFT_HELD_IN_VALUE(SymBool, is_bool_value, to_sym_bool, "a bool")
WEFT_HELD_IN_VALUE(DType, is_of<Value::Kind::kDType>, to_dtype, "a dtype")
WEFT_HELD_IN_VALUE(Device, is_of<Value::Kind::kDevice>, to_device, "a device")
WEFT_HELD_IN_VALUE(Layout, is_of<Value::Kind::kLayout>, to_layout, "a layout")
WEFT_HELD_IN_VALUE(MemoryFormat, is_of<Value::Kind::kMemoryFormat>, to_memory_format, "a memory format")
WEFT_HELD_IN_VALUE(Generator, is_of<Value::Kind::kGenerator>, to_generator, "a generator")
WEFT_HELD_IN_VALUE(Dict, is_dict_value, to_dict, "a dictionary")
#undef WEFT_HELD_IN_VALUE

template <>
struct Converter<Value> {
  static Value put(const Value& value) { return value; }
  static Value get(const Value& value, const Place*) { return value; }
};

template <>
struct Converter<std::string> {
  static Value put(const std::string& value) { return value; }
  static std::string get(const Value& value, const Place* place) {
    if (!value.is_string()) wrong_value(place, "a string", value);
    return std::string(value.to_string_view());
  }
};

template <>
struct Converter<float> {
  static Value put(float value) { return static_cast<double>(value); }
  static float get(const Value& value, const Place* place) {
    return static_cast<float>(value_at<double>(value, place));
  }
};

template <std::integral T>
struct Converter<T> {
  static Value put(T value) { return value; }
  static T get(const Value& value, const Place* place) {
    if (!is_int_value(value)) wrong_value(place, "an integer", value);
    const int64_t wide = value.to_int();
    if (!std::in_range<T>(wide))
      wrong_integer(place, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), wide);
    return static_cast<T>(wide);
  }
};

template <typename T>
struct Converter<std::optional<T>> {
  static Value put(const std::optional<T>& value) { return value ? Converter<T>::put(*value) : Value(); }
  static std::optional<T> get(const Value& value, const Place* place) {
    if (value.is_none()) return std::nullopt;
    return value_at<T>(value, place);
  }
};

template <typename T>
struct Converter<std::vector<T>> {
  static Value put(const std::vector<T>& values) {
    ValueList list;
    list.reserve(values.size());
    for (const T& value : values) list.push_back(Converter<T>::put(value));
    return Value::list(std::move(list));
  }
  static std::vector<T> get(const Value& value, const Place* place) {
    const ValueList& list = sequence_at(place, value);
    std::vector<T> values;
    values.reserve(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      const Place here{place, Place::Kind::kIndex, i};
      values.push_back(value_at<T>(list[i], &here));
    }
    return values;
  }
};

// Tuples, pairs and arrays: a fixed number of elements.
template <typename Elements>
struct FixedSequence {
  static constexpr size_t kCount = std::tuple_size_v<Elements>;
  using Indices = std::make_index_sequence<kCount>;

  static ValueList put_all(const Elements& elements) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return ValueList{Converter<std::tuple_element_t<i, Elements>>::put(std::get<i>(elements))...};
    }(Indices());
  }
  static Elements get(const Value& value, const Place* place) {
    [[maybe_unused]] const ValueList& list = sequence_at(place, value, kCount);
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return Elements{element<i>(list[i], place)...};
    }(Indices());
  }

 private:
  template <size_t i>
  static auto element(const Value& value, const Place* place) {
    const Place here{place, Place::Kind::kIndex, i};
    return value_at<std::tuple_element_t<i, Elements>>(value, &here);
  }
};
template <typename... T>
struct Converter<std::tuple<T...>> : FixedSequence<std::tuple<T...>> {
  static Value put(const std::tuple<T...>& values) { return Value::tuple(Converter::put_all(values)); }
};
template <typename First, typename Second>
struct Converter<std::pair<First, Second>> : FixedSequence<std::pair<First, Second>> {
  static Value put(const std::pair<First, Second>& values) {
    return Value::tuple(Converter::put_all(values));
  }
};
template <typename T, size_t n>
struct Converter<std::array<T, n>> : FixedSequence<std::array<T, n>> {
  static Value put(const std::array<T, n>& values) { return Value::list(Converter::put_all(values)); }
};

template <typename Key, typename T, typename Less>
struct Converter<std::map<Key, T, Less>> {
  static Value put(const std::map<Key, T, Less>& map) {
    Dict dict;
    for (const auto& [key, value] : map) dict.set(Converter<Key>::put(key), Converter<T>::put(value));
    return dict;
  }
  static std::map<Key, T, Less> get(const Value& value, const Place* place) {
    std::map<Key, T, Less> map;
    for (const auto& [key, element] : dict_at(place, value)) {
      const Place here{place, Place::Kind::kKey, 0, &key};
      map.emplace(value_at<Key>(key, &here), value_at<T>(element, &here));
    }
    return map;
  }
};

// Objects by their own class: graph modules, callables, handles.
template <std::derived_from<ValueObject> T>
struct Converter<Ref<T>> {
  static Value put(const Ref<T>& object) { return Ref<ValueObject>(object); }
  static Ref<T> get(const Value& value, const Place* place) {
    if (value.is_none()) return nullptr;
    T* const object = value.object_as<T>();
    if (!object) wrong_value(place, "an object of another type", value);
    return Ref<T>(object);
  }
};

template <RegisteredStruct T>
struct Converter<T> {
  static Value put(const T& object) {
    ValueList fields = std::apply(
        [](const auto&... field) {
          return ValueList{Converter<std::remove_cvref_t<decltype(field)>>::put(field)...};
        },
        StructTraits<T>::fields(object));
    return make_struct(struct_type<T>(), std::move(fields));
  }
  static T get(const Value& value, const Place* place) {
    const StructType& type = *struct_type<T>();
    const ValueList values = record_at(place, value, type);
    T object{};
    size_t i = 0;
    auto read = [&]<typename Field>(Field& field) {
      const Place here{place, Place::Kind::kField, 0, nullptr, type.fields()[i]};
      field = value_at<Field>(values[i], &here);
      ++i;
    };
    std::apply([&](auto&... field) { (read(field), ...); }, StructTraits<T>::fields(object));
    return object;
  }
};

}  // namespace detail

template <typename T>
Value to_value(const T& value) {
  return detail::Converter<T>::put(value);
}
inline Value to_value(const char* text) { return text; }
inline Value to_value(std::string_view text) { return text; }

template <typename T>
T from_value(const Value& value) {
  return detail::value_at<T>(value, nullptr);
}

}  // namespace weft
