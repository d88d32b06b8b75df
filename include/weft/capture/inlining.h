#pragma once

#include <utility>

namespace weft {

// While one lives, a trace on this thread keeps calls of what was traced before as calls: a traced function
// as one step over a graph of its own (prim::CallFunction in the script view), the forward of a traced child
// as a call of that child (prim::CallMethod). Otherwise, and for other methods, the trace holds what they do.
//
//   NoInlineScope keep_calls;
//   TracedModule traced = trace(net, x);
class NoInlineScope {
 public:
  NoInlineScope() : saved_(std::exchange(is_inlining_, false)) {}
  ~NoInlineScope() { is_inlining_ = saved_; }
  NoInlineScope(const NoInlineScope&) = delete;

  // Whether there is none on this thread.
  static bool is_inlining() noexcept { return is_inlining_; }

 private:
  static constinit thread_local bool is_inlining_;
  bool saved_;
};

}  // namespace weft
