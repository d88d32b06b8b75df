#pragma once

#include <functional>
#include <memory>

#include "weft/aot/aot_function.h"

namespace weft {

// What runs a captured graph: gives a function of the graph's arguments, of which `examples` are some.
using Backend = std::function<ValueFunction(const GraphModule& graph, const ValueList& examples)>;

// Forward and backward ahead of time, as `options` say; without a compiler, their graphs are interpreted.
Backend aot_eager(AotOptions options = {});

// A function that is captured when it is called with arguments of a new kind, and run by a back end. The kind
// of a call is the structure of its arguments, the types, sizes, strides and requires_grad of their tensors,
// what of them shares memory, the other values, and the grad mode. Copies are handles.
class Compiled {
 public:
  Compiled(ValueFunction f, Backend backend);

  template <typename... A>
  Tensor operator()(const A&... args) const {
    return from_value<Tensor>(call({to_value(args)...}));
  }
  Value call(Args args) const;
  Value call(std::initializer_list<Value> args) const { return call(Args(args.begin(), args.size())); }
  ValueFunction function() const;
  // How many kinds of calls were captured so far.
  size_t num_captures() const;

 private:
  struct Body;
  std::shared_ptr<Body> body_;
};

// Captures f above autograd, and hands the graph to `backend`.
//
//   auto fast = compile(f, aot_eager({.partitioner = aot::min_cut_partitioner()}));
//   fast(x).sum().backward();
template <typename F>
Compiled compile(F f, Backend backend = aot_eager()) {
  return Compiled(as_value_function(std::move(f)), std::move(backend));
}

}  // namespace weft
