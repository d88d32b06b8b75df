#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace weft {

template <typename Signature>
class FunctionRef;

// A reference to anything callable: two words, no allocation, owns nothing. For parameters that are called
// before the function returns; storing one beyond the callable's life is an error that nothing catches.
template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  template <typename F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> && std::is_invocable_r_v<R, F&, Args...>)
  FunctionRef(F&& callable) noexcept {  // NOLINT(google-explicit-constructor)
    using Target = std::remove_reference_t<F>;
    if constexpr (std::is_function_v<Target>) {
      callee_.function = reinterpret_cast<void (*)()>(&callable);
      call_ = [](Callee callee, Args... args) -> R {
        return std::invoke(reinterpret_cast<Target*>(callee.function), std::forward<Args>(args)...);
      };
    } else {
      callee_.object = const_cast<void*>(static_cast<const void*>(std::addressof(callable)));
      call_ = [](Callee callee, Args... args) -> R {
        return std::invoke(*static_cast<Target*>(callee.object), std::forward<Args>(args)...);
      };
    }
  }

  R operator()(Args... args) const { return call_(callee_, std::forward<Args>(args)...); }

 private:
  // A function's address need not fit a `void*`.
  union Callee {
    void* object;
    void (*function)();
  };
  Callee callee_;
  R (*call_)(Callee, Args...);
};

}  // namespace weft
