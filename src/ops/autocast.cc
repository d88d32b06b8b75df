#include "weft/ops/autocast.h"

#include "weft/base/error.h"
#include "weft/core/value_walk.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

thread_local DType narrow_type = kBFloat16;

bool casts(const Tensor& tensor, DType to) {
  bool narrow_float = tensor.dtype() == kFloat32 || tensor.dtype() == kFloat16 || tensor.dtype() == kBFloat16;
  return narrow_float && tensor.dtype() != to;
}

Value cast_value(const Value& value, DType to) {
  return map_tensors(value, [&](const Tensor& tensor) { return casts(tensor, to) ? tensor.to(to) : tensor; });
}

}  // namespace

Autocast::Autocast(DType dtype, bool enabled)
    : saved_dtype_(narrow_type), was_active_(layer_state().active & layer::kAutocast) {
  require(dtype == kBFloat16 || dtype == kFloat16, "autocast: expected bfloat16 or float16, but got {}",
          dtype_name(dtype));
  narrow_type = dtype;
  uint32_t& active = layer_state().active;
  active = enabled ? active | layer::kAutocast : active & ~layer::kAutocast;
}

Autocast::~Autocast() {
  narrow_type = saved_dtype_;
  uint32_t& active = layer_state().active;
  active = was_active_ ? active | layer::kAutocast : active & ~layer::kAutocast;
}

std::optional<DType> detail::autocast_dtype() {
  const bool is_on = (weft::layer_state().active & layer::kAutocast) != 0;
  return is_on ? std::optional(narrow_type) : std::nullopt;
}

std::optional<ValueList> detail::autocast_arguments(const Operator& op, Args args) {
  bool to_narrow = op.has(Traits::kAutocastNarrow), to_wide = op.has(Traits::kAutocastWide);
  // A composite without a rule may be made of operators that cast.
  if (!to_narrow && !to_wide && op.is_composite()) return std::nullopt;
  ValueList cast(args.begin(), args.end());
  if (to_narrow || to_wide)
    for (Value& value : cast) value = cast_value(value, to_narrow ? narrow_type : kFloat32);
  return cast;
}

Value layers::autocast(const Operator& op, Args args) {
  std::optional<ValueList> cast;
  {
    MaskScope mask(layer::below(layer::kAutocast));
    cast = detail::autocast_arguments(op, args);
    if (cast) return dispatch::redispatch(op, *cast);
  }
  MaskScope mask(layer::at_and_below(layer::kAutocast));
  return op.kernel().boxed(args);
}

}  // namespace weft
