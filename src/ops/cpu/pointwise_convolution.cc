#include "ops/cpu/pointwise_convolution.h"

#include <optional>

#include "ops/cpu/gemm/driver.h"
#include "weft/base/parallel.h"

namespace weft::cpu {
namespace {

// The activations of a layer as matrices [channels, pixels], one for each sample; if the samples follow each
// other as pixels do, one for all of them.
struct Activations {
  float* data;
  int64_t samples, sample_stride, channel_stride, pixels, pixel_stride;

  MatrixView<float> sample(int64_t i) const {
    return {data + i * sample_stride, channel_stride, pixel_stride};
  }
};

// Nothing if the pixels of a sample are not evenly spaced.
std::optional<Activations> activations_of(const ConvolutionOperand& x, int64_t batch,
                                          const ConvolutionShape::Dims& sizes) {
  Activations result{x.data, batch, x.strides[0], x.strides[1], 1, 1};
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    if (result.pixels == 1) result.pixel_stride = x.strides[d + 2];
    else if (x.strides[d + 2] != result.pixels * result.pixel_stride) return std::nullopt;
    result.pixels *= sizes[d];
  }
  return result;
}

struct Layers {
  Activations in, out;
};
std::optional<Layers> layers_of(const ConvolutionShape& s, const ConvolutionOperand& input,
                                const ConvolutionOperand& output) {
  if (s.groups != 1 || !is_pointwise(s)) return std::nullopt;
  auto in = activations_of(input, s.batch, s.in), out = activations_of(output, s.batch, s.out);
  if (!in || !out) return std::nullopt;
  auto joins = [](const Activations& a) { return a.sample_stride == a.pixels * a.pixel_stride; };
  if (joins(*in) && joins(*out))
    for (Activations* a : {&*in, &*out}) {
      a->pixels *= a->samples;
      a->samples = 1;
    }
  return Layers{*in, *out};
}

// The result must be written along rows or along columns.
bool is_writable(const Activations& a) { return a.pixel_stride == 1 || a.channel_stride == 1; }

// A GEMM for each sample: each on its own thread where there are many, else each on all threads.
template <typename F>
void for_each_sample(int64_t samples, F f) {
  const int64_t grain = samples >= 2 * num_threads() ? 1 : samples;
  parallel_for(0, samples, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) f(i);
  });
}

}  // namespace

bool pointwise_convolution_forward(const ConvolutionShape& s, const ConvolutionOperand& input,
                                   const ConvolutionOperand& weight, const float* bias,
                                   const ConvolutionOperand& output) {
  auto layers = layers_of(s, input, output);
  if (!layers || !is_writable(layers->out)) return false;
  const auto& [in, out] = *layers;
  for_each_sample(in.samples, [&](int64_t i) {
    run_gemm<float>({s.out_channels,
                     in.pixels,
                     s.in_channels,
                     1,
                     1,
                     {weight.data, weight.strides[0], weight.strides[1]},
                     in.sample(i),
                     {bias, 1, 0},
                     out.data + i * out.sample_stride,
                     out.channel_stride,
                     out.pixel_stride});
  });
  return true;
}

bool pointwise_convolution_backward_input(const ConvolutionShape& s, const ConvolutionOperand& grad,
                                          const ConvolutionOperand& weight,
                                          const ConvolutionOperand& grad_input) {
  auto layers = layers_of(s, grad_input, grad);
  if (!layers || !is_writable(layers->in)) return false;
  const auto& [in, out] = *layers;
  for_each_sample(in.samples, [&](int64_t i) {
    run_gemm<float>({s.in_channels,
                     in.pixels,
                     s.out_channels,
                     1,
                     0,
                     {weight.data, weight.strides[1], weight.strides[0]},
                     out.sample(i),
                     {},
                     in.data + i * in.sample_stride,
                     in.channel_stride,
                     in.pixel_stride});
  });
  return true;
}

bool pointwise_convolution_backward_weight(const ConvolutionShape& s, const ConvolutionOperand& grad,
                                           const ConvolutionOperand& input,
                                           const ConvolutionOperand& grad_weight) {
  auto layers = layers_of(s, input, grad);
  const auto row = grad_weight.strides[0], column = grad_weight.strides[1];
  if (!layers || (row != 1 && column != 1)) return false;
  const auto& [in, out] = *layers;
  const MatrixView<float> sum{grad_weight.data, row, column};
  for (int64_t i = 0; i < in.samples; ++i)
    run_gemm<float>({s.out_channels, s.in_channels, in.pixels, 1, 1, out.sample(i), in.sample(i).transposed(),
                     i == 0 ? MatrixView<float>{} : sum, grad_weight.data, row, column});
  return true;
}

}  // namespace weft::cpu
