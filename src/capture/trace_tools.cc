#include "weft/capture/trace_tools.h"

#include <unordered_set>

#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/core/pytree.h"
#include "weft/ops/extension.h"

namespace weft {

Value clone_inputs(const Value& inputs) {
  auto clone_tensor = [](const Tensor& tensor) {
    Tensor copy;
    {
      NoGrad no_grad;
      // Only the kind itself knows how its elements lie in memory: it is asked for no format.
      const bool is_opaque = layout_of(tensor) != "strided";
      copy = is_opaque ? tensor.detach().clone() : tensor.detach().clone(MemoryFormat::kPreserve);
      if (tensor.requires_grad()) copy.set_requires_grad();
      if (Tensor grad = tensor.is_leaf() ? tensor.grad() : Tensor(); grad.defined())
        copy.set_grad(clone_inputs(grad).to_tensor());
    }
    return copy;
  };
  return tree_map(
      [&](const Value& leaf) -> Value {
        if (leaf.is_none()) return leaf;
        require(leaf.is_tensor(), "clone_inputs: tensors were expected, but got {}", leaf.kind_name());
        return clone_tensor(leaf.tensor_ref());
      },
      inputs);
}

nn::NamedTensors unique_state_dict(const nn::Module& module, bool keep_vars) {
  nn::NamedTensors unique;
  std::unordered_set<const TensorImpl*> seen;
  for (const auto& [name, tensor] : module.state_dict())
    if (seen.insert(tensor.impl()).second) unique.emplace_back(name, keep_vars ? tensor : tensor.detach());
  return unique;
}

}  // namespace weft
