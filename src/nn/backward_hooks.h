#pragma once

#include "weft/nn/module.h"

namespace weft::nn {

// The backward hooks of one call of a module: functions that change nothing stand where its arguments go in
// and its result comes out, and see the gradients pass. Does nothing where there are no hooks.
class BackwardHooks {
 public:
  explicit BackwardHooks(const ModuleState& module);
  std::vector<Tensor> enter(std::vector<Tensor> inputs);
  Tensor leave(const Tensor& output);
  ~BackwardHooks();

 private:
  struct Gate;
  struct In;
  struct Out;
  Ref<Gate> gate_;
};

}  // namespace weft::nn
