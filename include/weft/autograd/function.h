#pragma once

#include <memory>
#include <optional>
#include <tuple>

#include "weft/autograd/grad_node.h"

// Functions with a derivative of your own:
//
//   struct Exp : autograd::Function<Exp> {
//     static Tensor forward(FunctionContext& ctx, const Tensor& x) {
//       Tensor y = exp(x);
//       ctx.save_for_backward({y});
//       return y;
//     }
//     static std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& grads) {
//       return {grads[0] * ctx.saved_tensors()[0]};
//     }
//   };
//   Tensor y = Exp::apply(x);

namespace weft::autograd {

class CustomNode;

// What forward tells backward, and what both know of the call.
class FunctionContext {
 public:
  // Keeps tensors for backward. Inputs and results belong here, and not into `saved_data`: writes to them are
  // noticed, and second derivatives pass through them.
  void save_for_backward(std::vector<Tensor> tensors) { saved_ = std::move(tensors); }
  std::vector<Tensor> saved_tensors() const;
  // Anything else.
  Dict saved_data;

  // In forward: inputs that it writes to; they must be among its results.
  void mark_dirty(std::vector<Tensor> inputs) { dirty_ = std::move(inputs); }
  // In forward: results that carry no gradient.
  void mark_non_differentiable(std::vector<Tensor> results) { non_differentiable_ = std::move(results); }
  // Whether backward sees zeros for results that got no gradient (the default), or undefined tensors.
  void set_materialize_grads(bool materialize) { materialize_grads_ = materialize; }
  // Whether the gradient of this tensor among the arguments is wanted.
  bool needs_input_grad(size_t tensor) const { return tensor < needs_.size() && needs_[tensor]; }

  // --- for the layers that a call passes ---
  std::vector<Tensor> saved_, dirty_, non_differentiable_;
  std::vector<bool> needs_;
  bool materialize_grads_ = true;
  const CustomNode* node_ = nullptr;  // in backward
  // The same words about other tensors: every tensor replaced by `as(tensor)`.
  FunctionContext translated(FunctionRef<Tensor(const Tensor&)> as) const;
};

// A function over tensors with its own derivative; `Function<T>` makes one for each call.
struct CustomFunction : ValueObject {
  virtual std::vector<Tensor> forward(FunctionContext& ctx, const std::vector<Tensor>& tensors) = 0;
  // One gradient for each tensor of forward; an undefined one is zero.
  virtual std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& grads) = 0;
  // Forward mode; nothing where it is to follow from backward.
  virtual std::optional<std::vector<Tensor>> jvp(FunctionContext&, const std::vector<Tensor>&) {
    return std::nullopt;
  }
};

// Calls `function` through every layer: each level of a transform differentiates or batches it as a whole.
std::vector<Tensor> apply_function(Ref<CustomFunction> function, std::vector<Tensor> tensors);
// The last part of a C++ type's name, as messages and graphs show it.
std::string short_type_name(const std::type_info& type);

namespace detail {

// The tensors among arguments of any type.
inline void collect(std::vector<Tensor>& all, Tensor& tensor) {
  all.push_back(std::exchange(tensor, Tensor()));
}
inline void collect(std::vector<Tensor>& all, std::vector<Tensor>& tensors) {
  for (Tensor& tensor : tensors) collect(all, tensor);
}
inline void collect(std::vector<Tensor>& all, std::optional<Tensor>& tensor) {
  if (tensor) collect(all, *tensor);
}
template <typename T>
void collect(std::vector<Tensor>&, T&) {}

inline void put(const std::vector<Tensor>& all, size_t& next, Tensor& tensor) { tensor = all[next++]; }
inline void put(const std::vector<Tensor>& all, size_t& next, std::vector<Tensor>& tensors) {
  for (Tensor& tensor : tensors) put(all, next, tensor);
}
inline void put(const std::vector<Tensor>& all, size_t& next, std::optional<Tensor>& tensor) {
  if (tensor) put(all, next, *tensor);
}
template <typename T>
void put(const std::vector<Tensor>&, size_t&, T&) {}

inline size_t count(const Tensor&) { return 1; }
inline size_t count(const std::vector<Tensor>& tensors) { return tensors.size(); }
inline size_t count(const std::optional<Tensor>& tensor) { return tensor ? 1 : 0; }
template <typename T>
size_t count(const T&) {
  return 0;
}

template <typename R>
struct FunctionResult;
template <>
struct FunctionResult<Tensor> {
  static std::vector<Tensor> flat(Tensor result) { return {std::move(result)}; }
  static Tensor from(std::vector<Tensor> results) { return std::move(results[0]); }
};
template <>
struct FunctionResult<std::vector<Tensor>> {
  static std::vector<Tensor> flat(std::vector<Tensor> results) { return results; }
  static std::vector<Tensor> from(std::vector<Tensor> results) { return results; }
};
template <std::same_as<Tensor>... T>
struct FunctionResult<std::tuple<T...>> {
  static std::vector<Tensor> flat(const std::tuple<T...>& results) {
    return std::apply([](const auto&... t) { return std::vector<Tensor>{t...}; }, results);
  }
  static std::tuple<T...> from(const std::vector<Tensor>& results) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return std::tuple<T...>(results[i]...);
    }(std::index_sequence_for<T...>{});
  }
};

