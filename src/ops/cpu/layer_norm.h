#pragma once

#include <cstdint>

#include "ops/cpu/isa.h"
#include "weft/base/dtype.h"

// Layer normalisation over rows of contiguous memory [rows, n].
namespace weft::cpu {

// Null pointers: no weight, no bias. `weight_type` is the dtype of weight and bias, `moment_type` of mean and
// rstd (rows each). 16-bit floats compute in f32.
struct LayerNormArgs {
  int64_t rows, n;
  DType type, weight_type, moment_type;
  double eps = 1e-5;
  const char* in;
  const char* weight = nullptr;
  const char* bias = nullptr;
};
void layer_norm(const LayerNormArgs& args, char* out, char* mean, char* rstd);

// Any of the three results may be null. Gradients of weight and bias have `weight_type`.
struct LayerNormGradients {
  char* in = nullptr;
  char* weight = nullptr;
  char* bias = nullptr;
};
void layer_norm_backward(const LayerNormArgs& args, const char* grad, const char* mean, const char* rstd,
                         const LayerNormGradients& gradients);

// One instruction set's loops for f32 or f64.
template <typename T>
struct LayerNormLoops {
  void (*row)(int64_t n, const T* in, const T* weight, const T* bias, T eps, T* out, T* mean, T* rstd);
  // grad_in, weight_sum and bias_sum (added to) may be null.
  void (*row_backward)(int64_t n, const T* grad, const T* in, const T* weight, T mean, T rstd, T* grad_in,
                       T* weight_sum, T* bias_sum);
};

}  // namespace weft::cpu
