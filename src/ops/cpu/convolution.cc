#include "ops/cpu/convolution.h"

#include <cstring>

#include "ops/cpu/gemm.h"
#include "ops/cpu/scratch.h"
#include "weft/base/error.h"
#include "weft/base/parallel.h"

namespace weft::cpu {
namespace {

// Visits the elements that one row of the patch matrix holds: f(position in the output, position in the input
// or -1 for padding). A row is a channel and a place in the kernel.
template <typename F>
void for_each_in_row(const ConvolutionShape& s, int64_t row, F f) {
  size_t rank = s.in.size();
  int64_t place = row % ConvolutionShape::product(s.kernel),
          channel = row / ConvolutionShape::product(s.kernel);
  ConvolutionShape::Dims tap(rank), at(rank, 0);
  for (size_t d = rank; d-- > 0;) {
    tap[d] = place % s.kernel[d];
    place /= s.kernel[d];
  }
  int64_t base = channel * s.in_size(), outputs = s.out_size();
  size_t last = rank - 1;
  for (int64_t o = 0; o < outputs; o += s.out[last]) {
    int64_t line = 0;
    bool inside = true;
    for (size_t d = 0; d < last; ++d) {
      int64_t x = at[d] * s.stride[d] - s.padding[d] + tap[d] * s.dilation[d];
      inside = inside && x >= 0 && x < s.in[d];
      line = line * s.in[d] + x;
    }
    for (int64_t i = 0; i < s.out[last]; ++i) {
      int64_t x = i * s.stride[last] - s.padding[last] + tap[last] * s.dilation[last];
      bool hit = inside && x >= 0 && x < s.in[last];
      f(o + i, hit ? base + line * s.in[last] + x : -1);
    }
    for (size_t d = last; d-- > 0;) {
      if (++at[d] < s.out[d]) break;
      at[d] = 0;
    }
  }
}

// patches[in_channels * kernel, out] of one sample and group.
template <typename T>
void unfold(const ConvolutionShape& s, const T* input, T* patches) {
  int64_t outputs = s.out_size();
  parallel_for(0, s.patch(), std::max<int64_t>(1, 16384 / std::max<int64_t>(outputs, 1)),
               [&](int64_t first, int64_t last) {
                 for (int64_t row = first; row < last; ++row)
                   for_each_in_row(s, row, [&](int64_t out, int64_t in) {
                     patches[row * outputs + out] = in < 0 ? T(0) : input[in];
                   });
               });
}

// Adds patches back to where they came from. Rows of one channel meet in the same elements, so a channel is
// one task.
template <typename T>
void fold(const ConvolutionShape& s, const T* patches, T* input) {
  int64_t outputs = s.out_size(), taps = ConvolutionShape::product(s.kernel);
  std::memset(static_cast<void*>(input), 0, static_cast<size_t>(s.in_channels * s.in_size()) * sizeof(T));
  parallel_for(0, s.in_channels, 1, [&](int64_t first, int64_t last) {
    for (int64_t row = first * taps; row < last * taps; ++row)
      for_each_in_row(s, row, [&](int64_t out, int64_t in) {
        if (in >= 0) input[in] = static_cast<T>(input[in] + patches[row * outputs + out]);
      });
  });
}

template <typename F>
void visit_convolution_type(DType dtype, F f) {
  switch (dtype) {
    case DType::kFloat32:
      return f.template operator()<float>();
    case DType::kFloat64:
      return f.template operator()<double>();
    case DType::kComplex64:
      return f.template operator()<Complex<float>>();
    case DType::kComplex128:
      return f.template operator()<Complex<double>>();
    case DType::kInt64:
      return f.template operator()<int64_t>();
    case DType::kInt32:
      return f.template operator()<int32_t>();
    case DType::kInt16:
      return f.template operator()<int16_t>();
    case DType::kInt8:
      return f.template operator()<int8_t>();
    case DType::kUInt8:
      return f.template operator()<uint8_t>();
    default:
      fail("convolution is not implemented for {}", dtype_name(dtype));
  }
}

// Pointers to one sample and group.
struct Place {
  int64_t input, weight, output;  // in elements
};
Place place_of(const ConvolutionShape& s, int64_t sample, int64_t group) {
  return {(sample * s.groups + group) * s.in_channels * s.in_size(), group * s.out_channels * s.patch(),
          (sample * s.groups + group) * s.out_channels * s.out_size()};
}

}  // namespace

bool is_pointwise(const ConvolutionShape& s) {
  for (size_t d = 0; d < s.in.size(); ++d)
    // A transposed convolution may have a larger output all the same, by its output_padding.
    if (s.kernel[d] != 1 || s.stride[d] != 1 || s.padding[d] != 0 || s.in[d] != s.out[d]) return false;
  return true;
}

void convolution_forward(DType dtype, const ConvolutionShape& s, const char* input, const char* weight,
                         char* output) {
  int64_t size = item_size(dtype), outputs = s.out_size();
  bool direct = is_pointwise(s);
  Scratch patches(direct ? 1 : std::max<int64_t>(s.patch() * outputs, 1) * size);
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t g = 0; g < s.groups; ++g) {
      Place p = place_of(s, n, g);
      const char* columns = direct ? input + p.input * size : patches.data();
      if (!direct)
        visit_convolution_type(dtype, [&]<typename T>() {
          unfold(s, reinterpret_cast<const T*>(input) + p.input, reinterpret_cast<T*>(patches.data()));
        });
      gemm(dtype, s.out_channels, outputs, s.patch(), 1.0, {weight + p.weight * size, s.patch(), 1},
           {columns, outputs, 1}, {}, output + p.output * size, outputs);
    }
}

