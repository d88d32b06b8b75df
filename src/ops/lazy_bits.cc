#include "ops/lazy_bits.h"

#include "ops/structured.h"
#include "ops/support/pointwise.h"
#include "weft/base/error.h"

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
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_sequence()) {
      ValueList list;
      for (const Value& element : args[i].elements())
        list.push_back(element.is_tensor() ? Value(without_lazy_bits(element.tensor_ref())) : element);
      resolved_.push_back(Value::list(std::move(list)));
      continue;
    }
    if (!args[i].is_tensor()) {
      resolved_.push_back(args[i]);
      continue;
    }
    Tensor plain = without_lazy_bits(args[i].tensor_ref());
    if (written[i] && !plain.is_same(args[i].tensor_ref()))
      written_back_.emplace_back(args[i].tensor_ref(), plain);
    resolved_.push_back(plain);
  }
}

Value LazyBits::finish(Value result) const {
  for (const auto& [target, values] : written_back_) {
    // What memory must hold so that the target, seen through its bits, has the new values.
    Tensor memory = alias_with(target, target.sizes(), target.strides(), target.storage_offset());
    memory.impl()->clear_flags(tensor_flag::kConjugate | tensor_flag::kNegative);
    copy_values(memory, values);
    if (target.is_conj()) run_pointwise(cpu::kConj, target.dtype(), memory, {&memory});
    if (target.is_neg()) run_pointwise(cpu::kNeg, target.dtype(), memory, {&memory});
    if (result.is_tensor() && result.tensor_ref().is_same(values)) result = target;
  }
  return result;
}

}  // namespace weft
