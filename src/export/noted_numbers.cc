#include "export/noted_numbers.h"

#include "weft/core/tensor.h"

namespace weft {

void for_each_number(const Value& value, FunctionRef<void(const sym::Expr*)> f) {
  if (value.is_tensor()) {
    if (!value.tensor_ref().defined() || !value.tensor_ref().is_symbolic()) return;
    for (const SymInt& size : value.tensor_ref().impl()->sizes())
      if (size.is_symbolic()) f(size.expr());
  } else if (value.kind() == Value::Kind::kSymInt) {
    if (SymInt number = value.to_sym_int(); number.is_symbolic()) f(number.expr());
  } else if (value.kind() == Value::Kind::kSymFloat) {
    if (SymFloat number = value.to_sym_float(); number.is_symbolic()) f(number.expr());
  } else if (value.kind() == Value::Kind::kSymBool) {
    if (SymBool number = value.to_sym_bool(); number.is_symbolic()) f(number.expr());
  } else if (value.is_sequence()) {
    for (const Value& element : value.elements()) for_each_number(element, f);
  }
}

}  // namespace weft
