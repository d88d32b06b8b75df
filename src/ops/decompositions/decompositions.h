#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "ops/support/random_draw.h"
#include "weft/core/spans.h"
#include "weft/core/tensor.h"

// What operators come to in core operators: the functions that stand in `OpDef::decompose`, named after them.
// They compute what the kernel computes, in the same types, and what their calls give has its sizes.

namespace weft::ops {

// activations.cc
Tensor tanh_backward_parts(const Tensor& grad, const Tensor& y);
Tensor sigmoid_backward_parts(const Tensor& grad, const Tensor& y);
Tensor gelu_backward_parts(const Tensor& grad, const Tensor& self, std::string_view approximate);
Tensor silu_parts(const Tensor& self);
Tensor silu_backward_parts(const Tensor& grad, const Tensor& self);
Tensor threshold_backward_parts(const Tensor& grad, const Tensor& self, const Scalar& threshold);
Tensor threshold_parts(const Tensor& self, const Scalar& threshold, const Scalar& value);
Tensor elu_backward_parts(const Tensor& grad_, const Scalar& alpha, const Scalar& scale,
                          const Scalar& input_scale, bool is_result, const Tensor& self_or_result);
Tensor softplus_parts(const Tensor& self, const Scalar& beta, const Scalar& threshold);
Tensor softplus_backward_parts(const Tensor& grad_, const Tensor& self, const Scalar& beta,
                               const Scalar& threshold);
Tensor hardsigmoid_parts(const Tensor& self);
Tensor hardsigmoid_backward_parts(const Tensor& grad_, const Tensor& self);
Tensor hardswish_parts(const Tensor& self);
Tensor hardswish_backward_parts(const Tensor& grad_, const Tensor& self);
Tensor hardtanh_backward_parts(const Tensor& grad_, const Tensor& self, const Scalar& min_val,
                               const Scalar& max_val);
Tensor leaky_relu_backward_parts(const Tensor& grad_, const Tensor& self, const Scalar& slope, bool);

// views.cc
Tensor detach_parts(const Tensor& self);
Tensor unsafe_view_parts(const Tensor& self, SymIntSpan size);
Tensor transpose_parts(const Tensor& self, int64_t dim0, int64_t dim1);
Tensor t_parts(const Tensor& self);
Tensor squeeze_parts(const Tensor& self);
Tensor squeeze_dim_parts(const Tensor& self, int64_t dim);
std::vector<Tensor> split_parts(const Tensor& self, const SymInt& split_size, int64_t dim);
std::vector<Tensor> unbind_parts(const Tensor& self, int64_t dim);
Tensor diagonal_copy_parts(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2);
Tensor stacked_parts(TensorSpan tensors, int64_t dim);
Tensor select_scatter_parts(const Tensor& self, const Tensor& src, int64_t dim, const SymInt& index);
Tensor select_backward_parts(const Tensor& grad, SymIntSpan sizes, int64_t dim, const SymInt& index);
Tensor slice_backward_parts(const Tensor& grad, SymIntSpan sizes, int64_t dim, const SymInt& start,
                            const SymInt& end, const SymInt& step);
Tensor diagonal_backward_parts(const Tensor& grad, SymIntSpan sizes, int64_t offset, int64_t dim1,
                               int64_t dim2);
Tensor diag_embed_parts(const Tensor& self, int64_t offset_, int64_t dim1, int64_t dim2);

// factories.cc
Tensor zeros_parts(SymIntSpan size, std::optional<DType> dtype, std::optional<Layout> layout,
                   std::optional<Device> device, std::optional<bool> pin);
Tensor ones_parts(SymIntSpan size, std::optional<DType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin);
Tensor zeros_like_parts(const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
                        std::optional<Device> device, std::optional<bool> pin,
                        std::optional<MemoryFormat> format);
Tensor ones_like_parts(const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
                       std::optional<Device> device, std::optional<bool> pin,
                       std::optional<MemoryFormat> format);
Tensor new_full_parts(const Tensor& self, SymIntSpan size, const Scalar& value, std::optional<DType> dtype,
                      std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin);
Tensor new_zeros_parts(const Tensor& self, SymIntSpan size, std::optional<DType> dtype,
                       std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin);
Tensor new_ones_parts(const Tensor& self, SymIntSpan size, std::optional<DType> dtype,
                      std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin);
Tensor empty_like_parts(const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
                        std::optional<Device> device, std::optional<bool> pin,
                        std::optional<MemoryFormat> format);
Tensor fill_scalar_parts(const Tensor& self, const Scalar& value);
Tensor fill_tensor_parts(const Tensor& self, const Tensor& value);
Tensor zero_parts(const Tensor& self);
Tensor arange_parts(const Scalar& end, std::optional<DType> dtype, std::optional<Layout> layout,
                    std::optional<Device> device, std::optional<bool> pin);
Tensor arange_start_parts(const Scalar& start, const Scalar& end, std::optional<DType> dtype,
                          std::optional<Layout> layout, std::optional<Device> device,
                          std::optional<bool> pin);
Tensor masked_fill_scalar_parts(const Tensor& self, const Tensor& mask, const Scalar& value);
Tensor masked_fill_tensor_parts(const Tensor& self, const Tensor& mask, const Tensor& value);
Tensor bernoulli_parts(const Tensor& self, const MaybeGenerator& generator);

// reductions.cc
Tensor rsub_scalar_parts(const Tensor& self, const Scalar& other, const Scalar& alpha);
Tensor clamp_min_parts(const Tensor& self, const Scalar& min);
Tensor clamp_max_parts(const Tensor& self, const Scalar& max);
Tensor floor_divide_parts(const Tensor& self, const Tensor& other);
Tensor floor_divide_scalar_parts(const Tensor& self, const Scalar& other);
Tensor sgn_parts(const Tensor& self);
Tensor all_parts(const Tensor& self);
Tensor all_dim_parts(const Tensor& self, int64_t dim, bool keepdim);
Tensor all_dims_parts(const Tensor& self, OptionalIntSpan dim, bool keepdim);
Tensor sum_parts(const Tensor& self, std::optional<DType> dtype);
Tensor norm_scalar_parts(const Tensor& self, const Scalar& p);
Tensor norm_dtype_parts(const Tensor& self, const std::optional<Scalar>& p, DType dtype);
Tensor norm_dim_parts(const Tensor& self, const std::optional<Scalar>& p, IntSpan dim, bool keepdim);
Tensor norm_dim_dtype_parts(const Tensor& self, const std::optional<Scalar>& p, IntSpan dim, bool keepdim,
                            DType dtype);
Tensor std_parts(const Tensor& self, OptionalIntSpan dim, const std::optional<Scalar>& correction,
                 bool keepdim);
std::tuple<Tensor, Tensor> std_mean_parts(const Tensor& self, OptionalIntSpan dim,
                                          const std::optional<Scalar>& correction, bool keepdim);
Tensor softmax_backward_parts(const Tensor& grad, const Tensor& output, int64_t dim, DType);
Tensor log_softmax_backward_parts(const Tensor& grad, const Tensor& output, int64_t dim, DType);
Tensor dot_parts(const Tensor& self, const Tensor& tensor);
Tensor mv_parts(const Tensor& self, const Tensor& vec);
Tensor baddbmm_parts(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                     const Scalar& alpha);
Tensor index_add_parts(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                       const Scalar& alpha);
Tensor embedding_dense_backward_parts(const Tensor& grad_, const Tensor& indices, const SymInt& rows,
                                      const SymInt& padding, bool scale_by_frequency);
Tensor upsample_nearest2d_parts(const Tensor& self, SymIntSpan output_size, std::optional<double> scales_h,
                                std::optional<double> scales_w);

// losses.cc
Tensor mse_loss_parts(const Tensor& self, const Tensor& target, int64_t reduction);
Tensor mse_loss_backward_parts(const Tensor& grad, const Tensor& self, const Tensor& target,
                               int64_t reduction);
std::tuple<Tensor, Tensor> nll_loss_forward_parts(const Tensor& self_, const Tensor& target_,
                                                  const Tensor& weight_, int64_t reduction,
                                                  const SymInt& ignore_index);
Tensor nll_loss_backward_parts(const Tensor& grad_, const Tensor& self, const Tensor& target_,
                               const Tensor& weight, int64_t reduction, const SymInt& ignore_index,
                               const Tensor& total_weight);

// normalisations.cc
std::tuple<Tensor, Tensor, Tensor> native_batch_norm_backward_parts(
    const Tensor& grad_, const Tensor& input_, const Tensor& weight_, const Tensor& running_mean,
    const Tensor& running_var, const Tensor& save_mean, const Tensor& save_invstd, bool train, double eps,
    std::array<bool, 3> mask);
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> batch_norm_functional_parts(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, bool training, double momentum, double eps);
std::tuple<Tensor, Tensor, Tensor> native_layer_norm_backward_parts(const Tensor& grad_, const Tensor& input_,
                                                                    SymIntSpan shape, const Tensor& mean,
                                                                    const Tensor& rstd, const Tensor& weight_,
                                                                    const Tensor& bias,
                                                                    std::array<bool, 3> mask);
std::tuple<Tensor, Tensor, Tensor> native_group_norm_backward_parts(const Tensor& grad_, const Tensor& input_,
                                                                    const Tensor& mean_, const Tensor& rstd_,
                                                                    const Tensor& weight_, const SymInt& n,
                                                                    const SymInt& channels,
                                                                    const SymInt& pixels, int64_t groups,
                                                                    std::array<bool, 3> mask);

}  // namespace weft::ops
