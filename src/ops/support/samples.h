#pragma once

#include "weft/dispatch/op_def.h"

// Small tensors for the samples beside operators: the same values in every run, spread around zero, no two
// equal.

namespace weft::samples {

Tensor make(SymIntSpan sizes, DType dtype, double low = -2, double high = 2);
inline Tensor f32(SymIntSpan sizes) { return make(sizes, kFloat32); }
inline Tensor f64(SymIntSpan sizes) { return make(sizes, kFloat64); }
inline Tensor c128(SymIntSpan sizes) { return make(sizes, kComplex128); }
// Values in (0, 2]: for logarithms and roots.
inline Tensor positive(SymIntSpan sizes) { return make(sizes, kFloat64, 0.1, 2); }
// Integers in [low, high).
Tensor i64(SymIntSpan sizes, int64_t low = -5, int64_t high = 6);
// These very integers.
Tensor i64_list(std::initializer_list<int64_t> values);
Tensor boolean(SymIntSpan sizes);
// A list of integers as an argument.
inline Value ints(std::initializer_list<int64_t> values) {
  return Value::list_of(std::vector<int64_t>(values));
}
// The tensor with its last two dims exchanged in memory: not contiguous, same values.
Tensor transposed(const Tensor& tensor);

}  // namespace weft::samples