void convolution_backward_input(DType dtype, const ConvolutionShape& s, const char* grad, const char* weight,
                                char* grad_input) {
  int64_t size = item_size(dtype), outputs = s.out_size();
  bool direct = is_pointwise(s);
  Scratch patches(direct ? 1 : std::max<int64_t>(s.patch() * outputs, 1) * size);
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t g = 0; g < s.groups; ++g) {
      Place p = place_of(s, n, g);
      char* columns = direct ? grad_input + p.input * size : patches.data();
      gemm(dtype, s.patch(), outputs, s.out_channels, 1.0, {weight + p.weight * size, 1, s.patch()},
           {grad + p.output * size, outputs, 1}, {}, columns, outputs);
      if (!direct)
        visit_convolution_type(dtype, [&]<typename T>() {
          fold(s, reinterpret_cast<const T*>(patches.data()), reinterpret_cast<T*>(grad_input) + p.input);
        });
    }
}

void convolution_backward_weight(DType dtype, const ConvolutionShape& s, const char* grad, const char* input,
                                 char* grad_weight) {
  int64_t size = item_size(dtype), outputs = s.out_size();
  bool direct = is_pointwise(s);
  Scratch patches(direct ? 1 : std::max<int64_t>(s.patch() * outputs, 1) * size);
  if (s.batch == 0 || outputs == 0)
    std::memset(grad_weight, 0, static_cast<size_t>(s.groups * s.out_channels * s.patch() * size));
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t g = 0; g < s.groups; ++g) {
      Place p = place_of(s, n, g);
      const char* columns = direct ? input + p.input * size : patches.data();
      if (!direct)
        visit_convolution_type(dtype, [&]<typename T>() {
          unfold(s, reinterpret_cast<const T*>(input) + p.input, reinterpret_cast<T*>(patches.data()));
        });
      gemm(dtype, s.out_channels, s.patch(), outputs, 1.0, {grad + p.output * size, outputs, 1},
           {columns, 1, outputs}, {n == 0 ? 0.0 : 1.0, {grad_weight + p.weight * size, s.patch(), 1}},
           grad_weight + p.weight * size, s.patch());
    }
}

}  // namespace weft::cpu
