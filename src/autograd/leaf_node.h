#pragma once

#include <mutex>

#include "weft/autograd/grad_node.h"

namespace weft {

// The end of the tape for a leaf: adds what arrives to the leaf's `.grad`. It does not keep the leaf alive:
// nobody could read the gradient of a tensor that is gone.
class LeafNode final : public GradNode {
 public:
  explicit LeafNode(const Tensor& variable);
  std::string name() const override { return "AccumulateGrad"; }
  std::vector<Tensor> apply(std::vector<Tensor> grads) override;

  // The leaf; undefined when it is gone.
  Tensor variable() const;
  void forget_variable();

 private:
  mutable std::mutex mutex_;  // several threads may run backward into one leaf
  TensorImpl* variable_;
};

}  // namespace weft
