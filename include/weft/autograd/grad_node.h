#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/stack_trace.h"
#include "weft/dispatch/op_def.h"
#include "weft/dispatch/origin.h"

namespace weft {

class GradNode;

// An edge of the tape: where a gradient goes, a result of the forward call that `node` differentiates.
struct Edge {
  Ref<GradNode> node;
  uint32_t result = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};
template <>
inline constexpr bool is_relocatable<Edge> = true;

// What backward knows of a forward result: incoming gradients are summed and cast to it.
struct ResultShape {
  DType dtype = DType::kFloat32;
  Device device;
  SymInts sizes;
};

// Where a `.grad` is kept; the tape may hold on to it without holding the tensor.
struct GradSlot : RefCounted, Pooled {
  Tensor grad;
};

using TensorHook = std::function<Tensor(const Tensor&)>;  // an undefined result leaves the gradient as it is
using NodeHook =
    std::function<void(std::vector<Tensor>& inputs_grads, const std::vector<Tensor>& result_grads)>;

struct NodeHooks {
  struct Entry {
    uint64_t id;
    uint32_t result;
    TensorHook hook;
  };
  std::vector<Entry> pre;                           // on the gradient of a result, before the node runs
  std::vector<std::pair<uint64_t, NodeHook>> post;  // after it ran
  std::vector<std::pair<uint32_t, Ref<GradSlot>>> retained;  // results that keep their gradient
  uint64_t next_id = 1;
};

// One recorded call on the tape. `apply` is its pullback: from gradients of its results to gradients of its
// inputs, which go along `next`. Nodes are freed iteratively: a chain of a million does not recurse.
class GradNode : public RefCounted, public Pooled {
 public:
  GradNode();
  virtual ~GradNode();
  static void release_last(GradNode* node) noexcept;

  virtual std::string name() const = 0;
  // `grads` has an entry, possibly undefined, for each result.
  virtual std::vector<Tensor> apply(std::vector<Tensor> grads) = 0;
  // Frees what was saved for backward; a later apply is an error.
  virtual void release_saved() {}
  // Whether anything of it may still be asked for input i (set by the engine when only some inputs are
  // needed).
  bool wants_input(size_t i) const { return i < next.size() && static_cast<bool>(next[i]); }

  SmallVector<Edge, 2> next;  // one for each differentiable input; null where no gradient is wanted
  SmallVector<ResultShape, 1> results;
  std::unique_ptr<NodeHooks> hooks;
  std::unique_ptr<const StackTrace> forward_trace;  // in anomaly mode: where the forward call was made
  OriginRef origin;                                 // of the forward call, where somebody recorded it
  uint64_t sequence;                                // later calls have larger numbers
  // Another node runs it too, in the same backward or before: what it saved lives as long as somebody holds
  // it.
  bool is_part = false;

  NodeHooks& ensure_hooks();
};

// The autograd state of a tensor: of a leaf, or of a result with its node on the tape.
struct VariableMeta final : AutogradMeta, Pooled {
  Ref<GradNode> grad_fn;
  uint32_t result = 0;
  Ref<GradSlot> slot;         // made on first use, like the next
  Ref<GradNode> leaf_node;    // adds to `.grad`
  uint32_t view_version = 0;  // the version at which grad_fn of a view was right
  Tensor& grad() {
    if (!slot) slot = make_ref<GradSlot>();
    return slot->grad;
  }
  ~VariableMeta() override;
  void forget_history() override {
    grad_fn.reset();
    result = 0;
  }
};

namespace autograd {

// The meta of a tensor; made on first use.
VariableMeta& variable_meta(const Tensor& tensor);
VariableMeta* variable_meta_or_null(const Tensor& tensor);
// Where the gradient of `tensor` goes; null when it requires none. For a view whose base was written to, its
// history is made anew from the base.
Edge gradient_edge(const Tensor& tensor);
Ref<GradNode> grad_fn(const Tensor& tensor);
// Makes `tensor` a result of `node`.
void set_history(const Tensor& tensor, const Ref<GradNode>& node);
// A new tensor over the same memory with no history; the recorder takes it for the same value.
Tensor shallow_copy(const Tensor& tensor);

}  // namespace autograd

// Switches the recording of gradients off (on) for a scope.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();

 private:
  bool saved_;
};
using NoGradGuard = NoGrad;
class EnableGrad {
 public:
  EnableGrad();
  ~EnableGrad();

 private:
  bool saved_;
};
bool is_grad_enabled();

}  // namespace weft
