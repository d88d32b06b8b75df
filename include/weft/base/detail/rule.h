#pragma once

#include <concepts>
#include <cstddef>
#include <utility>

namespace weft {

template <typename Signature>
class Rule;

// A function in a table that lives as long as the process: a plain one, constant-initialised, or one with
// state of its own, which is then kept for ever.
template <typename R, typename... A>
class Rule<R(A...)> {
 public:
  constexpr Rule() = default;
  constexpr Rule(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)
  template <std::convertible_to<R (*)(A...)> F>
  constexpr Rule(F f) : plain_(f) {}  // NOLINT(google-explicit-constructor)
  // A plain function that is also given `state`, which lives as long as the process.
  constexpr Rule(R (*f)(const void* state, A...), const void* state) : stateful_(f), state_(state) {}
  template <typename F>
  static Rule keeping(F f) {
    Rule rule;
    rule.state_ = new F(std::move(f));
    rule.stateful_ = [](const void* state, A... args) -> R {
      return (*static_cast<const F*>(state))(std::forward<A>(args)...);
    };
    return rule;
  }

  R operator()(A... args) const {
    return plain_ ? plain_(std::forward<A>(args)...) : stateful_(state_, std::forward<A>(args)...);
  }
  constexpr explicit operator bool() const { return plain_ || stateful_; }

 private:
  R (*plain_)(A...) = nullptr;
  R (*stateful_)(const void*, A...) = nullptr;
  const void* state_ = nullptr;
};

}  // namespace weft
