#pragma once

#include <vector>

#include "weft/base/function_ref.h"
#include "weft/core/value.h"

// The one walk over what a Value holds: lists, tuples, dictionaries and registered structs are containers,
// everything else is a leaf. The keys of a dictionary are part of the container.

namespace weft {

// Calls f for every leaf, in order.
void for_each_leaf(const Value& value, FunctionRef<void(const Value&)> f);
// The same containers, made anew, around what f gives for each leaf.
Value map_leaves(const Value& value, FunctionRef<Value(const Value&)> f);

// Only the tensors among the leaves; the other leaves stay what they are.
void for_each_tensor(const Value& value, FunctionRef<void(const Tensor&)> f);
void for_each_tensor(Args values, FunctionRef<void(const Tensor&)> f);
Value map_tensors(const Value& value, FunctionRef<Value(const Tensor&)> f);
ValueList map_tensors(Args values, FunctionRef<Value(const Tensor&)> f);
std::vector<Tensor> tensors_in(const Value& value);
std::vector<Tensor> tensors_in(Args values);

}  // namespace weft
