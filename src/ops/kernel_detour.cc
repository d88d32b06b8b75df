// Calls that cannot go straight to their kernel: on tensors of several devices, without memory, or with lazy
// conjugate and negative bits.
#include <optional>

#include "ops/lazy_bits.h"
#include "weft/base/error.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

// Every tensor with more than 0 dims must be on one device; a 0-dim CPU tensor may join any other.
Device common_device(const Operator& op, Args args) {
  std::optional<Device> common;
  const Tensor* first = nullptr;
  size_t first_argument = 0;
  auto look = [&](const Value& value, size_t argument) {
    if (!value.is_tensor()) return;
    const Tensor& tensor = value.tensor_ref();
    if (common && *common != tensor.device()) {
      bool may_join =
          (tensor.dim() == 0 && tensor.device().is_cpu()) || (first->dim() == 0 && common->is_cpu());
      if (!may_join) [[unlikely]]
        fail(
            "{}: expected all tensors to be on the same device, but found at least two devices, {} and {} "
            "(arguments '{}' and '{}'); move one with to(Device)",
            op.name(), common->to_string(), tensor.device().to_string(),
            op.schema().arguments[first_argument].name, op.schema().arguments[argument].name);
      if (tensor.dim() == 0 && tensor.device().is_cpu()) return;
    }
    common = tensor.device();
    first = &tensor;
    first_argument = argument;
  };
  for (size_t i = 0; i < args.size(); ++i) {
    look(args[i], i);
    if (args[i].is_sequence())
      for (const Value& element : args[i].elements()) look(element, i);
  }
  return common.value_or(kCpu);
}

bool lacks_memory(Args args) {
  for (const Value& value : args) {
    if (value.is_tensor() && !value.tensor_ref().storage()->has_memory()) return true;
    if (value.is_sequence() && lacks_memory(Args(value.elements()))) return true;
  }
  return false;
}

}  // namespace

Value layers::kernel_detour(const Operator& op, Args args, uint32_t flags) {
  if (!op.has(Traits::kCrossesDevices)) common_device(op, args);
  bool without_memory =
      (flags & tensor_flag::kSymbolic) || (lacks_memory(args) && !op.has(Traits::kCrossesDevices));
  if (without_memory) return run_meta(op, args);
  constexpr uint32_t lazy = tensor_flag::kConjugate | tensor_flag::kNegative;
  if (!(flags & lazy) || op.has(Traits::kReadsConjNeg)) return op.kernel().boxed(args);
  LazyBits resolved(op, args);
  return resolved.finish(op.kernel().boxed(resolved.args()));
}

}  // namespace weft
