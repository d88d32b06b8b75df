#pragma once

#include "ops/cpu/convolution.h"

// Convolutions of f32 whose kernel is one element wide and that skip and pad nothing: products of matrices,
// read and written where they lie.
namespace weft::cpu {

// False, with nothing written, if the problem is not of that kind, or has a layout or groups that another way
// suits better. `bias` may be null.
bool product_convolution_forward(const ConvolutionShape& shape, const ConvolutionOperand& input,
                                 const ConvolutionOperand& weight, const float* bias,
                                 const ConvolutionOperand& output);
bool product_convolution_backward_input(const ConvolutionShape& shape, const ConvolutionOperand& grad,
                                        const ConvolutionOperand& weight,
                                        const ConvolutionOperand& grad_input);
bool product_convolution_backward_weight(const ConvolutionShape& shape, const ConvolutionOperand& grad,
                                         const ConvolutionOperand& input,
                                         const ConvolutionOperand& grad_weight);

}  // namespace weft::cpu
