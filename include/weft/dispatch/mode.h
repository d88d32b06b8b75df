#pragma once

#include "weft/dispatch/layers.h"

namespace weft {

// Sees every operator call of the thread below autograd: a counter, a logger, a factory that wraps. The most
// recently entered mode sees a call first; inside its handler it is off, and calls go on to the modes entered
// before it and to the layers below.
class Mode {
 public:
  virtual ~Mode() = default;
  // `dispatch::redispatch(op, args)` passes the call on.
  virtual Value handle(const Operator& op, Args args) = 0;
};

// Enters a mode for a scope.
class ModeScope {
 public:
  explicit ModeScope(Mode& mode);
  ~ModeScope();
  ModeScope(const ModeScope&) = delete;

 private:
  friend Value layers::modes(const Operator&, Args);
  Mode& mode_;
  ModeScope* outer_;
};

}  // namespace weft
