#pragma once

#include "weft/autograd/grad_node.h"

namespace weft {

// A tensor kept for backward. It remembers the version it had, and refuses to give values written over since.
class SavedTensor {
 public:
  SavedTensor() = default;
  // `is_result`: a result of the node that saves it; its history is left out, or the node would own itself.
  SavedTensor(const Tensor& tensor, bool is_result);

  bool defined() const { return tensor_.defined(); }
  // The tensor with its history; `owner` is the node that saved it.
  Tensor unpack(const Ref<GradNode>& owner) const;
  void reset() { *this = SavedTensor(); }

 private:
  void check_version(const GradNode& owner) const;

  Tensor tensor_;  // a leaf itself; otherwise a copy without history
  Edge history_;
  uint32_t version_ = 0;
  uint32_t result_ = 0;
  bool is_result_ = false;
  bool requires_grad_ = false;
};

}  // namespace weft
