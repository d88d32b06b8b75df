#include "func/substitution.h"

namespace weft {

Value SubstitutionLevel::handle(const Operator& op, Args args) {
  std::vector<Value> replaced = map_tensors(args, [&](const Tensor& tensor) {
    auto found = others_.find(tensor.impl());
    return Value(found == others_.end() ? tensor : found->second);
  });
  BelowLevel below(*this);
  return dispatch::redispatch(op, replaced);
}

}  // namespace weft
