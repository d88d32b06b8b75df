#pragma once

#include <utility>

namespace weft {

// While one lives, calls of traced functions and modules on this thread run optimised forms of their graphs,
// or do not. They do unless something else is said. Results and gradients are the same, bit for bit:
// `TracedFunction::graph_for` gives what a call would run. A call that something watches (a capture, a
// transform, a mode) runs the graph as it was traced.
//
//   OptimizedExecution off(false);
class OptimizedExecution {
 public:
  explicit OptimizedExecution(bool on) : saved_(std::exchange(is_on_, on)) {}
  ~OptimizedExecution() { is_on_ = saved_; }
  OptimizedExecution(const OptimizedExecution&) = delete;

  static bool is_on() noexcept { return is_on_; }

 private:
  static constinit thread_local bool is_on_;
  bool saved_;
};

}  // namespace weft
