#pragma once

#include "ops/cpu/convolution.h"

// Pointwise (1x1) convolutions of f32 without stride or padding: a GEMM over channels, whose operands are
// read and written in place, in either layout.
namespace weft::cpu {

// False, with nothing written, if the problem is not of that kind, or has a layout or groups that another
// code path suits better. `bias` may be null.
bool pointwise_convolution_forward(const ConvolutionShape& shape, const ConvolutionOperand& input,
                                   const ConvolutionOperand& weight, const float* bias,
                                   const ConvolutionOperand& output);
bool pointwise_convolution_backward_input(const ConvolutionShape& shape, const ConvolutionOperand& grad,
                                          const ConvolutionOperand& weight,
                                          const ConvolutionOperand& grad_input);
bool pointwise_convolution_backward_weight(const ConvolutionShape& shape, const ConvolutionOperand& grad,
                                           const ConvolutionOperand& input,
                                           const ConvolutionOperand& grad_weight);

}  // namespace weft::cpu
