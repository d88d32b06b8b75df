#pragma once

#include <functional>
#include <utility>

#include "weft/core/value.h"
#include "weft/ops/operators.h"

// Function transforms: each takes a function of tensors and gives another one. They nest in any order.
//
//   auto f = [](const Tensor& x) { return (x * x).sum(); };
//   Tensor g = func::grad(f)(x);
//   Tensor per_sample = func::vmap(func::grad(f))(batch);

namespace weft::func {

using Tensors = std::vector<Tensor>;
// What every transform works on: tensors in, tensors out.
using Fn = std::function<Tensors(const Tensors&)>;

// --- callables of C++ as Fn ------------------------------------------------------------------------------

namespace detail {
inline void append(Tensors& all, const Tensor& tensor) { all.push_back(tensor); }
inline void append(Tensors& all, const Tensors& tensors) {
  all.insert(all.end(), tensors.begin(), tensors.end());
}
template <typename... T>
void append(Tensors& all, const std::tuple<T...>& values) {
  std::apply([&](const auto&... v) { (append(all, v), ...); }, values);
}
template <typename A, typename B>
void append(Tensors& all, const std::pair<A, B>& values) {
  append(all, values.first);
  append(all, values.second);
}
template <typename R>
Tensors flatten_results(const R& result) {
  Tensors all;
  append(all, result);
  return all;
}
template <typename F, size_t... i>
auto call_with(const F& f, const Tensors& args, std::index_sequence<i...>) {
  return f(args[i]...);
}
template <typename F, size_t n, typename... T>
constexpr bool takes() {
  if constexpr (sizeof...(T) == n) return std::is_invocable_v<const F&, T...>;
  else return takes<F, n, T..., const Tensor&>();
}
template <size_t n, typename F>
Tensors try_call(const F& f, const Tensors& args) {
  if constexpr (takes<F, n>()) {
    if (args.size() == n) return flatten_results(call_with(f, args, std::make_index_sequence<n>()));
  }
  if constexpr (n < 8) return try_call<n + 1>(f, args);
  else fail("the function cannot be called with {} tensors", args.size());
}
}  // namespace detail

// Any callable of up to eight tensors, or of one vector of tensors, that gives a tensor, a vector, a pair or
// a tuple of them.
template <typename F>
Fn as_fn(F f) {
  if constexpr (std::is_same_v<F, Fn>) return f;
  else if constexpr (std::is_invocable_v<const F&, const Tensors&> &&
                     !std::is_invocable_v<const F&, const Tensor&>)
    return [f = std::move(f)](const Tensors& args) { return detail::flatten_results(f(args)); };
  else return [f = std::move(f)](const Tensors& args) { return detail::try_call<1>(f, args); };
}

// A transformed function: callable with tensors, or with a vector of them.
class Transformed {
 public:
  explicit Transformed(Fn fn) : fn_(std::move(fn)) {}
  Tensors operator()(const Tensors& args) const { return fn_(args); }
  // The one result of a call; an error when there are several.
  template <typename... T>
    requires(std::is_convertible_v<T, Tensor> && ...)
  Tensor operator()(const T&... args) const {
    return only(fn_(Tensors{args...}));
  }
  const Fn& fn() const { return fn_; }

 private:
  static Tensor only(Tensors results);
  Fn fn_;
};
namespace detail {
template <typename F>
Fn fn_of(F f) {
  if constexpr (std::is_same_v<F, Transformed>) return f.fn();
  else return as_fn(std::move(f));
}
// An error for a tensor that has no derivatives.
void require_differentiable(const char* what, const Tensors& inputs);
// The argument that `argnum` means, of `count`; a negative one counts from the end.
size_t argument_at(const char* what, int argnum, size_t count);
}  // namespace detail

// --- reverse mode ----------------------------------------------------------------------------------------

// A pullback: from cotangents of a function's results to those of its inputs, at the inputs that it ran on.
class Pullback {
 public:
  using Run = std::function<Tensors(const Tensors&, bool, std::optional<bool>)>;
  explicit Pullback(Run run) : run_(std::move(run)) {}

