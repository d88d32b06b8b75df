#pragma once

#include <cstdint>

#include "weft/base/detail/small_vector.h"
#include "weft/base/dtype.h"

// Convolutions of any number of spatial dims over contiguous memory, by unfolding patches into a matrix.
namespace weft::cpu {

// input [batch, groups * in_channels, in...], weight [groups * out_channels, in_channels, kernel...],
// output [batch, groups * out_channels, out...].
struct ConvolutionShape {
  using Dims = SmallVector<int64_t, 3>;
  int64_t batch, groups, in_channels, out_channels;  // channels of one group
  Dims in, kernel, out, stride, padding, dilation;

  int64_t in_size() const { return product(in); }
  int64_t out_size() const { return product(out); }
  int64_t patch() const { return in_channels * product(kernel); }
  static int64_t product(const Dims& dims) {
    int64_t p = 1;
    for (int64_t d : dims) p *= d;
    return p;
  }
};

// A kernel of one element, without stride or padding, and as many outputs as inputs: the input is the patch
// matrix.
bool is_pointwise(const ConvolutionShape& shape);

// An array of f32 with its strides in elements: batch, channels, spatial dims; or output and input channels,
// kernel.
struct ConvolutionOperand {
  float* data;
  SmallVector<int64_t, 5> strides;
};

// All types but bool and the 16-bit floats.
void convolution_forward(DType dtype, const ConvolutionShape& shape, const char* input, const char* weight,
                         char* output);
void convolution_backward_input(DType dtype, const ConvolutionShape& shape, const char* grad,
                                const char* weight, char* grad_input);
void convolution_backward_weight(DType dtype, const ConvolutionShape& shape, const char* grad,
                                 const char* input, char* grad_weight);

}  // namespace weft::cpu
