#pragma once

#include "weft/core/callable.h"
#include "weft/core/pytree.h"

// Control flow that captures keep: a program written with these has its branches and loops in the graph. The
// functions take and give tensors, numbers and pytrees of them; tensors that they capture become operands.
// Outside of a capture they are plain C++ control flow.
//
// In a capture or a transform each function runs once, during the call and on tensors without data; its graph
// is what runs then, in backward too. A tensor that a function gives back as it is has no history there if
// the call is made under NoGrad; plain C++ control flow gives the very tensor.
//
//   Tensor y = func::cond(x.sum() > 0, [](const Tensor& x) { return x.cos(); },
//                         [](const Tensor& x) { return x.sin(); }, x);

namespace weft::func {

// One of two functions on the same operands. Both must give the same structure, types and sizes. `pred` is a
// bool, a symbolic one, or a tensor of one.
Value cond(const Value& pred, const ValueFunction& on_true, const ValueFunction& on_false,
           const ValueList& operands);
// f(x[i], args...) for each i of dim 0 of `xs` (a tensor or a tree of them); results are stacked.
Value map(const ValueFunction& f, const Value& xs, const ValueList& args = {});
// (carry, y) = f(carry, x[i]) for each i of dim 0 of `xs`, beginning with `init`: the last carry, and the ys
// stacked. In a capture or transform the carry must keep its structure, types and sizes.
Value scan(const ValueFunction& f, const Value& init, const Value& xs);
// body(carried) as long as condition(carried), a bool or a tensor of one; what is carried at the end, a
// tuple. In a capture or transform what is carried must keep its types and sizes.
Value while_loop(const ValueFunction& condition, const ValueFunction& body, const ValueList& carried);

// The same for functions with a signature.
template <typename T, typename F, typename... A>
  requires std::is_invocable_v<T, const A&...>
auto cond(const Value& pred, T on_true, F on_false, const A&... operands) {
  using R = std::decay_t<std::invoke_result_t<T, const A&...>>;
  return from_value<R>(cond(pred, make_callable(std::move(on_true)), make_callable(std::move(on_false)),
                            {to_value(operands)...}));
}
template <typename F, typename... A>
  requires std::is_invocable_v<F, const Tensor&, const A&...>
Tensor map(F f, const Tensor& xs, const A&... args) {
  return from_value<Tensor>(map(make_callable(std::move(f)), Value(xs), {to_value(args)...}));
}

}  // namespace weft::func
