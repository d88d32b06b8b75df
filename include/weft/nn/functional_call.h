#pragma once

#include "weft/nn/module.h"

namespace weft::nn {

// Inside the scope, operators that are given one of the module's parameters or buffers get the tensor of that
// name instead. The module itself is not touched. Names that it does not have, and other sizes, are errors;
// what is not named stays as it is.
class Substitution {
 public:
  Substitution(const Module& module, const NamedTensors& tensors);
  ~Substitution();
  Substitution(const Substitution&) = delete;

 private:
  struct Entry;
  std::unique_ptr<Entry> entry_;
};

// module(args...), with other tensors in place of its own: how a module becomes a function that transforms
// can take.
//
//   auto loss = [&](const Tensor& w) { return nn::functional_call(net, {{"fc.weight", w}}, x).sum(); };
//   Tensor g = func::grad(loss)(w);
template <typename M, typename... A>
auto functional_call(M& module, const NamedTensors& tensors, A&&... args) {
  Substitution scope(module, tensors);
  return module(std::forward<A>(args)...);
}

}  // namespace weft::nn
