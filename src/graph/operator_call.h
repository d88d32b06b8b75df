#pragma once

#include "weft/core/argument_names.h"
#include "weft/dispatch/operator.h"

namespace weft {

// A call as a node writes it: what has its default at the end is left out, arguments after the star go by
// name, and an overload for numbers is the one for tensors with a number in it, as in PyTorch's graphs.
struct WrittenCall {
  const Operator* op;
  ValueList args;
  Kwargs kwargs;
};
// From one argument for each of the schema's.
WrittenCall written_call(const Operator& op, Args complete);
// The same with an overload for numbers as it is, as ATen's own C++ calls it.
WrittenCall written_as_called(const Operator& op, Args complete);

// Back: one argument for each of the schema's. A number where a tensor belongs becomes the overload for
// numbers, or a tensor. Arguments may be nodes; an error says what does not fit.
struct CompleteCall {
  const Operator* op;
  ValueList args;
};
CompleteCall complete_call(const Operator& op, Args args, const Kwargs& kwargs);
// The same for arguments that are complete already.
CompleteCall with_numbers_placed(const Operator& op, ValueList complete);

// A call of an overload for numbers as one of the overload for tensors, which is how it is written; nothing
// where it is none, or where a number is symbolic.
std::optional<CompleteCall> call_on_tensors(const Operator& op, Args complete);

}  // namespace weft
