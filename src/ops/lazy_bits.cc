#include "ops/lazy_bits.h"

#include "ops/structured.h"
#include "ops/support/pointwise.h"
#include "weft/core/value_walk.h"

namespace weft {
namespace {

Tensor without_lazy_bits(const Tensor& tensor) {
  if (!(tensor.flags() & (tensor_flag::kConjugate | tensor_flag::kNegative))) return tensor;
  Tensor memory = alias_with(tensor, tensor.sizes(), tensor.strides(), tensor.storage_offset());
  memory.impl()->clear_flags(tensor_flag::kConjugate | tensor_flag::kNegative);
  Tensor values =
      allocate({tensor.dtype(), tensor.device(), SymInts(tensor.sizes()), preserved_strides(tensor)});
  if (!values.storage()->has_memory() || tensor.is_symbolic()) return values;
  const Tensor* from = &memory;
  if (tensor.is_conj()) {
    run_pointwise(cpu::kConj, tensor.dtype(), values, {from});
    from = &values;
  }
  if (tensor.is_neg()) run_pointwise(cpu::kNeg, tensor.dtype(), values, {from});
  return values;
}

}  // namespace

LazyBits::LazyBits(const Operator& op, Args args) {
  const auto& written = op.info().written;
  for (size_t i = 0; i < args.size(); ++i)
    resolved_.push_back(map_tensors(args[i], [&](const Tensor& tensor) {
      Tensor plain = without_lazy_bits(tensor);
      if (written[i] && !plain.is_same(tensor)) written_back_.emplace_back(tensor, plain);
      return plain;
    }));
}

Value LazyBits::finish(const Value& result) const {
  for (const auto& [target, values] : written_back_) {
    // An out= form may have resized what stands for its target.
    prepare_out(spec_of(values), target);
    // What memory must hold so that the target, seen through its bits, has the new values.
    Tensor memory = alias_with(target, target.sizes(), target.strides(), target.storage_offset());
    memory.impl()->clear_flags(tensor_flag::kConjugate | tensor_flag::kNegative);
    copy_values(memory, values);
    if (target.is_conj()) run_pointwise(cpu::kConj, target.dtype(), memory, {&memory});
    if (target.is_neg()) run_pointwise(cpu::kNeg, target.dtype(), memory, {&memory});
  }
  return map_tensors(result, [&](const Tensor& tensor) {
    for (const auto& [target, values] : written_back_)
      if (tensor.is_same(values)) return target;
    return tensor;
  });
}

}  // namespace weft