// From one gradient an argument, which is what users return, to one a tensor.
std::vector<Tensor> gradients_of_tensors(const std::string& function,
                                         const std::vector<size_t>& tensors_of_argument,
                                         std::vector<Tensor> given);

// A call of Derived: the arguments as they were given, without their tensors.
template <typename Derived, typename... A>
struct BoundFunction final : CustomFunction {
  explicit BoundFunction(std::tuple<A...> given) : arguments(std::move(given)) {}

  std::vector<Tensor> take_tensors() {
    std::vector<Tensor> all;
    std::apply([&](auto&... argument) { (collect(all, argument), ...); }, arguments);
    return all;
  }
  std::string type_name() const override { return short_type_name(typeid(Derived)); }
  std::vector<Tensor> forward(FunctionContext& ctx, const std::vector<Tensor>& tensors) override {
    std::tuple<A...> complete = arguments;
    size_t next = 0;
    return std::apply(
        [&](auto&... argument) {
          (put(tensors, next, argument), ...);
          using R = std::remove_cvref_t<decltype(Derived::forward(ctx, argument...))>;
          return FunctionResult<R>::flat(Derived::forward(ctx, argument...));
        },
        complete);
  }
  std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& grads) override {
    std::vector<size_t> counts;
    std::apply([&](const auto&... argument) { (counts.push_back(count(argument)), ...); }, arguments);
    return gradients_of_tensors(type_name(), counts, Derived::backward(ctx, grads));
  }
  std::optional<std::vector<Tensor>> jvp(FunctionContext& ctx, const std::vector<Tensor>& tangents) override {
    if constexpr (requires { Derived::jvp(ctx, tangents); }) {
      using R = std::remove_cvref_t<decltype(Derived::jvp(ctx, tangents))>;
      return FunctionResult<R>::flat(Derived::jvp(ctx, tangents));
    } else {
      return std::nullopt;
    }
  }

  std::tuple<A...> arguments;
};

}  // namespace detail

// Derive from it with static `forward(FunctionContext&, arguments...)`, which gives a Tensor, a vector or a
// tuple of them, and static `backward(FunctionContext&, const std::vector<Tensor>& grads)`, which gives one
// gradient for each argument (undefined for arguments that are not tensors; one for each tensor of a list).
// Forward runs without recording. An optional static `jvp(FunctionContext&, tangents)` serves forward mode.
template <typename Derived>
struct Function {
  template <typename... A>
  static auto apply(const A&... arguments) {
    auto bound = make_ref<detail::BoundFunction<Derived, std::decay_t<A>...>>(
        std::tuple<std::decay_t<A>...>(arguments...));
    std::vector<Tensor> tensors = bound->take_tensors();
    std::vector<Tensor> results = apply_function(std::move(bound), std::move(tensors));
    using R = std::remove_cvref_t<decltype(Derived::forward(std::declval<FunctionContext&>(), arguments...))>;
    return detail::FunctionResult<R>::from(std::move(results));
  }
};

}  // namespace weft::autograd