  // Without `retain_graph` this is the last call: what the function saved is given up. `create_graph` says
  // whether gradients have a derivative themselves; by default they do where gradients are recorded.
  Tensors operator()(const Tensors& gradients, bool retain_graph = true,
                     std::optional<bool> create_graph = std::nullopt) const {
    return run_(gradients, retain_graph, create_graph);
  }
  // The same over Values, to be captured: tensors, then retain_graph and create_graph where they are given.
  std::function<Value(Args)> function() const;

 private:
  Run run_;
};

// f(inputs), and its pullback at these inputs.
std::pair<Tensors, Pullback> vjp_of(const Fn& f, const Tensors& inputs);
template <typename F>
std::pair<Tensors, Pullback> vjp(F f, const Tensors& inputs) {
  detail::require_differentiable("vjp", inputs);
  return vjp_of(detail::fn_of(std::move(f)), inputs);
}

// The gradient of a function with one scalar result, with respect to the arguments `argnums`; negative ones
// count from the end.
Transformed grad_of(Fn f, std::vector<int> argnums);
template <typename F>
Transformed grad(F f, std::vector<int> argnums = {0}) {
  return grad_of(detail::fn_of(std::move(f)), std::move(argnums));
}
// The same with the value of the function in front.
Transformed value_and_grad_of(Fn f, std::vector<int> argnums);
template <typename F>
Transformed value_and_grad(F f, std::vector<int> argnums = {0}) {
  return value_and_grad_of(detail::fn_of(std::move(f)), std::move(argnums));
}

// The same in functorch's order: the gradients, then the value.
Transformed grad_and_value_of(Fn f, std::vector<int> argnums);
template <typename F>
Transformed grad_and_value(F f, std::vector<int> argnums = {0}) {
  return grad_and_value_of(detail::fn_of(std::move(f)), std::move(argnums));
}

// --- forward mode ----------------------------------------------------------------------------------------

// f(inputs), and the Jacobian-vector product with `tangents`.
std::pair<Tensors, Tensors> jvp_of(const Fn& f, const Tensors& inputs, const Tensors& tangents);
template <typename F>
std::pair<Tensors, Tensors> jvp(F f, const Tensors& inputs, const Tensors& tangents) {
  detail::require_differentiable("jvp", inputs);
  return jvp_of(detail::fn_of(std::move(f)), inputs, tangents);
}

// --- batching --------------------------------------------------------------------------------------------

// How random operators act under vmap.
enum class Randomness : uint8_t { kError, kSame, kDifferent };

struct VmapOptions {
  // The dim of each argument to map over; kNoDim for an argument that is the same for all. Empty: dim 0 of
  // each.
  std::vector<int64_t> in_dims = {};
  // Where the mapped dim goes in each result; kNoDim for one without it. Empty: dim 0 of each.
  std::vector<int64_t> out_dims = {};
  Randomness randomness = Randomness::kError;
};
inline constexpr int64_t kNoDim = INT64_MIN;

// The function for one example, applied to a whole batch at once.
Transformed vmap_of(Fn f, VmapOptions options);
template <typename F>
Transformed vmap(F f, VmapOptions options = {}) {
  return vmap_of(detail::fn_of(std::move(f)), std::move(options));
}

// --- whole derivatives -----------------------------------------------------------------------------------

// The Jacobian of f's results with respect to argument `argnum`: sizes of the result, then of the argument.
// By reverse mode (a row at a time) and by forward mode (a column at a time), all in one batch.
Transformed jacrev_of(Fn f, int argnum);
Transformed jacfwd_of(Fn f, int argnum);
template <typename F>
Transformed jacrev(F f, int argnum = 0) {
  return jacrev_of(detail::fn_of(std::move(f)), argnum);
}
template <typename F>
Transformed jacfwd(F f, int argnum = 0) {
  return jacfwd_of(detail::fn_of(std::move(f)), argnum);
}
// The Hessian: forward over reverse.
template <typename F>
Transformed hessian(F f, int argnum = 0) {
  return jacfwd_of(jacrev_of(detail::fn_of(std::move(f)), argnum).fn(), argnum);
}

}  // namespace weft::func
