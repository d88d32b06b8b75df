#include "losses.h"

#include "commands.h"
#include "weft/autograd/grad_node.h"
#include "weft/core/pytree.h"
#include "weft/ops/functions.h"

namespace weft::cli {

ValueList differentiable_leaves(const ValueList& leaves) {
  ValueList all;
  for (const Value& leaf : leaves) {
    const bool can = leaf.is_tensor() && is_differentiable(leaf.tensor_ref().dtype());
    all.push_back(can ? Value(leaf.tensor_ref().detach().clone().set_requires_grad()) : leaf);
  }
  return all;
}

OutputLoss::OutputLoss(const std::string& kind, const GraphModule& module, const ExportedProgram& program,
                       const ValueList& inputs)
    : is_sum_(kind == "sum") {
  if (kind != "sum" && kind != "mean_square")
    throw UsageError(
        fmt::format("there is no loss '{}' of outputs alone; there are mean_square and sum", kind));
  nn::NamedTensors buffers;
  for (const auto& [name, tensor] : module.named_buffers())
    buffers.emplace_back(name, tensor.detach().clone());
  const ValueList leaves = tree_leaves(call_with(module, program, copies_of(inputs)));
  for (size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].is_tensor() && is_floating(leaves[i].tensor_ref().dtype()) &&
        leaves[i].tensor_ref().requires_grad())
      outputs_.push_back(i);
  // The run may have moved running statistics.
  NoGrad no_grad;
  size_t next = 0;
  for (const auto& [name, tensor] : module.named_buffers()) copy_(tensor, buffers[next++].second);
  if (outputs_.empty())
    throw UsageError(
        "no output of the program depends on its parameters, or on inputs of the gradient, in a way that can "
        "be "
        "differentiated");
}

Tensor OutputLoss::of(const Value& result) const {
  const ValueList leaves = tree_leaves(result);
  Tensor total;
  for (size_t i : outputs_) {
    const Tensor& output = leaves[i].tensor_ref();
    const Tensor wide = output.dtype() == kFloat64 ? output : output.to(kFloat32);
    const Tensor part = is_sum_ ? wide.sum() : (wide * wide).mean();
    total = total.defined() ? total + part : part;
  }
  return total;
}

}  // namespace weft::cli
