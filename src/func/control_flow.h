#pragma once

#include "weft/core/callable.h"
#include "weft/core/pytree.h"

namespace weft {

// How the graph of a function gives its leaves. PyTorch captures the functions of cond, scan and while_loop
// whole before the operator sees them, with all that they call, and such graphs give tuples; map by itself
// calls what flattens the user's function, which gives a list.
enum class LeavesAs : uint8_t { kTuple, kList };
// kList in calls that no function of kTuple is around.
LeavesAs leaves_of_map();

// A function of trees as one of leaves.
class FlatFunction {
 public:
  // `arguments` is a tuple: one entry for each argument.
  FlatFunction(ValueFunction f, TreeSpec arguments, LeavesAs leaves = LeavesAs::kTuple);
  // A tuple or a list of leaves.
  Value operator()(Args leaves) const;
  // The structure of the result, once it was called; functions that share it must agree.
  const TreeSpec& result_spec() const { return **result_; }
  void share_result(const FlatFunction& other) { result_ = other.result_; }

 private:
  ValueFunction f_;
  TreeSpec arguments_;
  LeavesAs leaves_;
  std::shared_ptr<std::optional<TreeSpec>> result_;
};

}  // namespace weft
