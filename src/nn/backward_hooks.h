#pragma once

#include "weft/nn/module.h"

namespace weft::nn {

// The backward hooks of one call of a module: functions that change nothing stand where its arguments go in
// and its result comes out, and see the gradients pass. Does nothing where there are no hooks.
class BackwardHooks {
 public:
  explicit BackwardHooks(const ModuleState& module);
  // Takes the place of the tensors among the arguments.
  void enter(ValueList& inputs);
  // The result, of tensors at any depth.
  Value leave(const Value& output);
  ~BackwardHooks();

 private:
  struct Gate;
  struct In;
  struct Out;
  Ref<Gate> gate_;
};

}  // namespace weft::nn
