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

// A function of trees as one of leaves. Tensors that it closes over can be made arguments: they follow the
// others.
class FlatFunction {
 public:
  // `arguments` is a tuple: one entry for each argument.
  FlatFunction(ValueFunction f, TreeSpec arguments, LeavesAs leaves = LeavesAs::kTuple);
  // A tuple or a list of leaves.
  Value operator()(Args leaves) const;
  void lift(std::vector<Tensor> tensors) { lifted_ = std::move(tensors); }
  // The structure of the result, once it was called; functions that share it must agree.
  const TreeSpec& result_spec() const { return **result_; }
  void share_result(const FlatFunction& other) { result_ = other.result_; }
  Ref<Callable> callable() const {
    return make_closure([f = *this](Args leaves) { return f(leaves); });
  }

 private:
  ValueFunction f_;
  TreeSpec arguments_;
  LeavesAs leaves_;
  std::vector<Tensor> lifted_;
  std::shared_ptr<std::optional<TreeSpec>> result_;
};

// The operators over functions, as functions of leaves; differentiable where they can be.
Value apply_cond(const Value& pred, const FlatFunction& on_true, const FlatFunction& on_false,
                 const ValueList& operands);
Value apply_map(const FlatFunction& body, const ValueList& xs, const ValueList& args);
Value apply_scan(const FlatFunction& body, const ValueList& init, const ValueList& xs, const ValueList& args);
Value apply_while(const FlatFunction& condition, const FlatFunction& body, const ValueList& carried,
                  const ValueList& args);

}  // namespace weft
