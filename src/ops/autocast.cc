#include "weft/ops/autocast.h"

#include "weft/base/error.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

thread_local DType narrow_type = kBFloat16;

bool casts(const Tensor& tensor, DType to) {
  bool narrow_float = tensor.dtype() == kFloat32 || tensor.dtype() == kFloat16 || tensor.dtype() == kBFloat16;
  return narrow_float && tensor.dtype() != to;
}

Value cast_value(const Value& value, DType to) {
  if (value.is_tensor()) return casts(value.tensor_ref(), to) ? Value(value.tensor_ref().to(to)) : value;
  if (!value.is_sequence()) return value;
  ValueList list;
  for (const Value& element : value.elements()) list.push_back(cast_value(element, to));
  return value.is_list() ? Value::list(std::move(list)) : Value::tuple(std::move(list));
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

Value layers::autocast(const Operator& op, Args args) {
  bool to_narrow = op.has(Traits::kAutocastNarrow), to_wide = op.has(Traits::kAutocastWide);
  if (!to_narrow && !to_wide && op.is_composite()) {
    // It may be made of operators that cast: they are looked at one by one.
    MaskScope mask(layer::at_and_below(layer::kAutocast));
    return op.kernel().boxed(args);
  }
  MaskScope mask(layer::below(layer::kAutocast));
  if (!to_narrow && !to_wide) return dispatch::redispatch(op, args);
  std::vector<Value> cast;
  cast.reserve(args.size());
  for (const Value& value : args) cast.push_back(cast_value(value, to_narrow ? narrow_type : kFloat32));
  return dispatch::redispatch(op, cast);
}

}  // namespace weft
