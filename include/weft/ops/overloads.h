#pragma once

#include "weft/core/argument_names.h"
#include "weft/dispatch/operator.h"

namespace weft {

// All overloads of a name ("aten::add"), in the order of registration.
std::vector<const Operator*> overloads_of(std::string_view base);

// Whether an argument of this type can be this value. A number can be a tensor argument: it is wrapped.
bool accepts(const Type& type, const Value& value);
// Whether it is this value as it is. Types that only TorchScript knows are not looked into.
bool is_of(const Type& type, const Value& value);

// The arguments of a call in the order of the schema, defaults filled in. Nothing when a name is unknown,
// given twice or missing; then `why` says which. Types are not looked at.
std::optional<ValueList> place_arguments(const Operator& op, Args args, const Kwargs& kwargs,
                                         std::string* why = nullptr);
// The same, and every value is of its argument's type.
std::optional<ValueList> bind_arguments(const Operator& op, Args args, const Kwargs& kwargs,
                                        std::string* why = nullptr);

struct BoundCall {
  const Operator* op;
  ValueList args;
};
// The first overload of "aten::add" that takes these arguments, tensors as tensors before numbers as tensors.
// An error that lists the overloads, and why each does not fit.
BoundCall resolve_overload(std::string_view base, Args args, const Kwargs& kwargs = {});
// A call whose second argument is a number where a tensor could be, as one of the overload for numbers;
// nothing where there is none.
std::optional<BoundCall> call_on_numbers(const Operator& op, Args complete);
// Runs it through every active layer; numbers for tensors are wrapped, or go to the overload for numbers if
// they are symbolic.
Value call_bound(BoundCall call);

// A number as a tensor that is weak in type promotion, as operators with tensor arguments take it; a tensor
// as it is.
Tensor number_as_tensor(const Value& number);

}  // namespace weft
