#pragma once

#include <functional>
#include <span>

#include "weft/core/argument_names.h"
#include "weft/core/typed_value.h"

namespace weft {

// A type-erased function: Values in, a Value out.
using ValueFunction = std::function<Value(Args)>;

// A function as a Value: a closure, a module, a graph module, a branch of a conditional.
class Callable : public ValueObject {
 public:
  Callable() noexcept : ValueObject(Role::kCallable) {}
  virtual Value call(Args args) = 0;
  // Null where nobody told.
  virtual const ArgumentNames* argument_names() const { return nullptr; }
  // Arguments by name go where the names say.
  virtual Value call(Args args, const Kwargs& kwargs);
  std::string type_name() const override { return "function"; }
};
// Null when the Value is no function.
inline Callable* callable_in(const Value& value) {
  return static_cast<Callable*>(value.object_of(ValueObject::Role::kCallable));
}
// A function of Values as a Value; `names` must outlive it.
Ref<Callable> make_closure(ValueFunction f, const ArgumentNames* names = nullptr);

namespace detail {

// What an argument is kept as while the call lasts: views need something to look at.
template <typename Argument>
struct KeptArgument {
  using Type = std::remove_cvref_t<Argument>;
};
template <>
struct KeptArgument<std::string_view> {
  using Type = std::string;
};
template <typename T>
struct KeptArgument<std::span<const T>> {
  using Type = std::vector<T>;
};

template <typename Argument, typename Kept>
decltype(auto) passed(Kept& kept) {
  if constexpr (std::is_same_v<std::remove_cvref_t<Argument>, Kept>) return static_cast<Argument&&>(kept);
  else return Argument(kept);
}

void check_argument_count(size_t expected, size_t got);

template <typename Argument>
auto argument_at(Args arguments, size_t i) {
  const Place place{nullptr, Place::Kind::kArgument, i};
  return value_at<typename KeptArgument<Argument>::Type>(arguments[i], &place);
}

template <typename Result, typename... Arguments>
ValueFunction adapt(std::function<Result(Arguments...)> f) {
  return [f = std::move(f)](Args values) -> Value {
    check_argument_count(sizeof...(Arguments), values.size());
    return [&]<size_t... i>(std::index_sequence<i...>) -> Value {
      // Braces convert in order, so that the first wrong argument is the one reported.
      std::tuple<typename KeptArgument<Arguments>::Type...> kept{argument_at<Arguments>(values, i)...};
      if constexpr (std::is_void_v<Result>) {
        f(passed<Arguments>(std::get<i>(kept))...);
        return {};
      } else {
        return to_value<std::remove_cvref_t<Result>>(f(passed<Arguments>(std::get<i>(kept))...));
      }
    }(std::index_sequence_for<Arguments...>());
  };
}

template <typename R>
R result_of_call(const Value& value) {
  if constexpr (!std::is_void_v<R>) return from_value<std::decay_t<R>>(value);
}

template <typename F>
concept HasOneSignature = requires(F f) { std::function(f); };

}  // namespace detail

// Adapts a function whose signature says its types. Wrong arguments are an error that names their path:
// `argument 1['a'][0]: expected a tensor but got an integer (3)`. A function that returns nothing gives None.
//   ValueFunction f = make_callable([](const Tensor& x, std::optional<double> scale) { return x *
//   scale.value_or(1); });
template <typename F>
ValueFunction make_callable(F f) {
  static_assert(detail::HasOneSignature<F>,
                "make_callable needs a function whose parameters have types, not `auto`");
  return detail::adapt(std::function(std::move(f)));
}

}  // namespace weft
