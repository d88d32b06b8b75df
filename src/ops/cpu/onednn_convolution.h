#pragma once

#include "ops/cpu/convolution.h"

// Convolutions of f32 by oneDNN. A problem is cut, by its sizes alone, into blocks of samples and of the
// result's channels; a block is one single-threaded call, so the bits do not depend on the number of threads.
// No sum is ever cut. Activations may be contiguous or channels_last; weights of any strides.
namespace weft::cpu {

// False, with nothing written, if oneDNN has no good kernel for the problem or it is too small to pay.
bool onednn_convolution_forward(const ConvolutionShape& shape, const ConvolutionOperand& input,
                                const ConvolutionOperand& weight, const float* bias,
                                const ConvolutionOperand& output);
bool onednn_convolution_backward_input(const ConvolutionShape& shape, const ConvolutionOperand& grad,
                                       const ConvolutionOperand& weight,
                                       const ConvolutionOperand& grad_input);
bool onednn_convolution_backward_weight(const ConvolutionShape& shape, const ConvolutionOperand& grad,
                                        const ConvolutionOperand& input,
                                        const ConvolutionOperand& grad_weight);

}  // namespace weft::cpu
