#pragma once

#include "weft/dispatch/operator.h"

namespace weft {

// Arguments with their lazy conjugate and negative bits worked out, for a kernel that does not know them. A
// written argument is written back through its bits afterwards.
class LazyBits {
 public:
  LazyBits(const Operator& op, Args args);
  Args args() const { return resolved_; }
  // Writes back, and gives the result with written arguments as themselves.
  Value finish(const Value& result) const;

 private:
  std::vector<Value> resolved_;
  std::vector<std::pair<Tensor, Tensor>> written_back_;
};

}  // namespace weft
