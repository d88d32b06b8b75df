#pragma once

#include <functional>

#include "weft/dispatch/operator.h"

// Operators of your own, at run time:
//
//   const Operator& scale = define_operator("mine::scale(Tensor x, float by=2.0) -> Tensor", {
//       .kernel = [](const Tensor& x, double by) { return x * by; },
//       .meta = [](const Tensor& x, double) { return contiguous_spec(x.sizes(), x.dtype(), x.device()); },
//       .vjp = {.rule = [](const Vjp& v) { return Grads{v.grad() * v.arg<double>(1)}; }},
//   });
//   Tensor y = call(scale, {x}).to_tensor();            // or call("mine::scale", {x, 3.0})

namespace weft {

// Any callable over the C++ types of a schema's arguments (see docs/adding_an_operator.md), or over boxed
// arguments
// (`Value(Args)`).
class AnyFunction {
 public:
  AnyFunction() = default;
  template <typename F>
    requires(!std::same_as<std::remove_cvref_t<F>, AnyFunction>)
  AnyFunction(F f) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::is_invocable_r_v<Value, const F&, Args>) {
      boxed_ = std::move(f);
    } else {
      adapt(std::function(std::move(f)));
    }
  }

  explicit operator bool() const { return static_cast<bool>(boxed_); }
  const std::function<Value(Args)>& boxed() const { return boxed_; }
  // How many arguments it takes; -1 for any number.
  int arity() const { return arity_; }

 private:
  template <typename R, typename... A>
  void adapt(std::function<R(A...)> f) {
    arity_ = sizeof...(A);
    boxed_ = [f = std::move(f)](Args args) -> Value {
      return [&]<size_t... i>(std::index_sequence<i...>) -> Value {
        std::tuple<boxing::Unboxed<std::remove_cvref_t<A>>...> unboxed(args[i]...);
        if constexpr (std::is_void_v<R>) {
          f(std::get<i>(unboxed).get()...);
          return Value();
        } else {
          return boxing::box(f(std::get<i>(unboxed).get()...));
        }
      }(std::index_sequence_for<A...>{});
    };
  }

  std::function<Value(Args)> boxed_;
  int arity_ = -1;
};

// What is known of an operator; all but one of `kernel` and `composite` may be left out. Without a `meta` it
// cannot run on tensors without data, without a `vjp` backward through it is an error, without a `batch` rule
// vmap loops.
struct OperatorRules {
  AnyFunction kernel = {};     // runs below every layer
  AnyFunction composite = {};  // instead: other operators, which every layer sees
  AnyFunction meta = {};       // gives a TensorSpec for each Tensor
  struct {
    Saves saves = {};
    std::function<Grads(const Vjp&)> rule = {};
    uint32_t differentiable_results = ~0u;
  } vjp = {};
  std::function<std::vector<Tensor>(const Jvp&)> jvp = {};
  std::function<Batched(const Batch&)> batch = {};
  AnyFunction decompose = {};
  AnyFunction inverse = {};  // of a view
  Traits traits = Traits::kNone;
};

// Adds an operator to the table for the rest of the process. Its name must be new.
const Operator& define_operator(std::string_view schema, OperatorRules rules);

}  // namespace weft
