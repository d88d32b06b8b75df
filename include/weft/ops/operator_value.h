#pragma once

#include <string>
#include <string_view>

#include "weft/dispatch/operator.h"

namespace weft {

// An operator as a Value, for operators over operators: an argument `torch.ops.aten.mm.default` of a graph.
Value operator_value(const Operator& op);
// The same by name. The table need not have it: the Value then keeps the name until somebody defines it.
Value operator_value(std::string_view name);
bool holds_operator(const Value& value);
// Null when the Value is no operator, or one that is missing.
const Operator* operator_in(const Value& value);
// Its name, "aten::mm", missing or not; empty when the Value is no operator.
std::string operator_name_in(const Value& value);

// "mine::scale" for itself and for "mine::scale.default". An error for what is no NAMESPACE::NAME.OVERLOAD.
std::string qualified_operator_name(std::string_view name);
// How graphs write it behind "torch.ops.": "aten.add.Tensor", "mine.scale.default", "higher_order.cond".
std::string operator_text(std::string_view qualified_name);

}  // namespace weft
