#pragma once

#include "weft/autograd/grad_node.h"

namespace weft::autograd {

struct BackwardOptions {
  // Keeps what was saved, so that the same graph can be run again. Defaults to `create_graph`.
  std::optional<bool> retain_graph;
  // Records the backward pass itself, so that its results can be differentiated.
  bool create_graph = false;
};

// Adds d(sum of tensors * gradients)/d(leaf) to `.grad` of every leaf that requires a gradient. An undefined
// gradient stands for 1 and needs a tensor of one element.
void backward(TensorSpan tensors, TensorSpan gradients = {}, const BackwardOptions& options = {});

struct GradOptions {
  std::optional<bool> retain_graph;
  bool create_graph = false;
  // An input that the outputs do not depend on is an error, unless allowed: then its gradient is undefined.
  bool allow_unused = false;
  bool materialize_grads = false;  // zeros instead of undefined; implies allow_unused
};

// The gradients of `outputs` (weighted by `gradients`) with respect to `inputs`; no `.grad` is touched.
std::vector<Tensor> grad(TensorSpan outputs, TensorSpan inputs, TensorSpan gradients = {},
                         const GradOptions& options = {});

// Removes a hook when asked to; letting it go leaves the hook in place.
class HookHandle {
 public:
  HookHandle() = default;
  HookHandle(Ref<GradNode> node, uint64_t id) : node_(std::move(node)), id_(id) {}
  void remove();

 private:
  Ref<GradNode> node_;
  uint64_t id_ = 0;
};

// Calls `hook` with the gradient of `tensor` in every backward; what it returns, if defined, replaces it.
HookHandle register_hook(const Tensor& tensor, TensorHook hook);
// Makes a tensor that is not a leaf keep its gradient in `.grad`.
void retain_grad(const Tensor& tensor);

}  // namespace weft::autograd
