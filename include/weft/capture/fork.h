#pragma once

#include "weft/core/future.h"
#include "weft/core/typed_value.h"

// Work that is started here and waited for there. A trace keeps both: what was forked is a graph of its own,
// prim::fork in the script view, and waiting for it aten::wait.
//
//   Future<Tensor> left = fork(encoder, x);
//   Tensor both = decoder(y) + left.wait();

namespace weft {

namespace detail {
Ref<FutureObject> fork_values(FunctionRef<Value()> f);
Value wait_values(const Ref<FutureObject>& future);
}  // namespace detail

// What a forked function will have given. Copies are handles to the same.
template <typename R>
class Future {
 public:
  explicit Future(Ref<FutureObject> object) : object_(std::move(object)) {}
  // The result; an error that the function ended with is thrown here, every time.
  R wait() const { return from_value<R>(detail::wait_values(object_)); }

 private:
  Ref<FutureObject> object_;
};

// Runs a function or module on these arguments. It is done when `fork` returns: the calling thread runs it,
// with its modes and layers, and the operators inside spread over all threads. Only its error waits for the
// waiter.
template <typename F, typename... A>
auto fork(F f, const A&... args) {
  using R = std::decay_t<decltype(f(args...))>;
  return Future<R>(detail::fork_values([&] { return to_value<R>(f(args...)); }));
}

}  // namespace weft
