#pragma once

#include <cstdint>

#include "ops/cpu/isa.h"
#include "weft/base/dtype.h"

// Softmax over the middle dimension of contiguous memory [outer, n, inner]; `inner` is 1 for the last
// dimension.
namespace weft::cpu {

struct SoftmaxShape {
  int64_t outer, n, inner;
};
enum class SoftmaxKind : uint8_t { kSoftmax, kLogSoftmax };

// `in` and `out` are floats of any width (f16 in and f32 out is allowed); 16-bit ones compute in f32.
void softmax(SoftmaxKind kind, SoftmaxShape shape, const char* in, DType in_type, char* out, DType out_type);

// grad_in = the derivative from the gradient and the *output* of the forward function, all of `type` but
// grad_in, which may be narrower.
void softmax_backward(SoftmaxKind kind, SoftmaxShape shape, const char* grad, const char* output, DType type,
                      char* grad_in, DType grad_in_type);

// One instruction set's loops for f32 or f64. Rows are contiguous; columns: `n` rows of `width` columns,
// `stride` elements apart; `scratch` has room for 3 * width elements.
template <typename T>
struct SoftmaxLoops {
  // `round`: what the sum and its logarithm are rounded to before they are used; null for nothing.
  void (*row)(SoftmaxKind kind, int64_t n, const T* in, T* out, T (*round)(T));
  void (*row_backward)(SoftmaxKind kind, int64_t n, const T* grad, const T* output, T* grad_in);
  void (*columns)(SoftmaxKind kind, int64_t n, int64_t width, int64_t stride, const T* in, T* out,
                  T* scratch);
  void (*columns_backward)(SoftmaxKind kind, int64_t n, int64_t width, int64_t stride, const T* grad,
                           const T* output, T* grad_in, T* scratch);
};

}  // namespace weft::cpu
