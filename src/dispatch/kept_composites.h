#pragma once

#include <unordered_set>

#include "weft/dispatch/operator.h"

namespace weft {

// While it lives, these composites pass functionalisation and the recorder below autograd whole; whatever is
// below meets their parts. For calls of which no gradient is recorded.
class KeptCompositesScope {
 public:
  explicit KeptCompositesScope(std::unordered_set<const Operator*> operators);
  ~KeptCompositesScope();
  KeptCompositesScope(const KeptCompositesScope&) = delete;

 private:
  std::unordered_set<const Operator*> operators_;
  const std::unordered_set<const Operator*>* outer_;
};

}  // namespace weft
